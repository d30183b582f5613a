// Package coapjwt is the ikernel coap-jwt: it keeps requests without a valid token away from a running, unmodified CoAP server.
package coapjwt

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem guard -type cj_limit -type cj_verdict -type cj_secret -type cj_secrets Guard guard.bpf.c

// Options say which server a Guard is for. The zero value of an option is its default.
type Options struct {
	demux.Server                  // which listens by UDP
	Keys         []api.IkernelKey // by one of which a token must be signed
}

// A Guard checks the tokens of requests to a running CoAP server.
type Guard struct {
	objects    GuardObjects
	keys       *GuardCjSecrets // what the NIC program uses
	attachment *demux.Attachment
}

// Attach puts a guard in front of a running CoAP server. Call it on a thread of the server's network namespace. It needs root.
func Attach(o Options) (_ *Guard, err error) {
	keys, err := readKeys(o.Keys)
	if err != nil {
		return nil, err
	}
	addrs, err := o.Find()
	if err != nil {
		return nil, err
	}
	g := &Guard{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if err := g.load(o.Port, addrs, o.Log); err != nil {
		return nil, err
	}
	if err := g.replace(keys); err != nil {
		return nil, err
	}
	if g.attachment, err = o.Server.Attach(g.objects.CjGuard, g.objects.LnNext); err != nil {
		return nil, err
	}
	return g, nil
}

// load loads the NIC program.
func (g *Guard) load(port uint16, addrs []netip.Addr, log *slog.Logger) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift the limit on locked memory: %w: run as root", err)
	}
	spec, err := LoadGuard()
	if err != nil {
		return err
	}
	if err := errors.Join(demux.SetServer(spec, addrs, log), spec.Variables["cj_port"].Set(port)); err != nil {
		return err
	}
	xdp.Untie(spec)
	if err := spec.LoadAndAssign(&g.objects, nil); err != nil {
		return kernel.Fails("does not load the guard of a CoAP server", err)
	}
	return nil
}

// SetKeys replaces the keys in one step: each packet is checked by the former ones or by the new ones, and by the new ones alone from when it returns.
// undo brings the former ones back, whatever is in their files now.
func (g *Guard) SetKeys(keys []api.IkernelKey) (undo func() error, err error) {
	all, err := readKeys(keys)
	if err != nil {
		return nil, err
	}
	former := g.keys
	if err := g.replace(all); err != nil {
		return nil, err
	}
	return func() error { return g.replace(former) }, nil
}

// replace has the NIC program use these keys. When a map within a map was replaced, the kernel waits until no program uses the former one (kernel/bpf/syscall.c,
// maybe_wait_bpf_programs).
func (g *Guard) replace(keys *GuardCjSecrets) error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "cj_keys_", Type: ebpf.Array, KeySize: 4, ValueSize: secretsSize, MaxEntries: 1})
	if err != nil {
		return kernel.Fails("does not make a map for the keys", err)
	}
	defer m.Close() // the map of maps has it
	if err := errors.Join(m.Put(uint32(0), keys), g.objects.CjKeys.Put(uint32(0), m)); err != nil {
		return fmt.Errorf("set the keys: %w", err)
	}
	g.keys = keys
	return nil
}

// Attachment says where requests are checked.
func (g *Guard) Attachment() *demux.Attachment { return g.attachment }

// Close detaches the guard. From then on the server gets all requests, as before.
func (g *Guard) Close() error {
	var errs []error
	if g.attachment != nil {
		errs = append(errs, g.attachment.Close())
		g.attachment = nil
	}
	return errors.Join(append(errs, g.objects.Close())...)
}
