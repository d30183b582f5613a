package process

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// The ways to spell what version 1 of test/lambdas/counter migrates.
const (
	fromVersion1 = "COUNTER_FROM uint32_t hits; uint32_t unused;"
	fromShorter  = "COUNTER_FROM uint32_t hits;"
	fromRenamed  = "COUNTER_FROM uint32_t unused; uint32_t hits;"
)

// counter is a revision of test/lambdas/counter, which counts in three objects: kept, migrated and fresh. Where possible it is built
// for the NIC too, from where the types are known.
func counter(t testing.TB, revision, version uint32, defines ...string) backend.Deployment {
	t.Helper()
	source, err := os.ReadFile("../../../test/lambdas/counter/counter.c")
	if err != nil {
		t.Fatal(err)
	}
	defines = append(defines, fmt.Sprintf("COUNTER_VERSION %d", version))
	dir := t.TempDir()
	for name, text := range map[string]string{
		"counter.c": "#define " + strings.Join(defines, "\n#define ") + "\n" + string(source), api.SpecFile: "name: counter\nlimits: {time: 1s}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := compiler.Build(t.Context(), dir, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return backend.Deployment{
		Namespace: "test", Name: "counter", Workload: workload, Revision: revision, Spec: a.Manifest.Spec, Layouts: a.Manifest.Layouts, Native: a.Native,
	}
}

// wantCounts sends a request to counter and checks what it counts then.
func wantCounts(t testing.TB, c *rawClient, revision uint32, want ...uint32) {
	t.Helper()
	h, p := c.call(workload, 0, make([]byte, 12), 0)
	if h.Type != api.TypeResponse || len(p) != 12 {
		t.Fatalf("got %+v %x", h, p)
	}
	var got []uint32
	for i := range 3 {
		got = append(got, binary.LittleEndian.Uint32(p[4*i:]))
	}
	if h.Revision != revision || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("revision %d counts %d, want revision %d and %d", h.Revision, got, revision, want)
	}
}

func wantRefused(t testing.TB, b *Backend, d backend.Deployment, why string) {
	t.Helper()
	if err := b.Deploy(t.Context(), d); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want an error that says %q", err, why)
	}
}

// A kept object counts on; a migrated one is converted, or taken over as it is if its type is the same; the rest starts anew. A
// migration that does not fit, faults or does not end is refused, and the revision before serves on.
func TestMigrate(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, counter(t, 1, 1)))
	pid := pidOf(t, b, workload)
	wantCounts(t, c, 1, 1, 1, 1)
	mustDeploy(t, b, counter(t, 2, 1, "COUNTER_OTHER"))
	wantCounts(t, c, 2, 2, 2, 1)
	for why, defines := range map[string][]string{
		"takes another type":     {fromShorter},
		"LAMBDA_MIGRATE() takes": {fromRenamed},
		"add a LAMBDA_MIGRATE()": nil,
		"faulted":                {fromVersion1, "COUNTER_FAULT"},
		"did not end":            {fromVersion1, "COUNTER_HANG"},
	} {
		wantRefused(t, b, counter(t, 3, 2, defines...), why)
	}
	lying := counter(t, 3, 2, fromShorter)
	lying.Layouts.From = counter(t, 3, 2, fromVersion1).Layouts.From
	wantRefused(t, b, lying, "no LAMBDA_MIGRATE() from an object of 8 bytes")
	wantCounts(t, c, 2, 3, 3, 2)
	mustDeploy(t, b, counter(t, 3, 2, fromVersion1))
	wantCounts(t, c, 3, 4, 40, 1)
	mustDeploy(t, b, counter(t, 4, 2, fromVersion1, "COUNTER_OTHER")) // its function is not needed
	wantCounts(t, c, 4, 5, 50, 1)
	wantRefused(t, b, counter(t, 5, 1), "add a LAMBDA_MIGRATE()")
	wantCounts(t, c, 4, 6, 60, 2)
	if pidOf(t, b, workload) != pid {
		t.Error("another process")
	}
}

