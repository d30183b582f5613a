package compiler

import (
	"errors"
	"strings"
	"testing"
)

func TestEmit(t *testing.T) {
	source, err := PackSource("../lambdas/web_server")
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[Form]string{
		FormC:       "EXTRACTED_HEADERS_T",
		FormPlainLL: "i32 @lambda(",
		FormLL:      "i32 @lambda(",
		FormBPF:     "Exit",
	} {
		text, err := Emit(t.Context(), source, form)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q in %d bytes (%v)", form, want, len(text), err)
		}
	}
	if _, err := Emit(t.Context(), source, "s"); !errors.Is(err, ErrForm) {
		t.Errorf("emitted, or %v", err)
	}
}
