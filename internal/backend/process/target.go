package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

// HostBinary finds lambda-host, which runs lambdas as processes.
func HostBinary() (string, error) { return supervise.FindBinary("lambda-host") }

// loopback is where processes listen, and what "host" in a service's address means to them.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Target is target process of one node.
type Target struct {
	site    backend.Site
	backend *Backend // nil before Up
}

var _ backend.Target = (*Target)(nil)

// NewTarget makes the target.
func NewTarget(site backend.Site) *Target { return &Target{site: site} }

// Name is process.
func (t *Target) Name() api.Target { return api.TargetProcess }

// Up adopts the processes that run.
func (t *Target) Up(ctx context.Context) (backend.Place, error) {
	place := backend.Place{Target: api.TargetProcess, Host: loopback}
	binary, err := HostBinary()
	if err != nil {
		place.Reason = err.Error()
		return place, nil
	}
	if t.backend, err = t.open(binary, t.site.Log); err != nil {
		return place, err
	}
	if _, err := t.backend.Adopt(ctx); err != nil {
		// What could not be adopted is deployed anew.
		t.site.Log.Warn("could not adopt every process", "because", err)
	}
	place.Backend, place.Detail = t.backend, "at "+loopback.String()
	return place, nil
}

func (t *Target) open(binary string, log *slog.Logger) (*Backend, error) {
	return New(Config{HostBinary: binary, RunDir: t.site.RunDir, Listen: choosePort, Logger: log})
}

// choosePort chooses a port for a process. It keeps that port for as long as its workload lives.
func choosePort(uint32) (netip.AddrPort, error) {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a free port: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// Close releases the processes, which go on answering.
func (t *Target) Close() error {
	if t.backend == nil {
		return nil
	}
	return t.backend.Close()
}

// Down ends the processes.
func (t *Target) Down(ctx context.Context) error {
	if _, err := os.Stat(t.site.RunDir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	self, err := os.Executable() // nothing will be started
	if err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	b, err := t.open(self, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	_, adopt := b.Adopt(ctx)
	if err := errors.Join(adopt, b.Shutdown(ctx)); err != nil {
		return fmt.Errorf("end processes: %w", err)
	}
	return nil
}
