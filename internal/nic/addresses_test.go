package nic

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// However addresses change, the table has those of the interface, each once.
func TestOwnAddresses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pool := []netip.Addr{}
	for i := range byte(12) {
		pool = append(pool, netip.AddrFrom4([4]byte{198, 18, 0, i}), netip.AddrFrom16([16]byte{0xfd, 15: i}))
	}
	own := &ownAddresses{table: new(program.Addresses)}
	for range 2000 {
		r.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		want := module.Reach{Addr: pool[0], Addr6: pool[1], Addrs: slices.Clone(pool[:1+r.IntN(maxAddresses)])}
		own.set(&want)
		got := own.table.All[:own.table.Count]
		if len(got) != len(want.Addrs) {
			t.Fatalf("table %x for %v", got, want.Addrs)
		}
		for _, a := range want.Addrs {
			if !slices.Contains(got, xdp.Words(a)) {
				t.Fatalf("table %x lacks %v", got, a)
			}
		}
	}
}
