package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// A cachedServer is a memcached in a network namespace of its own, where its clients are, too.
type cachedServer struct {
	t     *testing.T
	netns string
	*memcached.Server
}

func newCachedServer(t *testing.T) *cachedServer {
	t.Helper()
	s := &cachedServer{t: t, netns: fmt.Sprintf("lne2e%d", os.Getpid())}
	ns, err := veth.NewNamespace(s.netns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ns.Close(), veth.RemoveNamespace(s.netns)); err != nil {
			t.Error(err)
		}
	})
	s.in(func() error {
		s.Server, err = memcached.Start(context.Background(), []netip.Addr{netip.MustParseAddr("127.0.0.1")})
		return err
	})
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func (s *cachedServer) in(f func() error) {
	s.t.Helper()
	if err := veth.InNamed(s.netns, f); err != nil {
		s.t.Fatal(err)
	}
}

// set sets a key by TCP, and get checks what a GET by UDP answers.
func (s *cachedServer) set(key, value string) {
	s.t.Helper()
	s.in(func() error {
		return s.exchange("tcp", fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value), "STORED\r\n")
	})
}

func (s *cachedServer) get(key, value string) {
	s.t.Helper()
	const frame = "\x00\x01\x00\x00\x00\x01\x00\x00"
	s.in(func() error {
		return s.exchange("udp", frame+"get "+key+"\r\n", fmt.Sprintf(frame+"VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value))
	})
}

func (s *cachedServer) exchange(network, request, want string) error {
	conn, err := net.Dial(network, fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	reply := make([]byte, 2000)
	n, err := conn.Read(reply)
	if err == nil && string(reply[:n]) != want {
		err = fmt.Errorf("%q is answered by %q, want %q", request, reply[:n], want)
	}
	return err
}

// hits says how many GETs the only ikernel answered.
func (i *instance) hits() uint64 {
	i.t.Helper()
	list := query[[]api.Ikernel](i, "ik", "stats")
	for _, c := range list[0].Counters {
		if c.Name == "hits" {
			return c.Value
		}
	}
	i.t.Fatalf("no hits are counted: %+v", list)
	return 0
}

// awaitHit asks for a key until the NIC answers.
func (i *instance) awaitHit(s *cachedServer, key, value string) {
	i.t.Helper()
	before := i.hits()
	poll(i.t, "the NIC answers", func() error {
		s.get(key, value)
		if i.hits() == before {
			return errors.New("the server answered")
		}
		return nil
	})
}

// A memcached gets an ikernel while it runs; the daemon dies, comes again and finds it attached; it is detached. At no time does a client get
// a wrong answer or none.
func TestIkernel(t *testing.T) {
	i, s := up(t), newCachedServer(t)
	s.set("k", "first")
	out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.netns, "--name", "cache", "--memory", "2MiB")
	if !strings.Contains(string(out), "lo (generic)") {
		t.Errorf("attach says %s", out)
	}
	i.awaitHit(s, "k", "first")
	s.set("k", "second")
	s.get("k", "second")
	i.awaitHit(s, "k", "second")

	i.kill()
	s.get("k", "second")
	s.set("k", "third")
	s.get("k", "third")
	i.start()
	poll(t, "it is attached again", func() error {
		if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 1 || list[0].State != api.IkernelAttached {
			return fmt.Errorf("there is %+v", list)
		}
		return nil
	})
	i.awaitHit(s, "k", "third")

	if out, err := i.try("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.netns); err == nil || !strings.Contains(out, "another XDP program") {
		t.Errorf("a second ikernel on the same interface: %s", out)
	}
	i.run("ik", "detach", "cache")
	s.get("k", "third")
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 0 {
		t.Errorf("%+v is left", list)
	}
	if out, err := i.try("ik", "detach", "cache"); err == nil || !strings.Contains(out, "lambdanic ik list") {
		t.Errorf("what is detached is detached again: %s", out)
	}
}
