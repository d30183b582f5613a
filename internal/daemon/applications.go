package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/ikernel/session"
)

// applications serves this machine's applications, whose sockets may have ikernels.
type applications struct {
	listener *net.UnixListener
	host     *ikernels.Host
}

// IkernelSocket is where applications ask for ikernels.
func (p Paths) IkernelSocket() string { return filepath.Join(p.Run, "ikernel.sock") }

// openApplications listens for applications. Where that fails, the node does the rest of its work without it.
func (d *Daemon) openApplications(on *demux.Demux) {
	a, err := listenForApplications(d.cfg.IkernelSocket(), on)
	if err != nil {
		d.cfg.Log.Warn("applications cannot have ikernels for their sockets", "because", err)
		return
	}
	d.applications = a
}

func listenForApplications(path string, on *demux.Demux) (_ *applications, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root: run `sudo lambdanic up`")
	}
	a := &applications{}
	if a.host, err = ikernels.NewHost(on); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("clear an old socket: %w", err), a.close())
	}
	// The directory is 0700, so that nobody gets in before the mode is right.
	if a.listener, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"}); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), a.close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), a.close())
	}
	return a, nil
}

// serveApplications serves applications until ctx ends.
func (d *Daemon) serveApplications(ctx context.Context) {
	if d.applications == nil {
		return
	}
	d.applications.host.OnFault(func(f *ikernels.Fault, of ikernels.Owner) {
		d.cfg.Log.Warn("an application's ikernel detached itself", "because", f, "pid", of.PID, "command", of.Command)
	})
	s := session.Server{Host: d.applications.host, Log: d.cfg.Log, Enter: d.ikernels.Enter}
	if err := s.Serve(ctx, d.applications.listener); err != nil {
		d.cfg.Log.Error("applications can no longer have ikernels", "because", err)
	}
}

// followNamespaces has the ikernels of applications go by the limits of namespaces that are in force, until ctx ends. While there are none, they go by
// the former ones. What could not be noted of their ends is noted later.
func (d *Daemon) followNamespaces(ctx context.Context) {
	if d.applications == nil {
		return
	}
	for failed := ""; ctx.Err() == nil; {
		err := d.ikernels.Forget(ctx)
		if l := d.limits(); l != nil {
			err = errors.Join(err, d.applications.host.Follow(l))
		}
		switch {
		case err == nil:
			failed = ""
		case err.Error() != failed:
			failed = err.Error()
			d.cfg.Log.Warn("namespaces are not told all of the ikernels of applications, or these of quotas: it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}

// followAgain is how soon that is done again, such as for the limits of a NIC that was made anew.
const followAgain = time.Second

// list describes the ikernels that applications have.
func (a *applications) list() ([]api.Ikernel, error) {
	if a == nil {
		return nil, nil
	}
	all, err := a.host.List()
	if err != nil {
		return nil, fmt.Errorf("list the ikernels of applications: %w", err)
	}
	list := make([]api.Ikernel, len(all))
	for i := range all {
		list[i] = describe(&all[i])
	}
	return list, nil
}

// describe is what users see of an application's ikernel.
func describe(d *ikernels.Description) api.Ikernel {
	of := &api.IkernelApplication{PID: d.Owner.PID, Command: d.Owner.Command, Sockets: []api.IkernelSocket{}}
	for _, s := range d.Sockets {
		of.Sockets = append(of.Sockets, api.IkernelSocket{Protocol: s.Protocol, Own: s.Own, Peer: s.Peer})
	}
	i := api.Ikernel{
		IkernelRequest: api.IkernelRequest{Ikernel: d.Ikernel, Name: fmt.Sprintf("%s-%d", d.Ikernel, d.Number), Namespace: d.Namespace},
		State:          api.IkernelAttached, Attached: []api.IkernelInterface{}, Application: of,
		Counters: []api.Counter{
			{Name: "passed", Value: d.Verdicts.Passed, Help: "Messages that the ikernel left to the next one, or to the socket."},
			{Name: "dropped", Value: d.Verdicts.Dropped, Help: "Messages that the ikernel dropped. Of a TCP stream, the socket gets those whose segment has others, too."},
			{Name: "replied", Value: d.Verdicts.Replied, Help: "Datagrams that went back to their sender."},
		},
	}
	if d.Metered != nil {
		i.Counters = append(i.Counters, ikernel.MeterCounters(d.Metered)...)
	}
	switch {
	case d.Fault != nil:
		i.State, i.Reason = api.IkernelFaulted, d.Fault.Error()
	case len(d.Sockets) == 0:
		i.State = api.IkernelIdle
	}
	return i
}

func (a *applications) close() error {
	if a == nil {
		return nil
	}
	var errs []error
	if a.listener != nil {
		if err := a.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, a.host.Close())...)
}
