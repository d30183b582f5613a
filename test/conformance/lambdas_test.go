package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

const (
	webServer = iota + 1
	imageTransformer
)

// places are where a lambda is served: each lambda's address, in the order of the workloads.
type places map[string][2]netip.AddrPort

// serveLambdas brings up the bundled lambdas, on a NIC and as processes, over both families.
func serveLambdas(t *testing.T) places {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	n := startNIC(t)
	v6 := netip.AddrPortFrom(n.Addr6(), n.Addr().Port())
	p := places{"nic, IPv4": {n.Addr(), n.Addr()}, "nic, IPv6": {v6, v6}, "process, IPv4": {}, "process, IPv6": {}}
	host := filepath.Join(t.TempDir(), "host")
	if err := run("make", "-C", "../../host", "OUT="+host, "all"); err != nil {
		t.Fatal(err)
	}
	processes := map[string]*process.Backend{
		"process, IPv4": startProcesses(t, host, "127.0.0.1:0"), "process, IPv6": startProcesses(t, host, "[::1]:0"),
	}
	for i, name := range []string{"web_server", "image_transformer"} {
		a, err := compiler.Build(t.Context(), filepath.Join("../../lambdas", name), compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := stand.Deployment(a, uint32(i+1), nil)
		if err := n.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for name, b := range processes {
			at := p[name]
			at[i] = deploy(t, b, d)
			p[name] = at
		}
	}
	return p
}

func startNIC(t *testing.T) *nic.NIC {
	t.Helper()
	cfg := nic.Config{Instance: fmt.Sprintf("cf-%d", os.Getpid()), RunDir: t.TempDir(), UnknownError: true}
	n, err := nic.Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), nic.Down(context.Background(), cfg)); err != nil {
			t.Error(err)
		}
	})
	return n
}

func startProcesses(t *testing.T, host, address string) *process.Backend {
	t.Helper()
	b, err := process.New(process.Config{
		HostBinary: filepath.Join(host, "lambda-host"), RunDir: shortdir.New(t), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Listen: func(uint32) (netip.AddrPort, error) {
			conn, err := net.ListenPacket("udp", address) // finds a port that is free
			if err != nil {
				return netip.AddrPort{}, err
			}
			return conn.LocalAddr().(*net.UDPAddr).AddrPort(), conn.Close()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func deploy(t *testing.T, b *process.Backend, d backend.Deployment) netip.AddrPort {
	t.Helper()
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	at, ok := b.Endpoint(d.Workload)
	if !ok {
		t.Fatalf("%s is deployed, but without an endpoint", d.Name)
	}
	return at
}

// A lambdaCase is a call of a bundled lambda, and what it answers.
type lambdaCase struct {
	call
	error  string
	status api.Status
	want   []byte
}

func lambdaCases() []lambdaCase {
	pixels, grey := measure.Image(128, 128)
	hello, page := []byte("Hello from the NIC.\n"), bytes.Repeat([]byte("All work and no sleep makes a lambda answer in microseconds. 0123\n"), 30)
	return []lambdaCase{
		{call: call{Workload: webServer, Body: []byte("/hello")}, want: hello},
		{call: call{Workload: webServer, Body: []byte("/hello"), Once: true}, want: hello},
		{call: call{Workload: webServer, Body: []byte("/nothing")}, status: api.StatusNotFound},
		{call: call{Workload: webServer, Body: []byte("/long"), ReplyRoom: 300}, want: page}, // pulled
		{call: call{Workload: webServer, Body: []byte("/long"), Once: true}, error: "too large"},
		{call: call{Workload: imageTransformer, Body: pixels}, want: grey},
		{call: call{Workload: 99}, error: "unknown workload"},
	}
}

// The bundled lambdas answer every client, on a NIC and as processes, over both families, at once and over a bad network.
func TestLambdas(t *testing.T) {
	faults := impair.Faults{Seed: 8, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: time.Millisecond}
	for place, servers := range serveLambdas(t) {
		for network, at := range map[string][2]netip.AddrPort{
			"good": servers,
			"bad":  {behind(t, servers[0], faults).Addr(), behind(t, servers[1], faults).Addr()},
		} {
			t.Run(place+", "+network+" network", func(t *testing.T) {
				each(t, func(t *testing.T, d *driver) { askLambdas(t, d, at) })
			})
		}
	}
}

func askLambdas(t *testing.T, d *driver, at [2]netip.AddrPort) {
	for i, server := range at {
		var calls []call
		var cases []lambdaCase
		for _, c := range lambdaCases() {
			if c.Workload == uint32(i+1) || c.Workload == 99 && i == 0 {
				calls, cases = append(calls, c.call), append(cases, c)
			}
		}
		d.open(settings{Address: server.String()})
		for _, atOnce := range []bool{false, true} {
			for i, o := range d.call(atOnce, calls...) {
				c := cases[i]
				answered := c.error == "" && o.Revision == 1
				if o.Error != c.error || o.Status != c.status || c.error == "" && !answered || !bytes.Equal(o.Body, c.want) {
					t.Errorf("workload %d, %.20q: error %q, status %d, revision %d, %d bytes", c.Workload, []byte(c.Body), o.Error, o.Status, o.Revision, len(o.Body))
				}
			}
		}
		d.close()
	}
}
