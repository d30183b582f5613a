// Package swap proves that revisions of a running lambda are swapped without losing a request: 20 swaps during a load of
// clients that never send again.
package swap

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/stand"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/patient"
)

var (
	requests = flag.Int("requests", 210_000, "requests of one packet for each lambda")
	images   = flag.Int("images", 10_000, "images")
)

const (
	swaps   = 20
	clients = 2           // each on a CPU of its own
	waitFor = time.Minute // a packet that comes later was lost, however busy the machine
)

// scenario is one lambda, its second revision's difference, and its requests.
type scenario struct {
	lambda  string
	replace []string // texts of the source and their replacements in the second revision, in turn
	total   func() int
	request func(i int) lambdanic.Request
	answer  func(req lambdanic.Request, second int) []byte // what the revision (0: the first) has to answer
}

func TestSwapLosesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a NIC needs root")
	}
	for _, s := range []scenario{webServer(), kvClient(), imageTransformer()} {
		t.Run(s.lambda, func(t *testing.T) { s.run(t) })
	}
}

func (s scenario) run(t *testing.T) {
	ctx := t.Context()
	n := newNIC(t, "swap-"+strings.ReplaceAll(s.lambda, "_", "-"))
	services := map[string]netip.AddrPort{}
	if s.lambda == "kv_client" {
		m, err := memcached.Start(ctx, []netip.Addr{n.HostAddr()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Stop() })
		if err := m.Client.Set(&memcache.Item{Key: key, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
		services["memcached"] = netip.AddrPortFrom(n.HostAddr(), m.Port)
	}
	artifacts := [2]*compiler.Artifact{build(t, s.lambda, nil), build(t, s.lambda, s.replace)}
	revision := uint32(0)
	deploy := func() {
		revision++
		d := stand.Deployment(artifacts[(revision+1)%2], 1, services)
		d.Revision = revision
		if err := n.Deploy(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	deploy()

	swapped := s.load(ctx, t, n.Addr(), deploy)
	t.Logf("with %d swaps: %v", revision-1, swapped)
	if revision-1 != swaps {
		t.Errorf("%d swaps took place, want %d", revision-1, swaps)
	}
	if swapped.byRevision[0] == 0 || swapped.byRevision[1] == 0 {
		t.Errorf("both revisions should have answered: %v", swapped)
	}
	if swapped.lost+swapped.wrong != 0 {
		t.Errorf("%d requests were lost and %d answers wrong, the first: %s", swapped.lost, swapped.wrong, swapped.example)
	}
	if s.lambda == "web_server" {
		checkVisits(ctx, t, n.Addr(), swapped.answered)
	}
}

// outcome is the result of a load.
type outcome struct {
	answered, lost, wrong int
	byRevision            [2]int
	example               string
	took                  time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("%d answered (%d by the first revision, %d by the second), %d lost, %d wrong, in %v",
		o.answered, o.byRevision[0], o.byRevision[1], o.lost, o.wrong, o.took.Round(time.Millisecond))
}

// load asks from two CPUs at once, and calls swap twenty times, with as many requests between any two and at both ends. It
// goes on until these are done: a busy machine may take its time over a swap.
func (s scenario) load(ctx context.Context, t *testing.T, addr netip.AddrPort, swap func()) outcome {
	t.Helper()
	total := s.total()
	var (
		done    atomic.Int64
		wg      sync.WaitGroup
		parts   [clients]outcome
		errs    [clients]error
		running atomic.Int32
		swapped atomic.Bool
	)
	began := time.Now()
	running.Store(clients)
	for c := range clients {
		wg.Go(func() {
			defer running.Add(-1)
			parts[c], errs[c] = s.ask(ctx, addr, c, total/clients, &done, &swapped)
		})
	}
	for i := 1; i <= swaps+1; i++ {
		for next := done.Load() + int64(total/(swaps+1)); done.Load() < next && running.Load() > 0; {
			time.Sleep(200 * time.Microsecond)
		}
		if i <= swaps {
			swap()
		}
	}
	swapped.Store(true)
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	all := outcome{took: time.Since(began)}
	for _, p := range parts {
		all.answered += p.answered
		all.lost += p.lost
		all.wrong += p.wrong
		all.byRevision[0] += p.byRevision[0]
		all.byRevision[1] += p.byRevision[1]
		if all.example == "" {
			all.example = p.example
		}
	}
	return all
}

// ask makes calls one after another on one CPU: so many, and then more until swapped is set. It compares each answer with that of the
// revision that it names.
func (s scenario) ask(ctx context.Context, addr netip.AddrPort, cpu, total int, done *atomic.Int64, swapped *atomic.Bool) (o outcome, err error) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu % runtime.NumCPU())
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return o, fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	conn, err := lambdanic.DialConn(addr.String(), lambdanic.WithoutResend(), lambdanic.WithTimeout(waitFor))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for i := 0; i < total || !swapped.Load(); i++ {
		req := s.request(i)
		resp, err := conn.Call(ctx, req)
		done.Add(1)
		if err != nil {
			o.lost++
			if o.example == "" {
				o.example = err.Error()
			}
			continue
		}
		o.answered++
		second := int(resp.Revision+1) % 2
		o.byRevision[second]++
		if resp.Status != api.StatusOK || string(resp.Body) != string(s.answer(req, second)) {
			o.wrong++
			o.example = fmt.Sprintf("revision %d, status %d: %.40q", resp.Revision, resp.Status, resp.Body)
		}
	}
	return o, nil
}

// checkVisits asks the web server how many pages it served: its count was kept over all revisions.
func checkVisits(ctx context.Context, t *testing.T, addr netip.AddrPort, want int) {
	t.Helper()
	conn, err := lambdanic.DialConn(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	resp, err := conn.Call(ctx, lambdanic.Request{Workload: 1, Body: []byte("/visits")})
	if err != nil {
		t.Fatal(err)
	}
	if string(resp.Body) != fmt.Sprint(want) {
		t.Errorf("the kept count says %s pages, %d were answered", resp.Body, want)
	}
}

func newNIC(t *testing.T, instance string) *nic.NIC {
	t.Helper()
	cfg := nic.Config{Instance: fmt.Sprintf("%s-%d", instance, os.Getpid()), RunDir: t.TempDir()}
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

// build compiles a bundled lambda, with texts of its source replaced by others.
func build(t *testing.T, name string, replace []string) *compiler.Artifact {
	t.Helper()
	dir := filepath.Join(patient.Lambdas(t, "../../lambdas"), name)
	path := filepath.Join(dir, name+".c")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(replace...).Replace(string(source))
	if (changed == string(source)) != (len(replace) == 0) {
		t.Fatalf("%s does not hold what the second revision changes", path)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := compiler.Build(t.Context(), dir, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
