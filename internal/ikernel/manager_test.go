package ikernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func request(s *isolated.Server) api.IkernelRequest {
	return api.IkernelRequest{Ikernel: "memcached-cache", Netns: s.Netns, Port: s.Port, Memory: 2 << 20}
}

var errUnknown = errors.New("no such namespace")

// A node has a store and a manager.
type node struct {
	t     *testing.T
	data  string // where the store is
	store *store.Store
	*Manager
	limits atomic.Pointer[limits.Limits] // nil: the node has no NIC
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := shortdir.New(t)
	data := filepath.Join(dir, "d")
	s, err := store.Open(t.Context(), store.Config{DataDir: data, SocketDir: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, data: data, store: s}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	n.open()
	return n
}

// open opens a manager, as a daemon does when it starts.
func (n *node) open() {
	n.t.Helper()
	m, err := Open(n.t.Context(), Config{
		Node: "here", Store: n.store, Demux: demux.New(nil), Log: slog.New(slog.DiscardHandler), Limits: n.limits.Load,
		Number: func(ctx context.Context, namespace string) (uint32, error) {
			made, err := n.store.ChangeQuota(ctx, namespace, api.QuotaChange{})
			if err != nil {
				return 0, err
			}
			return made.Number, nil
		},
		Known: func(ctx context.Context, namespace string) (uint32, error) {
			all, err := n.store.Namespaces(ctx)
			for _, known := range all {
				if known.Name == namespace {
					return known.Number, err
				}
			}
			return 0, errors.Join(err, errUnknown)
		},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.Manager = m
}

// tend has the manager tend its ikernels until the test ends.
func (n *node) tend() {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { n.Tend(ctx) })
	n.t.Cleanup(func() {
		stop()
		done.Wait()
	})
}

// await waits until what is attached is as wanted.
func (n *node) await(what string, is func(list []api.Ikernel) bool) {
	n.t.Helper()
	var list []api.Ikernel
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if list, err = n.List(); err != nil {
			n.t.Fatal(err)
		}
		if is(list) {
			return
		}
	}
	n.t.Fatalf("it is not %s: %+v", what, list)
}

func (n *node) records() int {
	n.t.Helper()
	records, err := n.store.Ikernels(n.t.Context(), "here")
	if err != nil {
		n.t.Fatal(err)
	}
	return len(records)
}

// counter returns a counter of the only ikernel.
func counter(list []api.Ikernel, name string) uint64 { return counterOf(list[0], name) }

func counterOf(i api.Ikernel, name string) uint64 {
	for _, c := range i.Counters {
		if c.Name == name {
			return c.Value
		}
	}
	panic("no counter is named " + name)
}

func attached(list []api.Ikernel) bool { return len(list) == 1 && list[0].State == api.IkernelAttached }
func none(list []api.Ikernel) bool     { return len(list) == 0 }

// TestServerGone lists why a cache is of no use while its server is gone.
func TestServerGone(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	if _, err := n.Attach(t.Context(), request(s)); err != nil {
		t.Fatal(err)
	}
	s.Set("k", "v")
	n.await("without a reason", func(list []api.Ikernel) bool {
		s.Get("k", "v")
		return counter(list, "hits") > 0 && list[0].Reason == ""
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	n.await("without values", func(list []api.Ikernel) bool {
		s.Ask("k")
		return attached(list) && strings.HasPrefix(list[0].Reason, "no values are fetched: ")
	})
	s.StartAgain()
	n.await("without a reason, and nobody asks", func(list []api.Ikernel) bool { return attached(list) && list[0].Reason == "" })
}

// TestAttach attaches a cache, and detaches it, while the server runs.
func TestAttach(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	i, err := n.Attach(t.Context(), request(s))
	if err != nil {
		t.Fatal(err)
	}
	if name := fmt.Sprintf("memcached-cache-%d", s.Port); i.Name != name || len(i.Attached) != 1 || i.Attached[0].Interface != "lo" {
		t.Errorf("got %+v, want %s on lo", i, name)
	}
	s.Set("k", "v")
	n.await("hit", func(list []api.Ikernel) bool {
		s.Get("k", "v")
		return counter(list, "hits") > 0
	})
	want := fmt.Sprintf("%s, at port %d of network namespace %s: choose another name", i.Name, s.Port, s.Netns)
	if _, err := n.Attach(t.Context(), request(s)); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v: %s", err, ErrExists, want)
	}
	second := request(s)
	second.Name = "second"
	if _, err := n.Attach(t.Context(), second); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "observed for another cache") {
		t.Errorf("got %v, want that the port is taken", err)
	}
	if n.records() != 1 {
		t.Errorf("%d records are kept, want 1", n.records())
	}
	if err := n.Detach(t.Context(), i.Name); err != nil {
		t.Fatal(err)
	}
	s.Get("k", "v")
	if err := n.Detach(t.Context(), i.Name); !errors.Is(err, ErrNotFound) || n.records() != 0 {
		t.Errorf("got %v and %d records, want none", err, n.records())
	}
	if _, err := n.Attach(t.Context(), request(s)); err != nil { // nothing is left on the interface
		t.Error(err)
	}
}

// TestShared attaches caches to two servers that are reached by one interface. Each answers for its own.
func TestShared(t *testing.T) {
	first, n := isolated.New(t), newNode(t)
	servers := []*isolated.Server{first, first.Beside()}
	for i, s := range servers {
		if _, err := n.Attach(t.Context(), request(s)); err != nil {
			t.Fatal(err)
		}
		s.Set("k", fmt.Sprintf("of %d", i))
	}
	n.await("hit", func(list []api.Ikernel) bool {
		for i, s := range servers {
			s.Get("k", fmt.Sprintf("of %d", i))
		}
		return counter(list[:1], "hits") > 0 && counter(list[1:], "hits") > 0
	})
	if err := n.Detach(t.Context(), fmt.Sprintf("memcached-cache-%d", first.Port)); err != nil {
		t.Fatal(err)
	}
	first.Get("k", "of 0")
	n.await("hit after the first is detached", func(list []api.Ikernel) bool {
		before := counter(list, "hits")
		servers[1].Get("k", "of 1")
		list, err := n.List()
		return err == nil && counter(list, "hits") > before
	})
}

// TestLostInterface takes the interface away to which a cache is attached, and brings it again.
func TestLostInterface(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	add := func() {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "a"})
		pair.PeerName = "b"
		if err := veth.InNamed(s.Netns, func() error { return netlink.LinkAdd(pair) }); err != nil {
			t.Fatal(err)
		}
	}
	add()
	r := request(s)
	r.Interfaces = []string{"a"}
	if _, err := n.Attach(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	n.tend()
	if err := veth.InNamed(s.Netns, func() error { return veth.Remove("a") }); err != nil {
		t.Fatal(err)
	}
	n.await("waiting for the interface", func(list []api.Ikernel) bool {
		return len(list) == 1 && list[0].State == api.IkernelWaiting && strings.Contains(list[0].Reason, "interface a")
	})
	add()
	n.await("attached", attached)
}

