package backend

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// Backend runs lambdas in one place of a node: on its NIC, or as processes of the host.
type Backend interface {
	// Deploy makes a revision serve its workload, in place of the revision that did. When it returns an error, the earlier
	// revision serves as before. Deploying what runs already does nothing.
	Deploy(ctx context.Context, d Deployment) error
	// Remove ends a workload. It is no error where the workload does not run.
	Remove(ctx context.Context, workload uint32) error
	// Status lists what runs, also what an earlier daemon deployed.
	Status(ctx context.Context) ([]Status, error)
	// Endpoint says where λ-RPC requests for a workload go.
	Endpoint(workload uint32) (netip.AddrPort, bool)
}

// Asker is a backend that runs a lambda on a request of one packet in the caller's own thread. ok is false where the request has to be
// sent to the endpoint instead.
type Asker interface {
	Ask(q api.Header, body, reply []byte) (h api.Header, payload []byte, ok bool, err error)
}

// Fuser is a backend that runs several lambdas as one program.
type Fuser interface {
	// DeployFused is Deploy of several lambdas at once: all serve, or each is as before.
	DeployFused(ctx context.Context, f Fused) error
}

// Target is a way to run lambdas, as one node has it. Each is a package of its own, and a line in targets (internal/daemon/targets.go).
// Its methods are called by one goroutine, but for Tend, during which nobody calls the others.
type Target interface {
	// Name is what a spec's list of targets calls it: a result of api.NewTarget.
	Name() api.Target
	// Up brings its place up, and adopts what an earlier daemon left running. Where this machine cannot have one, the place has no
	// backend and says why. An error is for what the user has to see to first: then nothing is left behind that was not there before.
	Up(ctx context.Context) (Place, error)
	// Close lets go of the place. What runs there goes on.
	Close() error
	// Down ends what runs, of a daemon that is gone, and removes all that is kept for it. What is not there is no error.
	Down(ctx context.Context) error
}

// Tender is a target whose place may get lost while a daemon serves.
type Tender interface {
	// Tend watches over the place until ctx ends. Each time that it is lost, Tend calls replace, which calls up while nothing is
	// deployed, takes the place that up makes, and has everything that ran in the old one deployed there.
	Tend(ctx context.Context, replace Replace)
}

// Replace replaces a place by what up makes: Tender.Tend.
type Replace func(ctx context.Context, up func(context.Context) (Place, error)) error

// Site is what a node gives each of its targets.
type Site struct {
	Instance string
	RunDir   string // for the target alone; what has to survive the daemon, but not a reboot
	Log      *slog.Logger
}

// Place is what a node has for a target: a backend, or the reason why there is none.
type Place struct {
	Target  api.Target
	Backend Backend // nil where the target is not available
	Reason  string  // why not
	Detail  string  // for people: interface and mode, for instance
	// Host is the host's address as seen from there: what "host" means in a service's address. Where it is of the loopback, all of that
	// can be reached.
	Host netip.Addr
}
