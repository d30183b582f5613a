package link_test

import (
	"errors"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/link"
)

// manyKept has kept objects of several kinds, whose first uses are in another order than their declarations.
const manyKept = `LAMBDA_KEPT uint64_t first;
LAMBDA_KEPT static uint32_t second[7];
LAMBDA_KEPT struct { uint16_t a; uint64_t b; } third;
LAMBDA_KEPT static uint8_t fourth;
`

const useKept = `	third.b++;
	second[match_data->payload_len % 7] += fourth++;
	first += second[third.b % 7] + third.a;
	lambda_status(headers, first & 7);
	return RETURN_DROP;
`

func build(t *testing.T, source []byte) *artifact.Artifact {
	t.Helper()
	a, err := compiler.BuildSource(t.Context(), source, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A member's kept objects have the layout that they have without fusion, or Build refuses it. The artifact can be stored and found again.
func TestBuild(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	members := []*artifact.Artifact{
		build(t, pack(t, "many", manyKept+entry("many", useKept), "limits: {time: 30us}\n")),
		build(t, pack(t, "more", "LAMBDA_KEPT uint32_t other;\n"+manyKept+entry("more", "\tother++;\n"+useKept), "limits: {time: 70us}\n")),
	}
	if members[0].Manifest.Layouts.Kept == members[1].Manifest.Layouts.Kept {
		t.Error("different objects have one layout")
	}
	a, err := link.Build(t.Context(), members, compiler.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.Get(a.Digest)
	if err != nil {
		t.Fatal(err)
	}
	m := got.Manifest
	if len(m.Members) != 2 || m.Members[1].Name != "more" || m.Members[1].Lambda != members[1].Digest {
		t.Errorf("members %+v", m.Members)
	}
	if m.Compiler == "" || m.Compiler != members[0].Manifest.Compiler || m.SDK != members[0].Manifest.SDK {
		t.Errorf("built by %q with %q", m.Compiler, m.SDK)
	}
	if want := members[0].Manifest.Spec.Limits.Memory * 2; m.Spec.Limits.Memory != want || m.Spec.Limits.Time != members[1].Manifest.Spec.Limits.Time {
		t.Errorf("limits %+v", m.Spec.Limits)
	}
	members[0].Source = nil // the fused program is found in the store
	if again, err := link.Build(t.Context(), members, compiler.Options{Store: store}); err != nil || again.Digest != a.Digest {
		t.Errorf("built again: %v", err)
	}
	members[0].BPF, members[0].Digest = nil, "sha256:other"
	if _, err := link.Build(t.Context(), members, compiler.Options{Store: store}); !errors.Is(err, link.ErrMember) {
		t.Errorf("a lambda that is not for the NIC: %v", err)
	}
}
