package nic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/idle"
)

// noting is a module that notes its calls.
type noting struct {
	module.Base
	mu    sync.Mutex
	calls []string
}

func (m *noting) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, fmt.Sprintf(format, args...))
}

// noted are the calls since the last time.
func (m *noting) noted() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := strings.Join(m.calls, " ")
	m.calls = nil
	return said
}

func revisionOf(r *module.Revision) uint32 {
	if r == nil {
		return 0
	}
	return r.Record.Revision
}

func (m *noting) Open(module.NIC, *ebpf.Collection) error { m.note("open"); return nil }
func (m *noting) Start()                                  { m.note("start") }
func (m *noting) Close() error                            { m.note("close"); return nil }
func (m *noting) Down(s module.Site) error                { m.note("down"); return nil }
func (m *noting) Adopt(r *module.Revision)                { m.note("adopt-%d", r.Record.Revision) }
func (m *noting) Adopted() error                          { m.note("adopted"); return nil }
func (m *noting) Check(c *module.Change) error {
	m.note("check-%d-%d", c.Revision, revisionOf(c.Previous))
	return nil
}
func (m *noting) Take(c *module.Change) error {
	m.note("take-%d-%d", revisionOf(c.Next), revisionOf(c.Previous))
	return nil
}
func (m *noting) Prepare(_ context.Context, c *module.Change) error {
	m.note("prepare-%d", c.Revision)
	return nil
}
func (m *noting) Swapped(list []*module.Revision) error {
	m.note("swapped-%d", revisionOf(list[0]))
	return nil
}
func (m *noting) Dropped() error                { m.note("dropped"); return nil }
func (m *noting) Removed(uint32) error          { m.note("removed"); return nil }
func (m *noting) Superseded(r *module.Revision) { m.note("superseded-%d", r.Record.Revision) }
func (m *noting) Free(r *module.Revision)       { m.note("free-%d", r.Record.Revision) }

func (m *noting) Resources() []backend.Resource { return []backend.Resource{{Path: "notes"}} }

// A module is called at each event of a NIC's life, in the order that its documentation says.
func TestModuleLife(t *testing.T) {
	c, m := testConfig(t), &noting{}
	c.more = []module.Module{&idle.Module{}, m} // as lines of newModules
	want := func(what, calls string) {
		t.Helper()
		if got := m.noted(); got != calls {
			t.Errorf("%s: got %q, want %q", what, got, calls)
		}
	}
	n, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want("up", "down open start")
	var paths []string
	for _, r := range n.Resources() {
		paths = append(paths, r.Path)
	}
	if !slices.Equal(paths, []string{"rdma/regions", "rdma/queue-pairs", "notes"}) {
		t.Errorf("lambdas have %v", paths)
	}
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	want("deploy", "check-1-0 take-1-0 prepare-1 swapped-1")
	deploy(t, n, probe(t, workloads["packet"], 2, packetSpec))
	want("deploy over it", "check-2-1 take-2-1 prepare-2 swapped-2 superseded-1")
	eventually(t, "the first revision is freed", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.Contains(m.calls, "free-1")
	})
	m.noted()
	p, err := n.Prepare(t.Context(), probe(t, workloads["packet"], 3, packetSpec))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Drop(); err != nil {
		t.Fatal(err)
	}
	want("drop", "check-3-2 take-3-2 prepare-3 free-3 dropped")
	shut(t, n)
	want("close", "close")
	if n, err = Up(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want("up again", "open adopt-2 adopted start")
	if err := n.Remove(t.Context(), workloads["packet"]); err != nil {
		t.Fatal(err)
	}
	want("remove", "removed superseded-2")
	eventually(t, "the revision is freed", func() bool { return m.noted() == "free-2" })
	shut(t, n)
	want("close again", "close")
	if err := Down(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want("down", "down")
}

// Each of the NIC program's counters is declared once, and docs/operations.md has its row.
func TestCounters(t *testing.T) {
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[program.RootLnCounter]string{}
	for _, c := range newModules(Config{}).counters() {
		if other, ok := declared[c.Index]; ok {
			t.Errorf("%s and %s are one counter", other, c.Name)
		}
		declared[c.Index] = c.Name
		if row := fmt.Sprintf("\n| `lambdanic_nic_%s_total` | %s |\n", c.Name, c.Help); !strings.Contains(string(docs), row) {
			t.Errorf("docs/operations.md lacks %q", row)
		}
	}
	for i := range program.RootLnCounterLN_COUNT_MAX {
		if declared[i] == "" {
			t.Errorf("nobody declares counter %d (enum ln_counter of bpf/layout.h)", i)
		}
	}
}
