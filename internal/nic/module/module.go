// Package module says what a module of a NIC is: a feature beside requests of one packet. What of it runs in the kernel, if anything, is
// bpf/NAME; what the host does for it is a package in this directory, internal/nic/module/NAME.
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

// A Module is called by one goroutine at a time, but for what its own package documents. The order of a NIC's life is: Open; Adopt for
// each revision that is there, and Adopted; Start; for each deployment Check, Take, Prepare, and then Swapped or Dropped and Free;
// Superseded, Needed and Free for each revision that ends; Close. Embed Base to do nothing in any of them.
type Module interface {
	// Half is what of the module runs in the kernel; nil for one that is the host's alone.
	Half() *program.Half
	// Open takes up the module's maps and programs, when the NIC program was loaded or opened. half is nil where Half is.
	Open(nic NIC, half *ebpf.Collection) error
	// Start begins what goes on by itself from now on, since the NIC program is on its interface.
	Start()
	// Close lets go of everything. The NIC program serves on.
	Close() error
	// Down removes what outlives the process, whether or not the module was opened, or the NIC is there.
	Down(Site) error

	// Adopt takes over a revision that an earlier daemon loaded.
	Adopt(*Revision)
	// Adopted is called after that for the last one: those that NIC.Serving names serve on.
	Adopted() error

	// Check refuses a deployment that cannot be.
	Check(*Change) error
	// Take gives a revision the records that it needs and fills in what its slot says of them.
	Take(*Change) error
	// Shared are maps of the module's that a lambda's object uses in place of its own of the same names.
	Shared(*ebpf.CollectionSpec) map[string]*ebpf.Map
	// Prepare does what a deployment needs besides. Swapped or Dropped follows; both are also called for members of a fused program, for
	// which Prepare is not.
	Prepare(context.Context, *Change) error
	// Swapped is called when revisions serve that did not before. The NIC goes on without what an error says.
	Swapped([]*Revision) error
	// Dropped is called in its place when they are not to serve.
	Dropped() error

	// Removed is called when a workload is served no longer. The NIC is held.
	Removed(workload uint32) error
	// Superseded is called when a revision serves no longer, but may still have to answer. The NIC is held.
	Superseded(*Revision)
	// Needed says whether it still has to.
	Needed(*Revision) (bool, error)
	// Free takes back what Take gave, of which there may be a part only.
	Free(*Revision)
	// Wrote is called when the host has changed a lambda's memory.
	Wrote() error

	// Resources are what lambdas have by the module. Their functions may be called at any time between Open and Close.
	Resources() []backend.Resource
	// Counters are those of the NIC program's that the module counts alone.
	Counters() []Counter
}

// A Counter is one of the NIC program's, of all lambdas together.
type Counter struct {
	Index program.RootLnCounter
	Name  string // in GET /metrics, between lambdanic_nic_ and _total
	Help  string // a sentence that says what is counted
}

// NIC is what a module sees of the NIC that it is a part of.
type NIC interface {
	Site() Site
	// Reach says by which addresses it is reached now.
	Reach() *Reach
	// Serving is the revision that serves a workload, nil for none.
	Serving(workload uint32) *Revision
	// AllServing are all of those, by workload.
	AllServing() iter.Seq2[uint32, *Revision]
	// Hold keeps revisions from beginning or ceasing to serve until release is called.
	Hold() (release func())
}

// Site is where a NIC is, and what is called after it.
type Site struct {
	Instance  string // names everything that belongs to it
	RunDir    string
	Pins      string // the directory of its pins
	Interface string // that has the NIC program; "" before there is one
	Index     int    // of the interface
	Namespace string // the network namespace that the interface is in; "" for ours
	Virtual   bool   // it was made for the NIC program
	Offload   bool   // lambdas may go onto its card
	Log       *slog.Logger
}

// Pin is the path of a pin.
func (s Site) Pin(name string) string { return filepath.Join(s.Pins, name) }

// Reach is by which addresses a NIC is reached.
type Reach struct {
	Addr     netip.Addr   `json:"addr"`
	Addr6    netip.Addr   `json:"addr6,omitzero"`
	Addrs    []netip.Addr `json:"addrs"` // all of them: to whom requests may be addressed
	HostAddr netip.Addr   `json:"host_addr"`
}

// Revision is a loaded revision of a lambda.
type Revision struct {
	Slot   uint32       // its place on the NIC; 0 for none yet
	Record program.Slot // what stands there
}

// IsStage is true for a match stage, which sees the packets that no workload ID selects.
func (r *Revision) IsStage() bool { return r.Record.Mode == uint32(program.RootLnModeLN_MODE_STAGE) }

// A Change puts a revision in the place of another.
type Change struct {
	*backend.Deployment
	Object   *ebpf.CollectionSpec // nil in Prepare, when it is loaded
	Next     *Revision            // nil in Check, when it has no slot yet
	Previous *Revision            // nil for the first of a workload
}

// Base is embedded by modules: it does nothing in any of Module's methods.
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
