// Package module defines a NIC's modules: each is a feature beside requests of one packet. Its code in the kernel, if any, is bpf/NAME;
// its code on the host is internal/nic/module/NAME.
package module

import (
	"context"
	"iter"
	"log/slog"
	"net/netip"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// A Module is called by one goroutine at a time, except where its own package says otherwise. The order of calls in a NIC's life is:
// Open; Adopt for each existing revision, and Adopted; Start; for each deployment Check, Take, Prepare, and then Swapped or Dropped and
// Free; Superseded, Needed and Free for each revision that ends; Close. Embed Base, whose methods do nothing.
type Module interface {
	// Half is the module's half in the kernel; nil if the module runs only on the host.
	Half() *program.Half
	// Open gives the module its maps and programs, after the NIC program was loaded or opened. half is nil if Half is.
	Open(nic NIC, half *ebpf.Collection) error
	// Start begins the module's background work, now that the NIC program is on its interface.
	Start()
	// Close releases everything. The NIC program serves on.
	Close() error
	// Down removes what outlives the process, whether or not the module was opened, or the NIC is there.
	Down(Site) error

	// Adopt takes over a revision that an earlier daemon loaded.
	Adopt(*Revision)
	// Adopted is called after the last Adopt: the revisions that NIC.Serving names serve on.
	Adopted() error

	// Check refuses an impossible deployment.
	Check(*Change) error
	// Take gives a revision the records that it needs, and fills in the fields of its slot that describe them.
	Take(*Change) error
	// Shared are the module's maps that a lambda's object file uses in place of its own of the same names.
	Shared(*ebpf.CollectionSpec) map[string]*ebpf.Map
	// Prepare does what else a deployment needs. Swapped or Dropped follows. For members of a fused program, these two are called
	// without Prepare.
	Prepare(context.Context, *Change) error
	// Swapped is called when new revisions serve. After an error the NIC goes on without what the module failed to do.
	Swapped([]*Revision) error
	// Dropped is called in place of Swapped if the deployment is dropped.
	Dropped() error

	// Removed is called when a workload is no longer served. The NIC is held.
	Removed(workload uint32) error
	// Superseded is called when a revision no longer serves, but may still have to answer. The NIC is held.
	Superseded(*Revision)
	// Needed says whether a superseded revision may still have to answer.
	Needed(*Revision) (bool, error)
	// Free takes back what Take gave, also if Take gave only some of it.
	Free(*Revision)
	// Wrote is called when the host has changed a lambda's memory.
	Wrote() error

	// Resources are the kinds of things that the module gives lambdas. Their functions may be called at any time after Open, also after Close.
	Resources() []backend.Resource
	// Counters are those of the NIC program's counters that only the module counts.
	Counters() []Counter
}

// A Counter is one of the NIC program's counters, for all lambdas together.
type Counter struct {
	Index program.RootLnCounter
	Name  string // in GET /metrics, between lambdanic_nic_ and _total
	Help  string // a sentence that says what is counted
}

// NIC is a module's view of its NIC.
type NIC interface {
	Site() Site
	// Reach says by which addresses the NIC is reached now.
	Reach() *Reach
	// Serving is the revision that serves a workload, nil for none.
	Serving(workload uint32) *Revision
	// AllServing are all serving revisions, by workload.
	AllServing() iter.Seq2[uint32, *Revision]
	// Hold keeps revisions from beginning or ceasing to serve until release is called.
	Hold() (release func())
}

// Site is where a NIC is, and the names that belong to it.
type Site struct {
	Instance  string // names everything that belongs to it
	RunDir    string
	Pins      string // the directory of its pins
	Interface string // with the NIC program; "" before there is one
	Index     int    // of the interface
	Namespace string // the network namespace that the interface is in; "" for ours
	Virtual   bool   // it was made for the NIC program
	Offload   bool   // lambdas may go onto its card
	Log       *slog.Logger
}

// Pin is the path of a pin.
func (s Site) Pin(name string) string { return filepath.Join(s.Pins, name) }

// Reach is the addresses by which a NIC is reached.
type Reach struct {
	Addr     netip.Addr   `json:"addr"`
	Addr6    netip.Addr   `json:"addr6,omitzero"`
	Addrs    []netip.Addr `json:"addrs"` // all to which requests may be sent
	HostAddr netip.Addr   `json:"host_addr"`
}

// Revision is a loaded revision of a lambda.
type Revision struct {
	Slot   uint32       // its place on the NIC; 0 for none yet
	Record program.Slot // the slot's record
}

// IsStage is true for a match stage, which sees the packets that no workload ID selects.
func (r *Revision) IsStage() bool { return r.Record.Mode == uint32(program.RootLnModeLN_MODE_STAGE) }

// A Change replaces a revision by another.
type Change struct {
	*backend.Deployment
	Object   *ebpf.CollectionSpec // the object file; nil in Prepare, when it is loaded
	Next     *Revision            // nil in Check, when it has no slot yet
	Previous *Revision            // nil for the first of a workload
}

// Base implements all of Module's methods and does nothing; modules embed it.
type Base struct{ nothing }

type nothing struct{}

func (nothing) Half() *program.Half                              { return nil }
func (nothing) Open(NIC, *ebpf.Collection) error                 { return nil }
func (nothing) Start()                                           {}
func (nothing) Close() error                                     { return nil }
func (nothing) Down(Site) error                                  { return nil }
func (nothing) Adopt(*Revision)                                  {}
func (nothing) Adopted() error                                   { return nil }
func (nothing) Check(*Change) error                              { return nil }
func (nothing) Take(*Change) error                               { return nil }
func (nothing) Shared(*ebpf.CollectionSpec) map[string]*ebpf.Map { return nil }
func (nothing) Prepare(context.Context, *Change) error           { return nil }
func (nothing) Swapped([]*Revision) error                        { return nil }
func (nothing) Dropped() error                                   { return nil }
func (nothing) Removed(uint32) error                             { return nil }
func (nothing) Superseded(*Revision)                             {}
func (nothing) Needed(*Revision) (bool, error)                   { return false, nil }
func (nothing) Free(*Revision)                                   {}
func (nothing) Wrote() error                                     { return nil }
func (nothing) Resources() []backend.Resource                    { return nil }
func (nothing) Counters() []Counter                              { return nil }