// TestAttachedAgain starts a daemon anew, first while the server is away.
func TestAttachedAgain(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	if _, err := n.Attach(t.Context(), request(s)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Close(), s.Stop()); err != nil {
		t.Fatal(err)
	}
	n.open()
	n.tend()
	n.await("waiting for the server", func(list []api.Ikernel) bool {
		return len(list) == 1 && list[0].State == api.IkernelWaiting && strings.Contains(list[0].Reason, "no server answers by TCP")
	})
	s.StartAgain()
	n.await("attached", attached)
}

// TestNamespaceGone takes the name of the server's network namespace away, and gives it to the namespace again.
func TestNamespaceGone(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	r := request(s)
	r.Netns = s.Netns + "-b"
	path := filepath.Join("/run/netns", r.Netns)
	name := func() {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, nil, 0o600), unix.Mount(filepath.Join("/run/netns", s.Netns), path, "", unix.MS_BIND, "")); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = veth.RemoveNamespace(r.Netns) })
	name()
	if _, err := n.Attach(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	n.tend()
	if err := veth.RemoveNamespace(r.Netns); err != nil {
		t.Fatal(err)
	}
	n.await("waiting for the namespace", func(list []api.Ikernel) bool {
		return len(list) == 1 && list[0].State == api.IkernelWaiting && strings.Contains(list[0].Reason, "network namespace "+r.Netns)
	})
	name()
	n.await("attached", attached)
}

