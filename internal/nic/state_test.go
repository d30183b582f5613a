package nic

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// The ways to spell what version 1 of test/lambdas/counter migrates.
const (
	fromVersion1 = "COUNTER_FROM uint32_t hits; uint32_t unused;"
	fromShorter  = "COUNTER_FROM uint32_t hits;"
	fromSameSize = "COUNTER_FROM uint32_t hits; int32_t unused;"
	fromRenamed  = "COUNTER_FROM uint32_t unused; uint32_t hits;"
)

// counter is a revision of test/lambdas/counter, which counts in three objects: kept, migrated and fresh.
func counter(t testing.TB, workload, revision, version uint32, defines ...string) backend.Deployment {
	t.Helper()
	source, err := os.ReadFile("../../test/lambdas/counter/counter.c")
	if err != nil {
		t.Fatal(err)
	}
	defines = append(defines, fmt.Sprintf("COUNTER_VERSION %d", version))
	text := "#define " + strings.Join(defines, "\n#define ") + "\n" + string(source)
	a, err := buildFiles(map[string][]byte{"counter.c": []byte(text), api.SpecFile: []byte("name: counter\ntargets: [nic]\n")})
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, workload, revision)
}

// wantCounts sends a request to a workload of counter and checks what it counts then.
func wantCounts(t testing.TB, n *NIC, workload, revision uint32, want ...uint32) {
	t.Helper()
	f := packets.Frame{RPC: packets.RPC{Workload: "it", Request: requests.Add(1), Payload: strings.Repeat(".", 12)}}
	frame, err := f.Build(map[string]uint32{"it": workload})
	if err != nil {
		t.Fatal(err)
	}
	_, out := inject(t, n, frame)
	h, p, err := packets.Answer(frame, out)
	if err != nil || h.Type != api.TypeResponse || len(p) != 12 {
		t.Fatalf("got %+v %x, %v", h, p, err)
	}
	var got []uint32
	for i := range 3 {
		got = append(got, binary.LittleEndian.Uint32(p[4*i:]))
	}
	if h.Revision != revision || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("revision %d counts %d, want revision %d and %d", h.Revision, got, revision, want)
	}
}

// A kept object counts on; a migrated one is converted, or taken over as it is if its type is the same; the rest starts anew. A
// migration that does not fit is refused, and the revision before serves on.
func TestMigrate(t *testing.T) {
	n := newTestNIC(t)
	const w = 7
	deploy(t, n, counter(t, w, 1, 1))
	wantCounts(t, n, w, 1, 1, 1, 1)
	wantCounts(t, n, w, 1, 2, 2, 2)
	deploy(t, n, counter(t, w, 2, 1, "COUNTER_OTHER"))
	wantCounts(t, n, w, 2, 3, 3, 1)
	for name, from := range map[string]string{"shorter": fromShorter, "same size": fromSameSize, "renamed": fromRenamed} {
		t.Run(name, func(t *testing.T) {
			before := usage(n)
			wantError(t, n.Deploy(t.Context(), counter(t, w, 3, 2, from)), "takes another type")
			if after := usage(n); after.slots > before.slots {
				t.Errorf("%d slots in use, before %d", after.slots, before.slots)
			}
		})
	}
	wantError(t, n.Deploy(t.Context(), counter(t, w, 3, 2)), "add a LAMBDA_MIGRATE()")
	wantError(t, n.Deploy(t.Context(), counter(t, w, 3, 2, fromVersion1, "COUNTER_FAULT")), "LAMBDA_MIGRATE() accessed")
	wantError(t, n.Deploy(t.Context(), counter(t, w, 3, 2, fromVersion1, "COUNTER_HANG")), "did not end in time")
	wantCounts(t, n, w, 2, 4, 4, 2)
	deploy(t, n, counter(t, w, 3, 2, fromVersion1))
	wantCounts(t, n, w, 3, 5, 50, 1)
	deploy(t, n, counter(t, w, 4, 2, fromVersion1, "COUNTER_OTHER")) // its function is not needed
	wantCounts(t, n, w, 4, 6, 60, 1)
	wantError(t, n.Deploy(t.Context(), counter(t, w, 5, 1)), "add a LAMBDA_MIGRATE()")
	wantCounts(t, n, w, 4, 7, 70, 2)
	deploy(t, n, counter(t, w+1, 1, 2, fromVersion1)) // a first revision has nothing to migrate
	wantCounts(t, n, w+1, 1, 1, 10, 1)
	wantCounts(t, n, w, 4, 8, 80, 3)
}

// Until the swap the old revision serves, and what it counts after the migration is not taken over.
func TestServesDuringMigration(t *testing.T) {
	c := testConfig(t)
	const w = 7
	var n *NIC
	during := func() {}
	c.failpoint = func(step string) {
		if step == "migrated" {
			during()
		}
	}
	n = open(t, c)
	deploy(t, n, counter(t, w, 1, 1))
	during = func() { wantCounts(t, n, w, 1, 1, 1, 1) }
	deploy(t, n, counter(t, w, 2, 2, fromVersion1))
	wantCounts(t, n, w, 2, 2, 10, 1)
}

// A daemon that comes back finds the objects of the revision that serves, and migrates them.
func TestAdoptThenMigrate(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	const w = 7
	deploy(t, n, counter(t, w, 1, 1))
	wantCounts(t, n, w, 1, 1, 1, 1)
	shut(t, n)
	n = open(t, c)
	if !n.Adopted() {
		t.Error("not adopted")
	}
	wantError(t, n.Deploy(t.Context(), counter(t, w, 2, 2, fromRenamed)), "takes another type")
	deploy(t, n, counter(t, w, 2, 2, fromVersion1))
	wantCounts(t, n, w, 2, 2, 20, 1)
	eventually(t, "the old revision is freed", func() bool { return usage(n).slots == 1 })
	shut(t, n)
	n = open(t, c)
	deploy(t, n, counter(t, w, 3, 2, "COUNTER_OTHER"))
	wantCounts(t, n, w, 3, 3, 30, 1)
	if err := n.Remove(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is freed", func() bool { return usage(n) == used{} })
	for _, dir := range []string{"kept", "migrated"} {
		if left, err := os.ReadDir(filepath.Join(c.pins(), dir)); err != nil || len(left) > 0 {
			t.Errorf("pins left in %s: %v %v", dir, left, err)
		}
	}
}
