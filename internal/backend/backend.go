// Package backend holds what all backends, the places that run lambdas, have in common: what they are given and what they report. The
// backends are internal/nic (target nic) and internal/backend/process; internal/worker drives them.
package backend

import (
	"context"
	"errors"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// Deployment is one revision of one lambda, ready to run: everything that a backend needs.
type Deployment struct {
	Namespace string
	// NamespaceID is the namespace's number (store.Namespace), by which a backend accounts for it; 0: it has none.
	NamespaceID uint32
	Name        string
	Workload    uint32
	Revision    uint32   // of this lambda, increasing from 1
	Spec        api.Spec // with defaults
	Services    []Service

	Layouts api.Layouts // of the global variables that a later revision takes over

	BPF    []byte // ELF object file for target nic
	Native []byte // shared library for all other targets
	Source []byte // packed, for the program of a card
}

// Fused is one program for several lambdas (compiler/link), and which of them are to serve from it.
type Fused struct {
	BPF     []byte
	Spec    api.Spec      // of the program: its limits are for all members together
	Members []FusedMember // in the program's order
	Serving []Deployment  // members that are to serve; their own BPF is not used
}

// FusedMember is one lambda in a program.
type FusedMember struct {
	Name     string // within the program
	Workload uint32
}

// Service is an external service with its addresses resolved. The order is that of Spec.Services.
type Service struct {
	Name     string
	Protocol api.ServiceProtocol
	Servers  []netip.AddrPort
	Weights  []int // of the servers; empty: all the same
	Timeout  api.Duration
	Retries  int
	ID       api.ServiceID // of protocol raw; of no bytes: requests have no ID
}

// Status is what a backend reports about one workload that it runs.
type Status struct {
	Workload uint32         `json:"workload"`
	Revision uint32         `json:"revision"` // 0 where the members of a group differ
	Newest   uint32         `json:"newest"`   // the newest revision that a member of a group serves
	Endpoint netip.AddrPort `json:"endpoint"` // where λ-RPC requests for it go
	Stats    Stats          `json:"stats"`
	Fault    string         `json:"fault,omitempty"` // why the last run that failed did, where the backend knows
}

// Prepared is a deployment that lacks only the swap, so that several backends can swap together or not at all. Its
// backend does nothing else meanwhile: Swap or Drop has to follow, once.
type Prepared interface {
	// Migrate fills what the revision takes over by a function. Later writes of the revision before are not taken over: Swap has to
	// follow at once.
	Migrate() error
	// Swap makes the revision serve.
	Swap()
	// Drop frees the revision, which never served.
	Drop() error
}

// Objects is a backend that lets the host read and write the objects of its lambdas. Values are as the machine has them in memory.
type Objects interface {
	// Objects lists them, by name.
	Objects(ctx context.Context, workload uint32) ([]api.Object, error)
	ReadObject(ctx context.Context, workload uint32, name string) ([]byte, error)
	// WriteObject also has packets go on that wait for the host.
	WriteObject(ctx context.Context, workload uint32, name string, value []byte) error
}

// ErrNoObject says that a lambda has no object of that name, ErrObjectSize that a value differs in size from the object.
var (
	ErrNoObject   = errors.New("no such object")
	ErrObjectSize = errors.New("wrong size")
)

// Stats are counters since the revision was loaded.
type Stats = api.Stats

// Counter is a counter of one NIC program, for all lambdas together. GET /metrics puts its name between lambdanic_nic_ and _total.
type Counter = api.Counter
