// Package ikernels has applications in C, Python and Node.js use ikernels for their sockets: by the libraries, and by a preloaded library
// of which they know nothing.
package ikernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/ikernel/session"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

const (
	clients = "../../client"
	// patience is how long an application may take to do anything.
	patience = time.Minute
)

var (
	built string // what the tests build lies here
	build = sync.OnceValue(func() error {
		return errors.Join(run("make", "-C", clients+"/c", "OUT="+built, "all", "tests"), run("make", "-C", clients+"/node"))
	})
)

func run(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lambdanic-ikernels-")
	if err != nil {
		panic(err)
	}
	built = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// A site has a daemon's socket for applications, and a network namespace in which they run.
type site struct {
	t    *testing.T
	path string
	ns   netns.NsHandle
	stop func() // ends the daemon's part

	host   *ikernels.Host
	limits *limits.Limits // of the namespace "tenant", whose number is 1, and which is the only one
}

// enter has an ikernel be of the namespace that there is.
func (s *site) enter(_ context.Context, namespace, _ string) (*ikernels.Namespace, func(context.Context) error, error) {
	if namespace != "tenant" {
		return nil, nil, fmt.Errorf("no such namespace: %q", namespace)
	}
	return &ikernels.Namespace{Name: namespace, Number: 1, Limits: s.limits}, func(context.Context) error { return nil }, nil
}

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	host, err := ikernels.NewHost(demux.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	l, err := limits.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &site{t: t, path: shortdir.New(t) + "/s", host: host, limits: l}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: s.path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	server := &session.Server{Host: host, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Enter: s.enter}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, host.Close()); err != nil {
			t.Error(err)
		}
	})
	s.ns = isolated.Namespace(t, fmt.Sprintf("lnapp%d", os.Getpid()))
	return s
}

// in runs f in the site's network namespace.
func (s *site) in(f func() error) {
	s.t.Helper()
	if err := veth.In(s.ns, f); err != nil {
		s.t.Fatal(err)
	}
}

// command is a program with what it needs in its environment.
func (s *site) command(env []string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "LAMBDANIC_IKERNEL_SOCKET="+s.path, "LAMBDANIC_LIBRARY="+built+"/liblambdanic.so.1",
		"PYTHONPATH="+clients+"/python/src", "PYTHONDONTWRITEBYTECODE=1"), env...)
	return cmd
}

// programs do the same in each language.
func programs(name string) map[string][]string {
	return map[string][]string{
		"c":      {filepath.Join(built, name)}, // under AddressSanitizer and UndefinedBehaviorSanitizer
		"python": {"python3", "-W", "error", clients + "/python/conformance/" + name + ".py"},
		"node":   {"node", "--throw-deprecation", clients + "/node/dist/conformance/" + name + ".js"},
	}
}

// TestLibraries has an application in each language use an ikernel from its creation to its end. Where their errors are the daemon's or say the
// same, they print the same.
func TestLibraries(t *testing.T) {
	want := `got 150
limit=100 offset=0 sum=100 count=2 alerts=1
a register has another value than the transaction expects
limit=100 offset=0 sum=100 count=2 alerts=1
sum=-7 was 100
got 50
the socket is not attached to this ikernel
the ikernel has no register "x": use limit, offset, sum, count, alerts
there is no ikernel "nope": use ` + strings.Join(ikernels.Names(), ", ") + `
no such namespace: "nowhere"
no such namespace: "echo"
no daemon
`
	for name, args := range programs("ikernels") {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			cmd := s.command(nil, append(args, s.path)...)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			s.in(cmd.Start)
			err := cmd.Wait()
			got := strings.ReplaceAll(out.String(), "'x'", `"x"`) // as Python quotes
			if err != nil || got != want || stderr.Len() > 0 {
				t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, &stderr, got, want)
			}
		})
	}
}
