package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/demux"
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
	s := session.Server{Host: d.applications.host, Log: d.cfg.Log}
	if err := s.Serve(ctx, d.applications.listener); err != nil {
		d.cfg.Log.Error("applications can no longer have ikernels", "because", err)
	}
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
