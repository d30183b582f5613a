// Package backend holds what every place that runs lambdas has in common: what it is given and what it reports. The
// places are internal/nic (target nic) and internal/backend/process; internal/worker drives them.
package backend

import (
	"context"
	"errors"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// Deployment is one revision of one lambda, ready to run: everything that a backend needs, and nothing to look up.
type Deployment struct {
	Namespace string
	Name      string
	Workload  uint32
	Revision  uint32   // of this lambda, increasing from 1
	Spec      api.Spec // with defaults
	Services  []Service

	Layouts api.Layouts // of the objects that a later revision takes over

	BPF    []byte // ELF object for target nic
	Native []byte // shared object for all other targets
	Source []byte // packed, for the program of a card
}

// Fused is one program for several lambdas (compiler/link), with those of them that are to serve from it.
type Fused struct {
	BPF     []byte
	Spec    api.Spec      // of the program: what all members may take together
	Members []FusedMember // of the program, in its order
	Serving []Deployment  // each of a member's workload; their own BPF is not used
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
	Weights  []int // of the servers; none: all the same
	Timeout  api.Duration
	Retries  int
	ID       api.ServiceID // of protocol raw; no bytes: none
}

// Status is what a backend says of one workload that it runs.
type Status struct {
	Workload uint32         `json:"workload"`
	Revision uint32         `json:"revision"` // 0 where the members of a group differ
	Newest   uint32         `json:"newest"`   // of the revisions that any member of a group serves
	Endpoint netip.AddrPort `json:"endpoint"` // where λ-RPC requests for it go
	Stats    Stats          `json:"stats"`
	Fault    string         `json:"fault,omitempty"` // why a run was ended last, where the backend knows
}

// Prepared is a deployment of which only the swap is missing, so that several backends can swap together or not at all. Its
// backend does nothing else meanwhile: Swap or Drop has to follow, once.
type Prepared interface {
	// Migrate fills what the revision takes over by a function. What the revision before it writes from here on is lost to it:
	// Swap has to follow at once.
	Migrate() error
	// Swap makes the revision serve.
	Swap()
	// Drop frees the revision, which never served.
	Drop() error
}

// Objects is what a backend has that lets the host reach the global objects of the lambdas that it runs. Values are as the machine has
// them in memory.
type Objects interface {
	// Objects lists them, by name.
	Objects(ctx context.Context, workload uint32) ([]api.Object, error)
	ReadObject(ctx context.Context, workload uint32, name string) ([]byte, error)
	// WriteObject also lets go on what waits for the host.
	WriteObject(ctx context.Context, workload uint32, name string, value []byte) error
}

// ErrNoObject says that a lambda has no object of that name, and ErrObjectSize that a value has not the object's size.
var (
	ErrNoObject   = errors.New("no such object")
	ErrObjectSize = errors.New("wrong size")
)

// Stats are counters since the revision was loaded.
type Stats = api.Stats

// Counter is what one NIC program counted of something for all lambdas together.
type Counter struct {
	Name  string // in GET /metrics, between lambdanic_nic_ and _total
	Help  string // a sentence that says what is counted
	Value uint64
}
