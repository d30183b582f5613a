// Package sourcefilter is the ikernel source-filter: it keeps datagrams away from a running server that come from sources that are not allowed, or that
// send too many.
package sourcefilter

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf/rlimit"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem filter -type sf_limit -type sf_verdict -type sf_prefix Filter filter.bpf.c

// Options say which server a Filter is for, and what it gets. There is a prefix or a rate, at least.
type Options struct {
	demux.Server                // which listens by UDP
	Allow        []netip.Prefix // of the sources that are allowed; none: all are
	Rate         uint32         // requests per second of each source address; 0: any number

	period time.Duration // in which there may be so many requests; default: a second
}

// A Filter drops datagrams to a running server.
type Filter struct {
	objects    FilterObjects
	attachment *demux.Attachment
}

// Attach puts a filter in front of a running server. Call it on a thread of the server's network namespace. It needs root.
func Attach(o Options) (_ *Filter, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	addrs, err := o.Find()
	if err != nil {
		return nil, err
	}
	f := &Filter{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := f.load(&o, addrs); err != nil {
		return nil, err
	}
	if f.attachment, err = o.Server.Attach(f.objects.SfFilter, f.objects.LnNext); err != nil {
		return nil, err
	}
	return f, nil
}

// load loads the NIC program for a server at these addresses.
func (f *Filter) load(o *Options, addrs []netip.Addr) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift the limit on locked memory: %w: run as root", err)
	}
	spec, err := LoadFilter()
	if err != nil {
		return err
	}
	var interval uint64
	if o.Rate > 0 {
		interval = uint64(cmp.Or(o.period, time.Second)) / uint64(o.Rate)
	}
	if err := errors.Join(
		demux.SetServer(spec, addrs, o.Log), spec.Variables["sf_port"].Set(o.Port), spec.Variables["sf_prefixes"].Set(uint32(len(o.Allow))),
		spec.Variables["sf_interval"].Set(interval), spec.Variables["sf_burst"].Set(interval*uint64(o.Rate)),
	); err != nil {
		return err
	}
	xdp.Untie(spec)
	if err := spec.LoadAndAssign(&f.objects, nil); err != nil {
		return kernel.Fails("does not load the filter of sources", err)
	}
	for _, p := range o.Allow {
		if err := f.objects.SfAllowed.Put(key(p), uint32(1)); err != nil {
			return fmt.Errorf("allow %s: %w", p, err)
		}
	}
	return nil
}

// key is a prefix as the NIC program looks for it.
func key(p netip.Prefix) *FilterSfPrefix {
	const family = 8 // bits
	k := &FilterSfPrefix{Len: uint32(family + p.Bits()), Family: 4}
	if p.Addr().Is6() {
		k.Family = 6
	}
	copy(k.Addr[:], p.Addr().AsSlice())
	return k
}

// Attachment says where datagrams are looked at.
func (f *Filter) Attachment() *demux.Attachment { return f.attachment }

// Close detaches the filter. From then on the server gets all datagrams, as before.
func (f *Filter) Close() error {
	var errs []error
	if f.attachment != nil {
		errs = append(errs, f.attachment.Close())
		f.attachment = nil
	}
	return errors.Join(append(errs, f.objects.Close())...)
}
