package p4_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/match"
	"github.com/lambdanic/lambdanic/compiler/p4"
)

// whole is a program of testdata as one file.
func whole(t testing.TB, name string) string {
	t.Helper()
	var b strings.Builder
	for _, file := range []string{"include/headers.p4", "include/parser.p4", name + ".p4"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#include") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

var programs = []string{"web_server", "kv_client", "image_transformer"}

// checkError fails on errors that do not say where in the text they are.
func checkError(t *testing.T, err error, text string) {
	t.Helper()
	list := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	lines := strings.Count(text, "\n") + 1
	for _, err := range list {
		var at *p4.Error
		if !errors.As(err, &at) {
			t.Fatalf("%v is no *Error", err)
		}
		if at.File != "a" || at.Line < 1 || at.Line > lines || at.Column < 1 || at.Message == "" {
			t.Fatalf("%v is not in the text of %d lines", at, lines)
		}
	}
}

// On any text, the parser ends with a program that can be compiled, or with errors at places in the text.
func FuzzParse(f *testing.F) {
	f.Add(frame(""))
	for _, name := range programs {
		f.Add(whole(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := p4.Parse("a", files{"a": text}.open)
		if err != nil {
			checkError(t, err, text)
			return
		}
		match.Reduce(p, match.Uses{})
		if code, err := match.Emit(p, match.Lambda{Uses: match.Uses{}}); err == nil && (len(code.Unit) == 0 || len(code.Header) == 0) {
			t.Error("no code")
		}
	})
}

// On any text, reading rules ends with rules of the tables, or with errors at places in the text.
func FuzzRules(f *testing.F) {
	for _, name := range programs {
		rules, err := os.ReadFile(filepath.Join("testdata", name, name+".p4cfg"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(rules))
	}
	f.Add(`{"tables": {"t": {"rules": [{"match": {"h.e": {"value": "1"}, "h.n": {"value": "2", "mask": "3"}, "h.l": {"value": "10.0.0.0/8"}, "more": {"value": "true"}}, "action": {"type": "hit", "data": {"n": {"value": "p0"}}}}]}}}`)
	texts := []string{tableProgram}
	for _, name := range programs {
		texts = append(texts, whole(f, name))
	}
	f.Fuzz(func(t *testing.T, rules string) {
		for _, text := range texts {
			p, err := p4.Parse("p", files{"p": text}.open)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p4.ReadRules("a", []byte(rules), p); err != nil {
				checkError(t, err, rules)
				continue
			}
			match.Reduce(p, match.Uses{})
			_, _ = match.Emit(p, match.Lambda{Uses: match.Uses{}})
		}
	})
}
