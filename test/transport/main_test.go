// Package transport tests λ-RPC from client to lambda over networks that lose, repeat and reorder packets, on each target.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/freeport"
)

// A server is one target with lambdas on it.
type server struct {
	name   string
	addr   func(workload uint32) netip.AddrPort
	status func() ([]backend.Status, error)
	nic    *nic.NIC // nil where it is not one
}

// artifact builds a fixture of test/lambdas to a spec.
func artifact(t testing.TB, name, spec string) *compiler.Artifact {
	t.Helper()
	dir := t.TempDir()
	source, err := os.ReadFile(filepath.Join("..", "lambdas", name, name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, name+".c"), source, 0o600),
		os.WriteFile(filepath.Join(dir, api.SpecFile), []byte("name: "+name+"\n"+spec), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	a, err := compiler.Build(t.Context(), dir, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var instances atomic.Uint32

// servers brings both targets up with the artifacts, whose workload IDs are 1, 2 and so on.
func servers(t *testing.T, list ...*compiler.Artifact) []server {
	t.Helper()
	return []server{onNIC(t, list...), asProcesses(t, list...)}
}

func onNIC(t *testing.T, list ...*compiler.Artifact) server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	cfg := nic.Config{Instance: fmt.Sprintf("tr%d-%d", os.Getpid(), instances.Add(1)), RunDir: t.TempDir(), UnknownError: true}
	n, err := nic.Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), nic.Down(context.Background(), cfg)); err != nil {
			t.Error(err)
		}
	})
	for i, a := range list {
		if err := n.Deploy(t.Context(), stand.Deployment(a, uint32(i+1), nil)); err != nil {
			t.Fatal(err)
		}
	}
	return server{
		name: "nic", nic: n, addr: func(uint32) netip.AddrPort { return n.Addr() },
		status: func() ([]backend.Status, error) { return n.Status(context.Background()) },
	}
}

func asProcesses(t *testing.T, list ...*compiler.Artifact) server {
	t.Helper()
	b, err := process.New(process.Config{
		HostBinary: filepath.Join("..", "..", "build", "lambda-host"), RunDir: t.TempDir(), Threads: 2,
		Listen: freeport.UDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for i, a := range list {
		if err := b.Deploy(t.Context(), stand.Deployment(a, uint32(i+1), nil)); err != nil {
			t.Fatal(err)
		}
	}
	return server{
		name: "process", addr: func(workload uint32) netip.AddrPort { a, _ := b.Endpoint(workload); return a },
		status: func() ([]backend.Status, error) { return b.Status(context.Background()) },
	}
}
