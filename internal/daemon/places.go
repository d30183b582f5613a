package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/worker"
)

// openPlaces brings up what runs lambdas here. It fails where a NIC was asked for by name and does not come up, and where the kernel
// refuses the NIC program. If the NIC does not come up for another reason, such as a missing privilege, the node runs lambdas as
// processes alone, and says why.
func (d *Daemon) openPlaces(ctx context.Context) error {
	place, err := d.openNIC(ctx)
	var unfit *kernel.Error
	switch {
	case err == nil:
	case len(d.cfg.Interfaces) > 0, errors.As(err, &unfit):
		return err
	default:
		place = worker.Place{Target: api.TargetNIC, Reason: reason(err)}
		d.cfg.Log.Warn("no NIC: lambdas run on target process", "because", place.Reason)
	}
	d.places = append(d.places, place)
	return d.openProcesses(ctx)
}

func reason(err error) string {
	if os.Getuid() != 0 && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)) {
		return "it needs root: run `sudo lambdanic up`"
	}
	return err.Error() + ": `lambdanic doctor` says what this machine can do"
}

// nicConfig describes the NIC program on one interface, "" for the virtual NIC's.
func (d *Daemon) nicConfig(iface string) nic.Config {
	pacer, err := findBinary(pacer)
	if err != nil {
		d.cfg.Log.Warn("external calls that get no answer end when the client resends", "because", err)
	}
	return nicConfig(d.cfg.Paths, iface, func(c *nic.Config) {
		c.Mode, c.UnknownError, c.PacerBinary, c.Log = d.cfg.Mode, d.cfg.UnknownError, pacer, d.cfg.Log
		c.Addresses = d.cfg.Addresses
	})
}

func nicConfig(p Paths, iface string, set func(*nic.Config)) nic.Config {
	c := nic.Config{Instance: p.Instance, Interface: iface, RunDir: filepath.Join(p.nics(), virtualName)}
	if iface != "" {
		c.Instance, c.RunDir = p.Instance+"_"+pinName.Replace(iface), filepath.Join(p.nics(), iface)
	}
	if set != nil {
		set(&c)
	}
	return c
}

// pinName makes a name that the BPF file system takes, which has no dots, of one that an interface may have.
var pinName = strings.NewReplacer("%", "%25", ".", "%2e")

// virtualName stands for the virtual NIC among the directories of NICs; no interface can be called so.
const virtualName = ".virtual"

// openNIC brings all interfaces up, or leaves those that were not up before as they were.
func (d *Daemon) openNIC(ctx context.Context) (place worker.Place, err error) {
	place.Target = api.TargetNIC
	var fresh []string
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, d.nics.close())
		for _, iface := range fresh {
			err = errors.Join(err, dropNIC(context.WithoutCancel(ctx), d.cfg.Paths, iface))
		}
	}()
	interfaces := d.cfg.Interfaces
	if len(interfaces) == 0 {
		interfaces = []string{""}
	}
	if err := d.dropOtherNICs(ctx, interfaces); err != nil {
		return place, err
	}
	var group worker.Group
	var details []string
	for _, iface := range interfaces {
		c := d.nicConfig(iface)
		// Made first, for it tells `down` that there may be something.
		if err := os.MkdirAll(c.RunDir, 0o700); err != nil {
			return place, fmt.Errorf("make directory: %w", err)
		}
		n, err := nic.Up(ctx, c)
		if err != nil {
			_ = os.Remove(c.RunDir)
			return place, err
		}
		if !n.Adopted() {
			fresh = append(fresh, iface)
		}
		d.nics.add(n)
		group = append(group, n)
		if !place.Host.IsValid() {
			place.Host = n.HostAddr()
		}
		details = append(details, fmt.Sprintf("%s, %s mode, at %v", n.Interface(), n.Mode(), n.Addr()))
		d.cfg.Log.Info("NIC is up", "interface", n.Interface(), "mode", n.Mode(), "address", n.Addr(), "adopted", n.Adopted())
	}
	place.Detail = strings.Join(details, "; ")
	place.Backend = group.Simplify()
	return place, nil
}

// dropOtherNICs takes down what an earlier daemon had on interfaces that are no longer asked for.
func (d *Daemon) dropOtherNICs(ctx context.Context, keep []string) error {
	names, err := nicNames(d.cfg.Paths)
	if err != nil {
		return err
	}
	for _, name := range names {
		wanted := false
		for _, k := range keep {
			wanted = wanted || k == name
		}
		if !wanted {
			if err := dropNIC(ctx, d.cfg.Paths, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// nicNames lists the interfaces that have or may have a NIC program of an instance.
func nicNames(p Paths) ([]string, error) {
	entries, err := os.ReadDir(p.nics())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for NICs: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if name == virtualName {
			name = ""
		}
		names = append(names, name)
	}
	return names, nil
}

func dropNIC(ctx context.Context, p Paths, iface string) error {
	c := nicConfig(p, iface, nil)
	if err := nic.Down(ctx, c); err != nil {
		return fmt.Errorf("take down NIC %s: %w", c.Instance, err)
	}
	return os.RemoveAll(c.RunDir)
}

// loopback is what "host" in a service's address means to a process.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// What runs beside the daemon: programs of their own, for they outlive it.
const (
	lambdaHost = "lambda-host"
	pacer      = "pacer"
)

// HostBinary finds lambda-host, which runs lambdas as processes.
func HostBinary() (string, error) { return findBinary(lambdaHost) }

// findBinary finds a program of ours: beside this binary, where `make install` puts it, or in the PATH.
func findBinary(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, "..", "libexec", "lambdanic", name)} {
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside this binary nor in the PATH: build it with `make`", name)
	}
	return path, nil
}

func (d *Daemon) openProcesses(ctx context.Context) error {
	place := worker.Place{Target: api.TargetProcess, Host: loopback}
	binary, err := HostBinary()
	if err != nil {
		place.Reason = err.Error()
		d.cfg.Log.Warn("no processes", "because", place.Reason)
		d.places = append(d.places, place)
		return nil
	}
	b, err := process.New(process.Config{HostBinary: binary, RunDir: d.cfg.processes(), Listen: freePort, Logger: d.cfg.Log})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, b.Close)
	if _, err := b.Adopt(ctx); err != nil {
		// What could not be adopted is deployed anew.
		d.cfg.Log.Warn("could not adopt every process", "because", err)
	}
	place.Backend, place.Detail = b, "at "+loopback.String()
	d.places = append(d.places, place)
	return nil
}

// freePort chooses a port for a process. It keeps that port for as long as its workload lives.
func freePort(uint32) (netip.AddrPort, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a free port: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// dropProcesses ends the processes of an instance whose daemon is gone.
func dropProcesses(ctx context.Context, p Paths) error {
	if _, err := os.Stat(p.processes()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	self, err := os.Executable() // nothing will be started
	if err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	b, err := process.New(process.Config{HostBinary: self, RunDir: p.processes(), Listen: freePort, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	_, adopt := b.Adopt(ctx)
	if err := errors.Join(adopt, b.Shutdown(ctx)); err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	return nil
}
