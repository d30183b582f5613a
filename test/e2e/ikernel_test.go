package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/isolated"
)

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

// An ikernel shares its interface with lambdas. When the daemon dies, lambdas answer on, and the server gets all of its requests; the next daemon attaches
// the ikernel again.
func TestIkernelBesideLambdas(t *testing.T) {
	needRoot(t)
	i := newInstance(t)
	c := newCable(t, i)
	i.start("--nic", c.name)
	i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC))
	f := i.describe("web_server")
	ask := func() {
		t.Helper()
		c.atPeer(t, func() error { return askForHello(t, &f) })
	}
	s := isolated.Far(t, f.Endpoint.Addr(), c.peer)
	s.Set("k", "first")
	if out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port)); !strings.Contains(string(out), c.name) {
		t.Errorf("attach says %s", out)
	}
	i.awaitHit(s, "k", "first")
	ask()

	i.kill()
	ask()
	s.Set("k", "second")
	s.Get("k", "second")
	i.start("--nic", c.name)
	i.awaitAttached()
	i.awaitHit(s, "k", "second")
	i.run("ik", "detach", fmt.Sprintf("memcached-cache-%d", s.Port))
	s.Get("k", "second")
	ask()
}

// awaitAttached waits until the only ikernel is attached.
func (i *instance) awaitAttached() {
	i.t.Helper()
	poll(i.t, "it is attached again", func() error {
		if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 1 || list[0].State != api.IkernelAttached {
			return fmt.Errorf("there is %+v", list)
		}
		return nil
	})
}

// awaitHit asks for a key until the NIC answers.
func (i *instance) awaitHit(s *isolated.Server, key, value string) {
	i.t.Helper()
	before := i.hits()
	poll(i.t, "the NIC answers", func() error {
		s.Get(key, value)
		if i.hits() == before {
			return errors.New("the server answered")
		}
		return nil
	})
}

// A memcached gets an ikernel while it runs; the daemon dies, comes again and finds it attached; it is detached. At no time does a client get
// a wrong answer or none.
func TestIkernel(t *testing.T) {
	i, s := up(t), isolated.New(t)
	s.Set("k", "first")
	out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.Netns, "--name", "cache", "--memory", "2MiB")
	if !strings.Contains(string(out), "lo (generic)") {
		t.Errorf("attach says %s", out)
	}
	i.awaitHit(s, "k", "first")
	s.Set("k", "second")
	s.Get("k", "second")
	i.awaitHit(s, "k", "second")

	i.kill()
	s.Get("k", "second")
	s.Set("k", "third")
	s.Get("k", "third")
	i.start()
	i.awaitAttached()
	i.awaitHit(s, "k", "third")

	if out, err := i.try("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.Netns); err == nil || !strings.Contains(out, "another ikernel has port") {
		t.Errorf("a second ikernel on the same interface: %s", out)
	}
	i.run("ik", "detach", "cache")
	s.Get("k", "third")
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 0 {
		t.Errorf("%+v is left", list)
	}
	if out, err := i.try("ik", "detach", "cache"); err == nil || !strings.Contains(out, "lambdanic ik list") {
		t.Errorf("what is detached is detached again: %s", out)
	}
}
