package ikernel

import (
	"fmt"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// tenants are as many network namespaces as one machine's NIC serves at least.
const tenants = 64

// TestTenants gives many tenants a cache each. All have memcached at the same address and port, and other values of the same key. Nobody gets another's
// value, what one writes is counted for that one alone, and that one is detached is no matter to the others.
func TestTenants(t *testing.T) {
	n := newNode(t)
	var servers []*isolated.Server
	for i := range tenants {
		s := isolated.Tenant(t, i)
		r := request(s)
		r.Name = fmt.Sprintf("tenant-%d", i)
		if _, err := n.Attach(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	for i, s := range servers {
		for write := range i%3 + 1 {
			s.Set("k", fmt.Sprintf("%d of tenant %d", write, i))
		}
	}
	ask := func() {
		for i, s := range servers {
			s.Get("k", fmt.Sprintf("%d of tenant %d", i%3, i))
		}
	}
	hit := func(list []api.Ikernel) bool {
		ask()
		for i := range list {
			if counterOf(list[i], "hits") == 0 {
				return false
			}
		}
		return true
	}
	n.await("hit by all", hit)
	for _, l := range list(t, n) {
		var i int
		if _, err := fmt.Sscanf(l.Name, "tenant-%d", &i); err != nil {
			t.Fatal(err)
		}
		if writes := counterOf(l, "writes"); writes != uint64(i%3+1) {
			t.Errorf("%s is said to have %d writes, and has %d", l.Name, writes, i%3+1)
		}
	}
	for i := 0; i < tenants; i += 2 {
		if err := n.Detach(t.Context(), fmt.Sprintf("tenant-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	before := list(t, n)
	ask()
	for i, l := range list(t, n) {
		if asked, hits := counterOf(l, "gets")-counterOf(before[i], "gets"), counterOf(l, "hits")-counterOf(before[i], "hits"); asked != 1 || hits != 1 {
			t.Errorf("%s has %d hits of %d GETs after others were detached, want 1 of 1", l.Name, hits, asked)
		}
	}
	again := request(servers[0])
	again.Name = "tenant-0"
	if _, err := n.Attach(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	servers[0].Set("k", "0 of tenant 0")
	n.await("hit by all again", hit)
}

func list(t *testing.T, n *node) []api.Ikernel {
	t.Helper()
	l, err := n.List()
	if err != nil {
		t.Fatal(err)
	}
	return l
}
