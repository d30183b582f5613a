// Package nics is target nic: the NIC programs on a node's interfaces (internal/nic), which run the same lambdas and form one
// place. The package brings them up, watches over them, and takes them down.
package nics

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

// Options say which NICs a node has.
type Options struct {
	Interfaces   []string // real interfaces; none makes a virtual NIC
	Mode         nic.Mode
	Addresses    []netip.Addr // that the NIC serves besides its own
	UnknownError bool         // the NIC answers unknown workloads with an error
}

// Target is target nic of one node.
type Target struct {
	site backend.Site
	opts Options
	nics list
}

var (
	_ backend.Target         = (*Target)(nil)
	_ backend.Tender         = (*Target)(nil)
	_ backend.Counting       = (*Target)(nil)
	_ backend.Demultiplexing = (*Target)(nil)
)

// New makes the target.
func New(site backend.Site, opts Options) *Target { return &Target{site: site, opts: opts} }

// Name is nic.
func (t *Target) Name() api.Target { return api.TargetNIC }

// Counters reads what each NIC counted for all lambdas together, by interface.
func (t *Target) Counters() (map[string][]backend.Counter, error) { return t.nics.counters() }

// Demux returns the NIC program with this ID, or nil if it is none of this node.
func (t *Target) Demux(id ebpf.ProgramID) (*demux.Root, error) {
	for _, n := range t.nics.all() {
		if r, err := n.Demux(id); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// Limits are what namespaces may do on all NICs of the node.
func (t *Target) Limits() *limits.Limits {
	for _, n := range t.nics.all() {
		return n.Limits()
	}
	return nil
}

// Close releases the NICs, which go on answering.
func (t *Target) Close() error { return t.nics.close() }

// Up brings the NICs up. It fails if a named interface does not come up, or the kernel refuses the NIC program. If a NIC does not come
// up for another reason, such as a missing privilege, the place says why.
func (t *Target) Up(ctx context.Context) (backend.Place, error) {
	place, err := t.open(ctx)
	var unfit *kernel.Error
	switch {
	case err == nil:
		return place, nil
	case len(t.opts.Interfaces) > 0, errors.As(err, &unfit):
		return place, err
	}
	return unavailable(err), nil
}

func unavailable(err error) backend.Place {
	reason := err.Error() + ": `lambdanic doctor` says what this machine can do"
	if os.Getuid() != 0 && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)) {
		reason = "it needs root: run `sudo lambdanic up`"
	}
	return backend.Place{Target: api.TargetNIC, Reason: reason}
}

// open brings all interfaces up. If one fails, it takes down those that were not up before.
func (t *Target) open(ctx context.Context) (place backend.Place, err error) {
	place.Target = api.TargetNIC
	var fresh []string
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, t.nics.close())
		for _, iface := range fresh {
			err = errors.Join(err, t.drop(context.WithoutCancel(ctx), iface))
		}
	}()
	interfaces := t.opts.Interfaces
	if len(interfaces) == 0 {
		interfaces = []string{virtual}
	}
	if err := t.dropOthers(ctx, interfaces); err != nil {
		return place, err
	}
	var group backend.Group
	var details []string
	for _, iface := range interfaces {
		n, err := t.openOne(ctx, iface)
		if err != nil {
			return place, err
		}
		if !n.Adopted() {
			fresh = append(fresh, iface)
		}
		group = append(group, n)
		if !place.Host.IsValid() {
			place.Host = n.HostAddr()
		}
		place.Interfaces = append(place.Interfaces, n.Interface())
		details = append(details, fmt.Sprintf("%s, %s mode, at %v", n.Interface(), n.Mode(), n.Addr()))
	}
	place.Detail = strings.Join(details, "; ")
	place.Backend = group.Simplify()
	return place, nil
}

func (t *Target) openOne(ctx context.Context, iface string) (*nic.NIC, error) {
	c := t.config(iface)
	pacer, err := supervise.FindBinary("pacer")
	if err != nil {
		t.site.Log.Warn("external calls that get no answer end when the client resends", "because", err)
	}
	c.Mode, c.Addresses, c.UnknownError, c.PacerBinary, c.Log = t.opts.Mode, t.opts.Addresses, t.opts.UnknownError, pacer, t.site.Log
	// Made first, as this directory tells Down that there may be a NIC.
	if err := os.MkdirAll(c.RunDir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	n, err := nic.Up(ctx, c)
	if err != nil {
		if os.Remove(c.RunDir) == nil {
			err = errors.Join(err, t.dropLimits(c))
		}
		return nil, err
	}
	t.nics.add(n)
	t.site.Log.Info("NIC is up", "interface", n.Interface(), "mode", n.Mode(), "address", n.Addr(), "adopted", n.Adopted())
	return n, nil
}

// virtual stands for the interface of the virtual NIC.
const virtual = ""

// config says where the NIC program on an interface is and where its records are. That is enough to take it down.
func (t *Target) config(iface string) nic.Config {
	c := nic.Config{
		Instance: t.site.Instance, RunDir: filepath.Join(t.site.RunDir, virtualDir),
		Limits: t.site.Instance + ":limits", // no interface has a colon in its name
	}
	if iface != virtual {
		c.Instance, c.Interface, c.RunDir = c.Instance+"_"+pinName.Replace(iface), iface, filepath.Join(t.site.RunDir, iface)
	}
	return c
}

// pinName turns an interface's name into one that the BPF file system takes: without dots.
var pinName = strings.NewReplacer("%", "%25", ".", "%2e")

// virtualDir is the virtual NIC's directory among those of NICs; no interface can have this name.
const virtualDir = ".virtual"
