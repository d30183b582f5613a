package compiler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// Equal layouts have equal names, and different layouts different ones: by type if the NIC's object file tells it, else by size.
func TestLayouts(t *testing.T) {
	of := func(targets, state string) api.Layouts {
		t.Helper()
		source := "#include \"lambda.h\"\n" + state + "\nint probe" + body + " { return RETURN_DROP; }\n"
		return build(t, lambdaWith(t, "name: probe\ntargets: ["+targets+"]\n", source)).Manifest.Layouts
	}
	const object = "struct a { uint32_t x; struct { uint8_t b[4]; uint16_t c : 3; } y; };\nLAMBDA_MIGRATED struct a a;"
	const native = "process"
	for _, targets := range []string{"nic", "nic, process", native} {
		if l := of(targets, "static int plain;"); l != (api.Layouts{}) {
			t.Errorf("%s: no state, but %+v", targets, l)
		}
		a := of(targets, object)
		if a.Migrated == "" || a.Kept != "" || a.From != "" {
			t.Errorf("%s: got %+v", targets, a)
		}
		same := of(targets, "typedef unsigned char byte; struct other { const uint32_t x; struct { byte b[4]; uint16_t c : 3; } y; };\n"+
			"LAMBDA_MIGRATED long now; LAMBDA_MIGRATE(struct other, old) { now = old->x; }")
		if same.From != a.Migrated || same.Migrated == a.Migrated {
			t.Errorf("%s: from %+v to %+v", targets, a, same)
		}
		for _, change := range [][2]string{
			{"uint32_t x", "int32_t x"}, {"uint32_t x", "float x"}, {"x;", "z;"}, {"b[4]", "b[9]"}, {"c : 3", "c : 4"}, {"uint16_t c : 3", "union { uint16_t c; } c"},
		} {
			changed := of(targets, strings.Replace(object, change[0], change[1], 1))
			if differs := changed.Migrated != a.Migrated; !differs && (targets != native || change[1] == "b[9]") {
				t.Errorf("%s: %s passes for %s", targets, change[1], change[0])
			}
		}
		kept := of(targets, "LAMBDA_KEPT uint32_t k1; LAMBDA_KEPT uint32_t k2;")
		if other := of(targets, "LAMBDA_KEPT uint32_t k1; LAMBDA_KEPT uint32_t k3;"); kept.Kept == "" || other.Kept == kept.Kept {
			t.Errorf("%s: %+v and %+v", targets, kept, other)
		}
	}
	deep := "struct s0 { uint64_t a, b; };\n"
	for i := 1; i < 14; i++ {
		deep += fmt.Sprintf("struct s%d { struct s%d a, b; };\n", i, i-1)
	}
	_, err := Build(t.Context(), lambda(t, "#include \"lambda.h\"\n"+deep+"LAMBDA_KEPT struct s13 tree;\nint probe"+body+" { return RETURN_DROP; }\n"), Options{})
	if !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "too intricate") {
		t.Errorf("a deep type: %v", err)
	}
}
