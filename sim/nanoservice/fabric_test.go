package nanoservice

import (
	"math"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
	"github.com/lambdanic/lambdanic/sim/random"
)

func wires(t network.Transport) *network.Config {
	return &network.Config{Transport: t, Rate: 10e9, Hop: us / 2, MTU: 1500}
}

var transports = []network.Transport{network.Queued, network.NDP, network.Homa}

// A client that is alone waits for its messages' bytes on two links each, and for the service.
func TestWiredAlone(t *testing.T) {
	for _, tr := range transports {
		c := wires(tr)
		l := Load{
			Machine: Machine{Cores: 1, Interface: LNIC(200 * ns)}, Service: random.Fixed(3 * us), Clients: 1, Network: c, Senders: 1,
			Request: 100, Reply: 1000, Requests: 100,
		}
		want := (c.Alone(100) + c.Alone(1000) + 3*us + 2*200*ns).Duration().Nanoseconds()
		if got := serve(t, l).Latency; got.Min() != want || float64(got.Max()) > 1.001*float64(want) { // three digits
			t.Errorf("%v: from %d to %d ns, want %d", tr, got.Min(), got.Max(), want)
		}
	}
}

// Many clients that ask one host for long replies get as many as its link takes.
func TestWiredLimit(t *testing.T) {
	for _, tr := range transports {
		c := wires(tr)
		l := Load{
			Machine: bare(16, Dispatch{Policy: Central}), Service: random.Fixed(us / 10), Clients: 200, Network: c, Senders: 20,
			Reply: 15_000, Requests: 20_000,
		}
		limit := 10e9 / 8 / (15_000 + 10*64)
		if got := serve(t, l).Throughput; math.Abs(got/limit-1) > 0.02 {
			t.Errorf("%v: %.0f replies/s, the link takes %.0f", tr, got, limit)
		}
	}
}

// All answers of a position come to one host at the same time. Its link takes them one after the other.
func TestWiredTree(t *testing.T) {
	const answers, bytes = 100, 1000
	for _, tr := range transports {
		c := wires(tr)
		tree := &Tree{Hosts: 1 + answers, Depth: 2, Branches: random.Number(answers), Map: random.Fixed(0), Interface: Interface{}, Network: c, Bytes: bytes}
		got, err := tree.Run(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		// The questions leave one by one, too; the last answer is sent when the last of them is there.
		each := event.Time((bytes + 64) * 8 * int(event.Second/1e9) / 10)
		want := answers*each + c.Alone(bytes) - each + c.Alone(bytes)
		if ratio := float64(got.Finish) / float64(want); ratio < 0.999 || ratio > 1.05 {
			t.Errorf("%v: %v, want %v", tr, got.Finish.Duration(), want.Duration())
		}
	}
}

// A hundred thousand hosts.
func TestManyHosts(t *testing.T) {
	tree := &Tree{Hosts: 100_000, Depth: 7, Branches: random.Number(7), Map: random.Fixed(us), Reduce: 500 * ns, Interface: DMA, Wire: us}
	got, err := tree.Run(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	// Up to six levels down, no host has two positions at a time; a level takes 2.8 µs there and back, a map 1.1 µs, and seven answers 0.6 µs
	// each. Of the last level, 117,649 positions, some wait for another.
	free := 7*1.1 + 6*2*2.8 + 6*7*0.6
	if got.Messages != 2*(1+7+49+343+2401+16807+117649)-1 || got.Finish.Micros() < free || got.Finish.Micros() > free+1.2 {
		t.Errorf("%d messages in %.1f µs, want about %.1f", got.Messages, got.Finish.Micros(), free)
	}
}
