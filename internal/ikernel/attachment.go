package ikernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/supervise"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// An attachment is an ikernel that is attached, or waits until it can be.
type attachment struct {
	port  uint16 // of the record
	order int64  // and its order
	where string // and its network namespace, for errors; "": the daemon's

	mu       sync.Mutex
	record   store.Ikernel
	instance Instance           // nil: it waits
	meter    *demux.Meter       // of its namespace; nil: it is of none
	within   string             // the network namespace, by the kernel's number
	process  *supervise.Process // whose end detaches it; nil: none
	waits    error              // why
	gone     bool               // detached for good
}

// errEnded says that the process is gone for which an ikernel was attached.
var errEnded = errors.New("the process has ended")

func newAttachment(r *store.Ikernel) *attachment {
	a := &attachment{port: r.Port, order: r.Order, record: *r}
	switch {
	case r.PID != 0:
		a.where = fmt.Sprintf(" of process %d", r.PID)
	case r.Netns != "":
		a.where = " of network namespace " + r.Netns
	}
	return a
}

// attach attaches it. It changes nothing where it fails.
func (a *attachment) attach(c *Config) error {
	process, err := follow(&a.record)
	if err != nil {
		return err
	}
	meter, err := c.meter(a.record.Namespace)
	var instance Instance
	var within string
	if err == nil {
		instance, within, err = attach(&a.record, process, meter, c)
	}
	if err != nil {
		if process != nil {
			_ = process.Close()
		}
		if meter != nil {
			_ = meter.Close()
		}
		return err
	}
	a.instance, a.meter, a.within, a.process, a.waits = instance, meter, within, process, nil
	if process != nil {
		a.record.Started = process.Start
	}
	return nil
}

// attach attaches an ikernel in the server's network namespace, that of the process if there is one.
func attach(r *store.Ikernel, process *supervise.Process, meter *demux.Meter, c *Config) (instance Instance, within string, err error) {
	ns, err := OpenNamespace(r.PID, r.Netns)
	if err != nil {
		return nil, "", err
	}
	defer ns.Close()
	if process != nil {
		if _, gone := process.Gone(); gone { // the namespace may be that of another process with its number
			return nil, "", errEnded
		}
	}
	to := demux.Server{Port: r.Port, Interfaces: r.Interfaces, Mode: xdp.Mode(r.Mode), Order: r.Order, Demux: c.Demux, Meter: meter, Log: c.Log}
	err = veth.In(ns, func() error {
		instance, err = kinds[r.Ikernel].attach(&r.IkernelRequest, to, c)
		return err
	})
	return instance, ns.UniqueId(), err
}

// follow follows the process in whose namespace the server is, if one is given.
func follow(r *store.Ikernel) (*supervise.Process, error) {
	if r.PID == 0 {
		return nil, nil
	}
	p, err := supervise.Follow(r.PID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errEnded, err)
	}
	if r.Started != 0 && p.Start != r.Started {
		return nil, errors.Join(fmt.Errorf("%w, and its number %d is another one's", errEnded, r.PID), p.Close())
	}
	return p, nil
}

// OpenNamespace opens the network namespace of the process with this number, if that is not 0, or else the one of this name, or the caller's own.
func OpenNamespace(pid int, name string) (ns netns.NsHandle, err error) {
	which := "of the server"
	switch {
	case pid != 0:
		which = fmt.Sprintf("of process %d", pid)
		ns, err = netns.GetFromPid(pid)
	case name != "":
		which = name + ", as `ip netns` lists it"
		ns, err = netns.GetFromName(name)
	default:
		ns, err = netns.Get()
	}
	if err != nil {
		return ns, fmt.Errorf("open the network namespace %s: %w", which, err)
	}
	return ns, nil
}

// detach lets the server get all packets again.
func (a *attachment) detach() error {
	var errs []error
	if a.instance != nil {
		errs = append(errs, a.instance.Close())
	}
	if a.meter != nil {
		errs = append(errs, a.meter.Close())
	}
	if a.process != nil {
		errs = append(errs, a.process.Close())
	}
	a.instance, a.meter, a.process = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("detach %s: %w", a.record.Name, err)
	}
	return nil
}

// lost says why packets no longer get to the ikernel, or are not metered any more; nil: all is well.
func (a *attachment) lost(c *Config) error {
	if err := errors.Join(a.moved(), a.unmetered(c)); err != nil {
		return err
	}
	if l, ok := a.instance.(losing); ok {
		if err := l.Lost(); err != nil {
			return err
		}
	}
	at := a.instance.Attachment()
	if at == nil {
		return nil
	}
	for _, p := range at.Ports() {
		if err := p.Attached(); err != nil {
			return err
		}
	}
	return nil
}

// moved says that the name of the server's network namespace is gone, or is now another one's. The ikernel keeps the former one alive.
func (a *attachment) moved() error {
	if a.record.Netns == "" {
		return nil
	}
	ns, err := OpenNamespace(a.record.PID, a.record.Netns)
	if err != nil {
		return err
	}
	defer ns.Close()
	if ns.UniqueId() != a.within {
		return fmt.Errorf("network namespace %s is another one than before", a.record.Netns)
	}
	return nil
}

// describe is what users see of it.
func (a *attachment) describe() (*api.Ikernel, error) {
	i := &api.Ikernel{IkernelRequest: a.record.IkernelRequest, State: api.IkernelAttached}
	if a.instance == nil {
		i.State, i.Reason = api.IkernelWaiting, "it is about to be attached"
		if a.waits != nil {
			i.Reason = a.waits.Error()
		}
		return i, nil
	}
	if l, ok := a.instance.(ailing); ok {
		if why := l.Ails(); why != nil {
			i.Reason = why.Error()
		}
	}
	var err error
	if at := a.instance.Attachment(); at != nil {
		for _, p := range at.Ports() {
			i.Attached = append(i.Attached, api.IkernelInterface{Interface: p.Interface, Mode: string(p.Mode)})
		}
		i.Place, i.Places = at.Position()
	}
	if i.Counters, err = a.instance.Counters(); err != nil {
		return nil, fmt.Errorf("read the counters of %s: %w", i.Name, err)
	}
	metered, err := a.metered()
	i.Counters = append(i.Counters, metered...)
	return i, err
}