// TestServerElsewhere has the next server listen at fewer addresses than the cache was attached for.
func TestServerElsewhere(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	port := s.Port
	in := func(addrs ...string) {
		t.Helper()
		var all []netip.Addr
		for _, a := range addrs {
			all = append(all, netip.MustParseAddr(a))
		}
		err := errors.Join(s.Stop(), veth.InNamed(s.Netns, func() (err error) {
			s.Server, err = memcached.StartAt(context.Background(), port, all)
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
	}
	in("127.0.0.1", "127.0.0.2")
	if _, err := n.Attach(t.Context(), request(s)); err != nil {
		t.Fatal(err)
	}
	n.tend()
	instance := func() Instance {
		a, err := n.lock(fmt.Sprintf("memcached-cache-%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer a.mu.Unlock()
		return a.instance
	}
	before := instance()
	in("127.0.0.1")
	n.await("attached anew", func(list []api.Ikernel) bool {
		s.Set("a", "1")
		s.Get("a", "1")
		return attached(list) && instance() != before
	})
}

// TestProcessEnds ends the process for which a cache is attached: under a daemon, and while none runs.
func TestProcessEnds(t *testing.T) {
	for name, down := range map[string]bool{"under a daemon": false, "while none runs": true} {
		t.Run(name, func(t *testing.T) {
			s, n := isolated.New(t), newNode(t)
			r := request(s)
			r.Netns, r.PID = "", s.PID()
			if _, err := n.Attach(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if down {
				if err := n.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Kill(r.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if down {
				_ = s.Stop() // it is waited for
				n.open()
				n.tend()
			}
			n.await("detached", none)
			n.await("forgotten", func([]api.Ikernel) bool { return n.records() == 0 })
		})
	}
}

// TestOtherProcess has the number of the process be another's, when the daemon starts.
func TestOtherProcess(t *testing.T) {
	n := newNode(t)
	record := store.Ikernel{IkernelRequest: api.IkernelRequest{Ikernel: "memcached-cache", Name: "a", Port: 1, PID: os.Getpid()}, Started: 1}
	if err := n.store.PutIkernel(t.Context(), "here", &record); err != nil {
		t.Fatal(err)
	}
	n.open()
	n.tend()
	n.await("detached", none)
}

func TestRefuses(t *testing.T) {
	n := newNode(t)
	for want, change := range map[string]func(r *api.IkernelRequest){
		`"nope": use coap-jwt, memcached-cache, source-fil`: func(r *api.IkernelRequest) { r.Ikernel = "nope" },
		"give the port":                        func(r *api.IkernelRequest) { r.Port = 0 },
		`"A" is not a name`:                    func(r *api.IkernelRequest) { r.Name = "A" },
		"-1 is not a process":                  func(r *api.IkernelRequest) { r.PID = -1 },
		"not both":                             func(r *api.IkernelRequest) { r.PID, r.Netns = 1, "a" },
		`"../x" is not a network namespace`:    func(r *api.IkernelRequest) { r.Netns = "../x" },
		`in mode "offload"`:                    func(r *api.IkernelRequest) { r.Mode = "offload" },
		"memcached-cache has no keys":          func(r *api.IkernelRequest) { r.Keys = []api.IkernelKey{{File: "/a"}} },
		"coap-jwt checks requests by keys":     func(r *api.IkernelRequest) { r.Ikernel = "coap-jwt" },
		"memcached-cache gets packets of all":  func(r *api.IkernelRequest) { r.Rate = 1 },
		"or a rate":                            func(r *api.IkernelRequest) { r.Ikernel = "source-filter" },
		`"x" is not a prefix`:                  func(r *api.IkernelRequest) { r.Ikernel, r.Allow = "source-filter", []string{"x"} },
		"up to 1000000 requests":               func(r *api.IkernelRequest) { r.Ikernel, r.Rate = "source-filter", 1000001 },
		`before "none", which is not attached`: func(r *api.IkernelRequest) { r.Before = "none" },
		"coap-jwt keeps nothing":               func(r *api.IkernelRequest) { r.Ikernel, r.Memory = "coap-jwt", 1 },
		`"a b" is not the ID`:                  func(r *api.IkernelRequest) { r.Ikernel, r.Keys = "coap-jwt", []api.IkernelKey{{ID: "a b", File: "/a"}} },
		`"a" is not where a key's file`:        func(r *api.IkernelRequest) { r.Ikernel, r.Keys = "coap-jwt", []api.IkernelKey{{File: "a"}} },
		"key /a is given twice": func(r *api.IkernelRequest) {
			r.Ikernel, r.Keys = "coap-jwt", []api.IkernelKey{{File: "/a"}, {File: "/a"}}
		},
	} {
		r := api.IkernelRequest{Ikernel: "memcached-cache", Port: 11211}
		change(&r)
		if _, err := n.Attach(t.Context(), r); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for want, r := range map[string]api.IkernelRequest{
		"open the network namespace": {Ikernel: "memcached-cache", Port: 11211, Netns: "lambdanic-has-none"},
		"the process has ended":      {Ikernel: "memcached-cache", Port: 11211, PID: 1 << 30},
	} {
		if _, err := n.Attach(t.Context(), r); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if list, err := n.List(); err != nil || len(list) != 0 || n.records() != 0 {
		t.Errorf("%+v, %v and %d records are left", list, err, n.records())
	}
}

// A counted ikernel does nothing, but must be attached once at most.
type counted struct{ attached *atomic.Int32 }

func (counted) Attachment() *demux.Attachment    { return nil }
func (counted) Counters() ([]api.Counter, error) { return nil, nil }
func (c counted) Close() error {
	c.attached.Add(-1)
	return nil
}

// TestAtOnce attaches, detaches and lists one ikernel from many sides at once: it is never attached twice, and what the store has in the end
// is what is attached.
func TestAtOnce(t *testing.T) {
	var now atomic.Int32
	kinds["counted"] = kind{attach: func(*api.IkernelRequest, demux.Server, *Config) (Instance, error) {
		if now.Add(1) > 1 {
			t.Error("it is attached twice")
		}
		return counted{&now}, nil
	}}
	t.Cleanup(func() { delete(kinds, "counted") })
	n := newNode(t)
	n.tend()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := n.Attach(t.Context(), api.IkernelRequest{Ikernel: "counted", Port: 1}); err != nil && !errors.Is(err, ErrExists) {
					t.Error(err)
				}
				if _, err := n.List(); err != nil {
					t.Error(err)
				}
				if err := n.Detach(t.Context(), "counted-1"); err != nil && !errors.Is(err, ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if list, err := n.List(); err != nil || len(list) != n.records() || len(list) != int(now.Load()) {
		t.Errorf("%d listed (%v), %d recorded, %d attached", len(list), err, n.records(), now.Load())
	}
}
