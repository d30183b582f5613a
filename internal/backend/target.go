package backend

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// Backend runs lambdas in one place of a node: on its NIC, or as processes of the host.
type Backend interface {
	// Deploy makes a revision serve its workload, in place of the revision that did. When it returns an error, the earlier
	// revision serves as before. Deploying what runs already does nothing.
	Deploy(ctx context.Context, d Deployment) error
	// Remove ends a workload. It is not an error if the workload does not run.
	Remove(ctx context.Context, workload uint32) error
	// Status lists what runs, including what an earlier daemon deployed.
	Status(ctx context.Context) ([]Status, error)
	// Endpoint says where λ-RPC requests for a workload go.
	Endpoint(workload uint32) (netip.AddrPort, bool)
}

// Asker is a backend that runs a lambda on a request of one packet in the caller's own thread. ok is false if the request has to be
// sent to the endpoint instead.
type Asker interface {
	Ask(q api.Header, body, reply []byte) (h api.Header, payload []byte, ok bool, err error)
}

// Accounting is a backend that counts for namespaces.
type Accounting interface {
	// Accounts reads what each namespace's lambdas counted together, by the namespace's number (Deployment.NamespaceID): what runs, and what
	// ran since the backend was made. It is nil while the backend counts nothing.
	Accounts(ctx context.Context) (map[uint32]Stats, error)
}

// Limits are what namespaces may do on a backend.
type Limits struct {
	Budget api.Budget
	// Quotas are those of all namespaces, by their numbers. A namespace that is not among them has neither share nor quota.
	Quotas map[uint32]api.Quota
	// Keys are those of the namespaces that have some, by their numbers.
	Keys map[uint32]api.Keys
	// Networks are the virtual networks that belong to namespaces, and the namespaces' numbers.
	Networks map[api.Network]uint32
}

// Limiting is a backend that keeps namespaces to Limits.
type Limiting interface {
	Limit(ctx context.Context, limits Limits) error
}

// Fuser is a backend that runs several lambdas as one program.
type Fuser interface {
	// DeployFused deploys several lambdas at once: all serve, or each stays as before.
	DeployFused(ctx context.Context, f Fused) error
}

// Target is a way to run lambdas on one node. Each is a package of its own, and a line in targets (internal/daemon/targets.go).
// One goroutine calls its methods, except Tend. While Tend runs, nobody calls the others.
type Target interface {
	// Name is what a spec's list of targets calls it: a result of api.NewTarget.
	Name() api.Target
	// Up brings the target's place up, and adopts what an earlier daemon left running. If this machine cannot have one, the place has no
	// backend and says why. An error is for problems that the user has to solve first; then Up leaves nothing behind.
	Up(ctx context.Context) (Place, error)
	// Close releases the place. What runs there goes on.
	Close() error
	// Down ends what a daemon that is gone left running, and removes all that is kept for it. If nothing is there, that is not an error.
	Down(ctx context.Context) error
}

// Tender is a target whose place may get lost while a daemon serves.
type Tender interface {
	// Tend watches over the place until ctx ends. Each time the place is lost, Tend calls replace. That calls up while nothing is
	// deployed, takes the place that up makes, and has everything that ran in the old place deployed there.
	Tend(ctx context.Context, replace Replace)
}

// Counting is a target that counts for all its lambdas together.
type Counting interface {
	// Counters reads what each of the target's devices counted, by the device's name.
	Counters() (map[string][]Counter, error)
}

// Demultiplexing is a target whose programs on interfaces hand packets over to ikernels.
type Demultiplexing interface {
	// Demux returns the target's program with this ID, or nil if it has none.
	Demux(ebpf.ProgramID) (*demux.Root, error)
	// Limits are what namespaces may do in these programs; nil: there is none at the moment.
	Limits() *limits.Limits
}

// Replace replaces a place by what up makes: Tender.Tend.
type Replace func(ctx context.Context, up func(context.Context) (Place, error)) error

// Site is what a node gives each of its targets.
type Site struct {
	Instance string
	RunDir   string // of this target alone, for what has to survive the daemon, but not a reboot
	Log      *slog.Logger
}

// Place is what a node has for a target: a backend, or the reason why it has none.
type Place struct {
	Target  api.Target
	Backend Backend // nil where the target is not available
	Reason  string  // why it is not
	Detail  string  // for people: interface and mode, for instance
	// Interfaces are those by which packets come to its lambdas.
	Interfaces []string
	// Host is the host's address as seen from the place: what "host" means in a service's address. If it is a loopback address, the place
	// reaches all loopback addresses.
	Host netip.Addr
}
