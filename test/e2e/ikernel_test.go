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
	poll(t, "it is attached again", func() error {
		if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 1 || list[0].State != api.IkernelAttached {
			return fmt.Errorf("there is %+v", list)
		}
		return nil
	})
	i.awaitHit(s, "k", "third")

	if out, err := i.try("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.Netns); err == nil || !strings.Contains(out, "another XDP program") {
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