// A migration that does not end is ended once, whatever signals come meanwhile.
func TestMigrateUnderSignals(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, counter(t, 1, 1)))
	pid := pidOf(t, b, workload)
	ctx, cancel := context.WithCancel(t.Context())
	var signals sync.WaitGroup
	signals.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Tgkill(pid, pid, unix.SIGURG) // the watchdog's, to the thread that migrates
		}
	})
	wantRefused(t, b, counter(t, 2, 2, fromVersion1, "COUNTER_HANG"), "did not end")
	cancel()
	signals.Wait()
	wantCounts(t, c, 1, 1, 1, 1)
	if pidOf(t, b, workload) != pid {
		t.Error("another process")
	}
}

// State is also handed over when other settings need another process, and no file is left behind.
func TestMigrateToAnotherProcess(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, counter(t, 1, 1)))
	pid := pidOf(t, b, workload)
	wantCounts(t, c, 1, 1, 1, 1)
	next := func(revision, version uint32, defines ...string) backend.Deployment {
		d := counter(t, revision, version, defines...)
		d.Spec.Limits.Memory += api.Bytes(revision) << 20
		return d
	}
	wantRefused(t, b, next(2, 2, fromRenamed), "takes another type")
	wantRefused(t, b, next(2, 2, fromVersion1, "COUNTER_FAULT"), "faulted")
	wantCounts(t, c, 1, 2, 2, 2)
	mustDeploy(t, b, next(2, 2, fromVersion1))
	wantCounts(t, c, 2, 3, 30, 1)
	mustDeploy(t, b, next(3, 2))
	wantCounts(t, c, 3, 4, 40, 1)
	if pidOf(t, b, workload) == pid {
		t.Error("same process")
	}
	in, _ := b.get(workload, false)
	if files, err := filepath.Glob(filepath.Join(in.dir, stateFile+"*")); err != nil || len(files) > 0 {
		t.Errorf("left: %v %v", files, err)
	}
}

// A daemon that comes back knows the layout of the state. A process that died has left no state.
func TestAdoptThenMigrate(t *testing.T) {
	dir := shortdir.New(t)
	first := newBackend(t, checkedHost, dir)
	c := dial(t, mustDeploy(t, first, counter(t, 1, 1)))
	wantCounts(t, c, 1, 1, 1, 1)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	b := newBackend(t, checkedHost, dir)
	if adopted, err := b.Adopt(t.Context()); err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	wantRefused(t, b, counter(t, 2, 2, fromRenamed), "takes another type")
	mustDeploy(t, b, counter(t, 2, 2, fromVersion1))
	wantCounts(t, c, 2, 2, 20, 1)
	pid := pidOf(t, b, workload)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process serves", func() bool {
		list, err := b.Status(t.Context())
		return err == nil && len(list) == 1 && pidOf(t, b, workload) != pid
	})
	wantCounts(t, c, 2, 1, 10, 1)
}

// A file that does not hold state is refused, whatever it holds.
func TestBrokenState(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	mustDeploy(t, b, counter(t, 1, 1))
	in, _ := b.get(workload, false)
	object := counter(t, 2, 1, "COUNTER_OTHER").Native
	if err := writeFile(filepath.Join(in.dir, "next.so"), object, userOf(in.dir)); err != nil {
		t.Fatal(err)
	}
	word := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for name, text := range map[string][]byte{
		"empty": nil, "short": word(4), "too little": append(word(4), word(8)...), "too much": append(append(word(4), word(0)...), make([]byte, 5)...),
		"overflow": append(append(word(1<<63), word(1<<63)...), make([]byte, 12)...),
	} {
		if err := writeFile(filepath.Join(in.dir, stateFile), text, userOf(in.dir)); err != nil {
			t.Fatal(err)
		}
		_, err := control(t.Context(), in.socket(), "load 2 next.so keep from=%s", stateFile)
		if err == nil || !strings.Contains(err.Error(), "no state") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, words := range []string{"kept", "keep from=", "from=nowhere keep", "by-call as-is from"} {
		if _, err := control(t.Context(), in.socket(), "load 2 next.so %s", words); err == nil {
			t.Errorf("%q was understood", words)
		}
	}
	if _, err := control(t.Context(), in.socket(), "save nowhere"); err == nil {
		t.Error("saved to nowhere")
	}
}
