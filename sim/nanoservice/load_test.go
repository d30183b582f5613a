package nanoservice

import (
	"math"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
	"github.com/lambdanic/lambdanic/sim/random"
)

const us = event.Microsecond

// bare is a machine that adds nothing to what requests take and wait.
func bare(cores int, d Dispatch) Machine { return Machine{Cores: cores, Dispatch: d} }

func serve(t *testing.T, l Load) Service {
	t.Helper()
	if l.Flows == 0 {
		l.Flows = 100000
	}
	if l.Hosts == 0 {
		l.Hosts = 1
	}
	s, err := l.Run(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// erlangC is the probability that a customer of M/M/c has to wait (L. Kleinrock: Queueing Systems, volume 1, 1975, section 3.5).
func erlangC(c int, load float64) float64 {
	term, sum := 1.0, 0.0
	for k := range c {
		sum += term
		term *= load / float64(k+1)
	}
	term /= 1 - load/float64(c)
	return term / (sum + term)
}

// Queues are as long as theory has them. Service takes 1 µs in the mean.
func TestQueueingTheory(t *testing.T) {
	exponential, fixed := random.Exponential(us), random.Fixed(us)
	bimodal := random.Bimodal{Short: us / 2, Long: 50*us + us/2, P: 0.01}
	for name, c := range map[string]struct {
		load Load
		mean float64 // µs
	}{
		"M/M/1":                    {Load{Machine: bare(1, Dispatch{}), Service: exponential, Utilisation: 0.7}, 1 / (1 - 0.7)},
		"M/D/1":                    {Load{Machine: bare(1, Dispatch{}), Service: fixed, Utilisation: 0.7}, 1 + 0.7/2/(1-0.7)},
		"M/M/8, one queue":         {Load{Machine: bare(8, Dispatch{Policy: Central}), Service: exponential, Utilisation: 0.8}, 1 + erlangC(8, 6.4)/8/(1-0.8)},
		"M/M/8, JBSQ(1) at once":   {Load{Machine: bare(8, Dispatch{JBSQ, 1}), Service: exponential, Utilisation: 0.8}, 1 + erlangC(8, 6.4)/8/(1-0.8)},
		"8 times M/M/1, random":    {Load{Machine: bare(8, Dispatch{Policy: Random}), Service: exponential, Utilisation: 0.7}, 1 / (1 - 0.7)},
		"8 times M/M/1, RSS":       {Load{Machine: bare(8, Dispatch{Policy: RSS}), Service: exponential, Utilisation: 0.7}, 1 / (1 - 0.7)},
		"M/M/1 at 4 hosts":         {Load{Hosts: 4, Machine: bare(1, Dispatch{}), Service: exponential, Utilisation: 0.7}, 1 / (1 - 0.7)},
		"M/G/1, processor sharing": {Load{Machine: Machine{Cores: 1, Quantum: us / 20}, Service: bimodal, Utilisation: 0.7}, 1 / (1 - 0.7)},
		"M/G/1, first come":        {Load{Machine: bare(1, Dispatch{}), Service: bimodal, Utilisation: 0.5}, 1 + 0.5*(0.99*0.25+0.01*50.5*50.5)/2/(1-0.5)},
		"M/M/1 over a network":     {Load{Machine: Machine{Cores: 1, Interface: LNIC(us / 5)}, Wire: us, Service: exponential, Utilisation: 0.7}, 1/(1-0.7) + 2*1.2},
	} {
		c.load.Requests = 300_000
		got := serve(t, c.load)
		if mean := got.Latency.Mean() / 1000; math.Abs(mean/c.mean-1) > 0.03 {
			t.Errorf("%s: %.3f µs in the mean, want %.3f", name, mean, c.mean)
		}
		if u := got.Utilisation; math.Abs(u/c.load.Utilisation-1) > 0.02 {
			t.Errorf("%s: the cores were busy for a share of %.3f, want %.3f", name, u, c.load.Utilisation)
		}
	}
}

// By turns, a core gets every eighth request: its queue is D. V. Lindley's (The theory of queues with a single server, 1952) of these gaps.
func TestRoundRobin(t *testing.T) {
	r, wait, sum := random.New(2, 0), 0.0, 0.0
	const customers = 300_000
	for range customers {
		sum += wait
		gap := 0.0
		for range 8 {
			gap += r.ExpFloat64() / 8 / 0.9
		}
		wait = max(0, wait+1-gap)
	}
	got := serve(t, Load{Machine: bare(8, Dispatch{Policy: RoundRobin}), Service: random.Fixed(us), Utilisation: 0.9, Requests: customers})
	if mean, want := got.Latency.Mean()/1000, 1+sum/customers; math.Abs(mean/want-1) > 0.03 {
		t.Errorf("%.3f µs in the mean, want %.3f", mean, want)
	}
}

// The time in M/M/1 is exponential.
func TestTail(t *testing.T) {
	got := serve(t, Load{Machine: bare(1, Dispatch{}), Service: random.Exponential(us), Utilisation: 0.5, Requests: 300_000})
	for _, p := range []float64{50, 90, 99, 99.9} {
		want := -2 * math.Log(1-p/100)
		if us := float64(got.Latency.ValueAtQuantile(p)) / 1000; math.Abs(us/want-1) > 0.03 {
			t.Errorf("p%v is %.3f µs, want %.3f", p, us, want)
		}
	}
}

// A closed load of n clients that think is the machine repairman's (Kleinrock, section 3.8).
func TestClosedLoad(t *testing.T) {
	const n, think = 10, 5.0 // µs
	term, sum := 1.0, 0.0
	for k := range n + 1 {
		sum += term
		term *= float64(n-k) / think
	}
	busy := 1 - 1/sum
	got := serve(t, Load{
		Machine: bare(1, Dispatch{}), Service: random.Exponential(us), Clients: n, Think: random.Exponential(5 * us), Requests: 300_000,
	})
	if math.Abs(got.Utilisation/busy-1) > 0.01 || math.Abs(got.Throughput/busy/1e6-1) > 0.01 {
		t.Errorf("the core was busy for a share of %.4f at %.0f replies/s, want %.4f", got.Utilisation, got.Throughput, busy)
	}
	if want := n/busy - think; math.Abs(got.Latency.Mean()/1000/want-1) > 0.02 {
		t.Errorf("%.3f µs in the mean, want %.3f", got.Latency.Mean()/1000, want)
	}
}

// What the L-NIC paper wants from the NIC's choice of a core: of requests a few of which are long, RSS has some wait behind these.
func TestDispatch(t *testing.T) {
	tail := func(d Dispatch, quantum event.Time) int64 {
		return serve(t, Load{
			Machine: Machine{Cores: 16, Interface: LNIC(200 * ns), Dispatch: d, Quantum: quantum, Switch: quantum / 50}, Wire: us,
			Service: random.Bimodal{Short: us / 2, Long: 50 * us, P: 0.005}, Utilisation: 0.8, Requests: 300_000,
		}).Latency.ValueAtQuantile(99)
	}
	rss, jbsq, central := tail(Dispatch{Policy: RSS}, 0), tail(Dispatch{JBSQ, 2}, 0), tail(Dispatch{Policy: Central}, 0)
	preempted := tail(Dispatch{Policy: Central}, 5*us)
	t.Logf("p99: RSS %d ns, JBSQ(2) %d ns, one queue %d ns, preempted %d ns", rss, jbsq, central, preempted)
	if rss < 3*jbsq || central > jbsq || preempted > central {
		t.Errorf("p99: RSS %d ns, JBSQ(2) %d ns, one queue %d ns, preempted %d ns", rss, jbsq, central, preempted)
	}
}

// Where the NIC waits for a core's credit, a core that serves 1 µs can do with one message for 1.4 µs. Its share of the offered load grows in
// the queues. A link that is too slow does the same.
func TestOverload(t *testing.T) {
	for name, l := range map[string]Load{
		"credit": {Machine: Machine{Cores: 4, Interface: LNIC(200 * ns), Dispatch: Dispatch{JBSQ, 1}}, Utilisation: 0.8},
		"link": {
			Machine: bare(4, Dispatch{Policy: Central}), Utilisation: 0.5, Network: &network.Config{Rate: 10e9, Hop: us, MTU: 1500}, Senders: 10, Reply: 10_000,
		},
	} {
		l.Service, l.Requests = random.Exponential(us), 30_000
		if got := serve(t, l); got.Overload < 0.1 {
			t.Errorf("%s: overload is %.3f at %.0f replies/s", name, got.Overload, got.Throughput)
		}
		l.Utilisation /= 20
		if got := serve(t, l); got.Overload != 0 {
			t.Errorf("%s: overload is %.3f at a twentieth of the load", name, got.Overload)
		}
	}
}

// Two clients keep a core busy with requests of 2 µs. With a quantum of 1 µs, a request is run in two turns, and after the first turn of each
// the core changes to the other: two requests take 4 µs and two changes.
func TestSwitch(t *testing.T) {
	m := bare(1, Dispatch{Policy: Central})
	m.Quantum, m.Switch = us, us/2
	got := serve(t, Load{Machine: m, Service: random.Fixed(2 * us), Clients: 2, Requests: 10_000})
	if want := 2.0 / 5e-6; math.Abs(got.Throughput/want-1) > 0.001 {
		t.Errorf("%.0f replies/s, want %.0f", got.Throughput, want)
	}
}

// A core tells the NIC that it is through, and the NIC then gives it the next message: both take the interface's delay.
func TestCredit(t *testing.T) {
	m := bare(1, Dispatch{JBSQ, 1})
	m.Interface = LNIC(200 * ns)
	got := serve(t, Load{Machine: m, Service: random.Fixed(us), Clients: 10, Requests: 10_000})
	if want := 1 / 1.4e-6; math.Abs(got.Throughput/want-1) > 0.001 {
		t.Errorf("%.0f replies/s, want %.0f", got.Throughput, want)
	}
}

// Cores that have equally little to do take turns.
func TestIdlest(t *testing.T) {
	h := &host{cores: make([]core, 4)}
	h.cores[2].owed = 1
	for _, want := range []int16{0, 1, 3, 0, 1} {
		if got := h.idlest(2); got != want {
			t.Errorf("core %d, want %d", got, want)
		}
	}
}

// The limits of the L-NIC paper's section 4: up to 100 messages stay in the NIC, and 1,000 more in the last-level cache.
func TestAccess(t *testing.T) {
	for _, i := range []struct {
		Interface
		times [4]event.Time // with 100, 101, 1,100 and 1,101 messages
	}{
		{DMA, [4]event.Time{100 * ns, 100 * ns, 100 * ns, 100 * ns}},
		{DDIO, [4]event.Time{10 * ns, 10 * ns, 10 * ns, 100 * ns}},
		{LNIC(us), [4]event.Time{0, 10 * ns, 10 * ns, 100 * ns}},
	} {
		for at, waiting := range []int{100, 101, 1100, 1101} {
			if got := i.access(waiting); got != i.times[at] {
				t.Errorf("%s: %d ps with %d messages, want %d", i.Name, got, waiting, i.times[at])
			}
		}
	}
}

func TestBadLoads(t *testing.T) {
	for want, change := range map[string]func(*Load){
		"hosts: 0 is not between":                  func(l *Load) { l.Hosts = 0 },
		"cores: 2000 is not between 1 and 1024":    func(l *Load) { l.Machine.Cores = 2000 },
		"flows: 0 is not between 1 and":            func(l *Load) { l.Flows = 0 },
		"flows: 5000000000 is not between 1 and":   func(l *Load) { l.Flows = 5_000_000_000 },
		"1000000 × 1024 are more than 4194304 cor": func(l *Load) { l.Hosts, l.Machine.Cores = 1_000_000, 1024 },
		"clients: 500000000 is not between 1 and ": func(l *Load) { l.Utilisation, l.Clients = 0, 500_000_000 },
		"the simulated time exceeds 106 days":      func(l *Load) { l.Service, l.Utilisation = random.Fixed(10*event.Second), 1e-7 },
		"requests: 0 is not positive":              func(l *Load) { l.Requests = 0 },
		"wire: the time is negative":               func(l *Load) { l.Wire = -1 },
		"clients: -1 is not between":               func(l *Load) { l.Clients = -1 },
		"a load is either open or closed":          func(l *Load) { l.Clients = 1 },
		"utilisation: 1 is not between 0 and 1":    func(l *Load) { l.Utilisation = 1 },
		"utilisation: NaN is not between 0 and 1":  func(l *Load) { l.Utilisation = math.NaN() },
		"service: it takes no time":                func(l *Load) { l.Service = random.Fixed(0) },
		"quantum, switch: a time is negative":      func(l *Load) { l.Machine.Switch = -1 },
		"quantum: 1ns is less than 10 ns":          func(l *Load) { l.Machine.Quantum = ns },
		"interface DMA: a time is negative":        func(l *Load) { l.Machine.Interface.Far = -1 },
		"interface DMA: a number of messages is n": func(l *Load) { l.Machine.Interface.LLC = -1 },
	} {
		l := &Load{Hosts: 1, Machine: Machine{Cores: 1, Interface: DMA}, Service: random.Fixed(us), Flows: 1, Utilisation: 0.5, Requests: 1}
		change(l)
		if _, err := l.Run(t.Context(), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, s := range []string{"rss", "random", "round-robin", "central", "jbsq:3"} {
		if d, err := ParseDispatch(s); err != nil || d.String() != s {
			t.Errorf("%s is read as %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "jbsq", "jbsq:0", "jbsq:x", "RSS"} {
		if _, err := ParseDispatch(s); err == nil {
			t.Errorf("%q is taken for a policy", s)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	l := &Load{
		Hosts: 100, Machine: Machine{Cores: 16, Interface: LNIC(200 * ns), Dispatch: Dispatch{JBSQ, 2}}, Wire: us, Flows: 1000,
		Service: random.Exponential(us), Utilisation: 0.8, Requests: 1_000_000,
	}
	for b.Loop() {
		if _, err := l.Run(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2*1.1*float64(l.Requests)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
