package backend_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/internal/backend"
)

func servers(n int) (list []netip.AddrPort) {
	for i := range n {
		list = append(list, netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:11211", i+1)))
	}
	return list
}

// owners are the servers of all shares, by address: a server may have different indices in two tables.
func owners(s backend.Service) (list []netip.AddrPort) {
	for _, i := range s.Shares() {
		list = append(list, s.Servers[i])
	}
	return list
}

// Shares only move to a server that is added, and only from a server that is removed.
func TestSharesMoveLittle(t *testing.T) {
	all := servers(17)
	for n := 1; n <= 16; n++ {
		before, after := owners(backend.Service{Servers: all[:n]}), owners(backend.Service{Servers: all[:n+1]})
		moved := 0
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			moved++
			if after[i] != all[n] {
				t.Errorf("%d servers: share %d moved from %v to %v when %v came", n, i, before[i], after[i], all[n])
			}
		}
		if mean := float64(backend.Shares) / float64(n+1); float64(moved) < mean/3 || float64(moved) > mean*2 {
			t.Errorf("%d servers: %d shares moved to a new one, want about %.0f", n, moved, mean)
		}
		for gone := range n {
			rest := owners(backend.Service{Servers: slices.Delete(slices.Clone(all[:n+1]), gone, gone+1)})
			for i := range rest {
				if after[i] != rest[i] && after[i] != all[gone] {
					t.Fatalf("share %d moved from %v to %v when %v went", i, after[i], rest[i], all[gone])
				}
			}
		}
	}
}

// The order of the servers does not matter, and a single server has all shares.
func TestSharesOrder(t *testing.T) {
	all := servers(5)
	want := owners(backend.Service{Servers: all})
	slices.Reverse(all)
	if !slices.Equal(owners(backend.Service{Servers: all}), want) {
		t.Error("in another order, servers have other shares")
	}
	if (backend.Service{Servers: all[:1]}).Shares() != [backend.Shares]uint8{} {
		t.Error("a server alone has not all shares")
	}
}

// A server has shares in proportion to its weight, and loses none when its weight grows.
func TestSharesWeights(t *testing.T) {
	all := servers(3)
	light := owners(backend.Service{Servers: all, Weights: []int{1, 1, 1}})
	heavy := owners(backend.Service{Servers: all, Weights: []int{1, 1, 6}})
	count := map[netip.AddrPort]int{}
	for i := range light {
		count[heavy[i]]++
		if light[i] != heavy[i] && heavy[i] != all[2] {
			t.Errorf("share %d moved from %v to %v when %v became heavier", i, light[i], heavy[i], all[2])
		}
	}
	if !slices.Equal(light, owners(backend.Service{Servers: all})) {
		t.Error("equal weights are not the same as none")
	}
	if n := count[all[2]]; n < 336 || n > 432 { // 384 expected, ±5 standard deviations
		t.Errorf("of %d shares, %d are with the server that has 6 of 8 parts of the weight", backend.Shares, n)
	}
}
