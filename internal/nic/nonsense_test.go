package nic

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// Methods of test/lambdas/nonsense.
const (
	nonsenseFault    = 4 | 4<<3
	nonsenseDescribe = 1 << 6
)

// A lambda that returns any verdict and describes any reply is answered alike on the NIC and as a process, whatever packets it
// gets: of complete and incomplete messages, once and repeatedly, in any order, with pulls and acknowledgements between them, some
// of them mutilated.
func TestSameNonsense(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 40
	}
	source, err := os.ReadFile("../../test/lambdas/nonsense/nonsense.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{packetSpec, streamSpec, assembleSpec} {
		t.Run(spec, func(t *testing.T) {
			a, err := buildFiles(map[string][]byte{"nonsense.c": source, api.SpecFile: []byte("name: nonsense\n" + spec + "\n")})
			if err != nil {
				t.Fatal(err)
			}
			n := newTestNIC(t)
			// The fault leaves no record, so that both remember the same messages.
			p := newPair(t, n, deployment(a, workloads["web"], 1), packets.RPC{Workload: "web", Method: nonsenseFault, Payload: "last"})
			r := seed.Rand(t)
			for round := range rounds {
				for _, q := range nonsenseMessage(r) {
					b := q.Build(workloads)
					if r.IntN(10) == 0 {
						b = packets.Mutate(r, b)
					}
					p.compare(b[:min(len(b), api.RPCHeaderLen+api.RPCMaxPayload)])
				}
				// One that makes sense has an answer.
				q := fragments("web", 1|1<<3, []byte("sense"), 16)[0]
				if !p.compare(q.RPC.Build(workloads)) {
					t.Fatalf("round %d: no answer to a plain request", round)
				}
				finish := done(q).RPC
				p.compare(finish.Build(workloads))
			}
		})
	}
}

// nonsenseMessage is what a confused client sends for one message.
func nonsenseMessage(r *rand.Rand) []packets.RPC {
	method := uint32(pick(r, 1, 1, 1, 3, 3, 3, 0, 2, 4, 5) | pick(r, 1, 1, 1, 0, 2, 3, 4, 7)<<3)
	if r.IntN(2) == 0 {
		method |= nonsenseDescribe
	}
	if r.IntN(2) == 0 { // otherwise a plain reply
		method |= r.Uint32N(1<<21) &^ 0x7f
	}
	size := 16 * (1 + r.IntN(80))
	list := fragments("web", method, []byte(random(r, pick(r, 1, size, 1+r.IntN(4*size)))), size)
	var out []packets.RPC
	for range 2 {
		for _, i := range r.Perm(len(list)) {
			if r.IntN(12) == 0 {
				continue
			}
			q := list[i].RPC
			q.Room = r.IntN(api.RPCMaxPayload + 1)
			if r.IntN(3) == 0 {
				q.Flags = 0
			}
			out = append(out, q)
			if r.IntN(4) == 0 {
				out = append(out, nonsensePull(r, q))
			}
		}
	}
	finish := done(list[0]).RPC
	if r.IntN(4) == 0 {
		out = append(out, finish, list[r.IntN(len(list))].RPC)
	}
	return append(out, finish)
}

func nonsensePull(r *rand.Rand, q packets.RPC) packets.RPC {
	typ, size, count := api.TypePull, uint32(1+r.IntN(q.Room+1)), uint32(1+r.IntN(6))
	q.Type, q.MessageLen, q.Count, q.Index, q.Revision = &typ, &size, &count, r.Uint32N(count+1), uint32(pick(r, 1, 1, 1, 2))
	return q
}
