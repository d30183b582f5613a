package cluster

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/sim/event"
)

// place is a setup of the paper's catalogue, with a one-core server beside.
func place(t *testing.T, application, cluster string, backups int, h How) *Placed {
	t.Helper()
	c := Default()
	one := strings.Join(systemColumns, ",") + "\nOne,1,1,2,100,0,0,0,1,1,4\n"
	if err := c.ReadSystems(strings.NewReader(one)); err != nil {
		t.Fatal(err)
	}
	a, err := c.Application(application)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := c.Cluster(cluster)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Setup{a, cl, backups}).Place(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, p *Placed, l Load) *Outcome {
	t.Helper()
	o, err := p.Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// erlangC is the chance of waiting with c servers and a load of a erlangs.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B, by its recurrence
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho + rho*b)
}

// M/M/c, by Erlang's formula.
func TestWaitingIsErlangC(t *testing.T) {
	for _, c := range []struct {
		cluster string
		cores   int
	}{{"1xOne", 1}, {"1xType1-SmartNIC", 12}} {
		p := place(t, "BM25", c.cluster, 0, How{Policy: HCM})
		for _, u := range []float64{0.5, 0.8, 0.9} {
			peak, _ := p.Peak()
			o := run(t, p, Load{Rate: u * peak, Requests: 400_000, Seed: 1})
			service := 12 / 394.1e3 * 1e9
			want := erlangC(c.cores, u*float64(c.cores)) * service / (float64(c.cores) * (1 - u))
			near(t, c.cluster, o.Waiting.Mean(), want, 0.04)
			near(t, "latency", o.Latency.Mean(), want+service+2*float64(NICToNIC/event.Nanosecond), 0.01)
			near(t, "utilisation", o.Nodes[0].Utilisation, u, 0.01)
		}
	}
}

// M/D/1, by Pollaczek and Khinchine's formula.
func TestWaitingIsPollaczekKhinchine(t *testing.T) {
	p := place(t, "BM25", "1xOne", 0, How{Policy: HCM})
	for _, u := range []float64{0.3, 0.6, 0.9} {
		peak, _ := p.Peak()
		o := run(t, p, Load{Rate: u * peak, Requests: 400_000, Fixed: true, Seed: 2})
		service := 12 / 394.1e3 * 1e9
		near(t, "waiting", o.Waiting.Mean(), u*service/(2*(1-u)), 0.03)
	}
}

// Without other requests, latency is the sum of ways and times.
func TestChainWithoutLoad(t *testing.T) {
	const us = 1000.0
	for _, c := range []struct {
		application, cluster string
		want                 float64 // ns
	}{
		{"EMA", "1xWimpy", 1.38*us + 12/2.052e-3 + 1.38*us},
		{"EMA", "1xBeefy", 5.69*us + 4/2.0092e-3 + 5.69*us},
		{"SQL@host", "1xType2-SmartNIC", 5.69*us + 12/0.84/0.528e-3 + 5.69*us},
		{"EMA > KVS", "1xWimpy", 1.38*us + 12/2.052e-3 - 1.46*us + 12/2.0334e-3 - 1.46*us + 1.38*us},                          // a call within a node
		{"EMA > KVS", "1xBeefy", 5.69*us + 4/2.0092e-3 - 0.25*us + 2/2.005e-3*0.75 + 5.69*us},                                 // KVS is quicker than its ends by the constant
		{"BM25 > SQL@host", "1xType1-SmartNIC", 1.38*us + 12/0.3941e-3 - 1.46*us + 1.67*us + 12/0.528e-3 - 0.25*us + 5.69*us}, // by PCIe,
		{"SQL@host > BM25", "1xBeefy+1xWimpy", 5.69*us + 12/0.528e-3 + 5.69*us + 12/0.3941e-3 + 1.38*us},
		{"SQL@host > BM25 + KVS@host", "1xBeefy+1xWimpy", 5.69*us + 12/0.528e-3 - 0.25*us + 0.25*us + 5.69*us + 12/0.3941e-3 + 1.38*us}, // the longer branch
	} {
		p := place(t, c.application, c.cluster, 0, How{Policy: HCM})
		o := run(t, p, Load{Rate: 1, Requests: 20, Fixed: true})
		near(t, c.application+" on "+c.cluster, o.Latency.Mean(), c.want, 0.001)
	}
}

// A core takes its service's time for two ends of messages through a network, as they were measured, and no less than a half of it for none: a
// service that is quicker than four ends has a quarter of its time for each.
func TestEndsOfMessages(t *testing.T) {
	quick := &Service{Name: "quick", Host: Measured{Rate: 2.5e6, Watts: 10, Cores: 1}, NIC: Measured{Rate: 1e6, Watts: 5, Cores: 2}} // 0.4 and 2 µs
	slow := &Service{Name: "slow", Host: Measured{Rate: 1e5, Watts: 10, Cores: 1}, NIC: Measured{Rate: 1e5, Watts: 5, Cores: 2}}     // 10 and 20 µs
	for _, c := range []struct {
		*Service
		kind placement.Kind
		ends float64
		want float64 // µs
	}{
		{quick, placement.Host, 0, 0.2}, {quick, placement.Host, 1, 0.3}, {quick, placement.Host, 2, 0.4}, {quick, placement.Host, 4, 0.6},
		{quick, placement.NIC, 0, 1}, {quick, placement.NIC, 1, 1.5}, {quick, placement.NIC, 2, 2}, {quick, placement.NIC, 4, 3},
		{slow, placement.Host, 0, 10 - 0.5}, {slow, placement.Host, 2, 10}, {slow, placement.Host, 3, 10.25},
		{slow, placement.NIC, 0, 20 - 2.92}, {slow, placement.NIC, 2, 20}, {slow, placement.NIC, 3, 21.46},
	} {
		near(t, c.Name, c.seconds(c.kind, c.ends)*1e6, c.want, 1e-9)
		near(t, c.Name+" joules", c.joules(c.kind, c.ends), c.on(c.kind).joules()*c.want*1e-6/c.on(c.kind).seconds(), 1e-9)
	}
}

// Where requests do not meet, each one that is measured waits once for each microservice that serves it, for no time; those before are not counted.
func TestWaitsAreThoseMeasured(t *testing.T) {
	for graph, each := range map[string]int64{"BM25": 1, "BM25 > KVS": 2, "BM25 > KVS + KVS > SQL": 5} {
		for _, requests := range []int{10, 20, 200} {
			o := run(t, place(t, graph, "1xType1-SmartNIC", 0, How{Policy: HCM}), Load{Rate: 1, Requests: requests, Fixed: true})
			if n := o.Waiting.TotalCount(); n != each*int64(requests) || o.Waiting.Max() != 0 || o.Latency.TotalCount() != int64(requests) {
				t.Errorf("%s: of %d requests, %d waits, up to %d ns, and %d latencies", graph, requests, n, o.Waiting.Max(), o.Latency.TotalCount())
			}
		}
	}
}

func TestDelay(t *testing.T) {
	cl, err := Default().Cluster("961xType2-SmartNIC")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want event.Time
	}{
		{"server0/host", "server0/host", 0},
		{"server0/nic0", "server0/host", NICToHost},
		{"server0/nic0", "server0/nic1", NICToNIC},
		{"server0/nic0", "server39/nic0", NICToNIC},
		{"server0/host", "server39/host", HostToHost},
		{"server0/nic0", "server39/host", NICToNIC + HostEnd},
		{"server0/nic0", "server40/nic0", NICToNIC + Tier},
		{"server0/nic0", "server960/nic0", NICToNIC + 2*Tier},
	} {
		a, _ := cl.topo.ID(c.a)
		b, _ := cl.topo.ID(c.b)
		if got, back := cl.delay(a, b), cl.delay(b, a); got != c.want || back != c.want {
			t.Errorf("%s to %s: %v, back %v, want %v", c.a, c.b, got, back, c.want)
		}
	}
}

// A service alone has the energy efficiency of Table 1, at any load; power is what arithmetic says; and wall power is between idle and peak.
func TestPower(t *testing.T) {
	c := Default()
	for i := range c.Services {
		s := &c.Services[i]
		for _, on := range []struct {
			cluster string
			*Measured
		}{{"1xBeefy", &s.Host}, {"1xWimpy", &s.NIC}} {
			p := place(t, s.Name, on.cluster, 0, How{Policy: HCM})
			peak, _ := p.Peak()
			w := p.Power(peak)
			near(t, s.Name, peak/w.Active, on.Rate/on.Watts, 1e-9)
			system := p.Cluster.Servers[0]
			if wire := system.Bandwidth * 1e9 / 8 / RequestBytes; peak < 0.999*wire {
				near(t, s.Name+" wall", w.Wall, system.Peak, 1e-9)
			} else if w.Wall > system.Peak {
				t.Errorf("%s takes %v W at the line rate", s.Name, w.Wall)
			}
			o := run(t, p, Load{Rate: 0.7 * peak, Requests: 20_000, Seed: uint64(i)})
			near(t, s.Name+" simulated", o.ActiveKRPJ()*1000, on.Rate/on.Watts, 0.005)
		}
	}
	p := place(t, "IOT-TS", "3xType1-SmartNIC", 1, How{Policy: HCM})
	peak, _ := p.Peak()
	for _, u := range []float64{0.1, 0.9} {
		o, w := run(t, p, Load{Rate: u * peak, Requests: 100_000, Seed: 1}), p.Power(u*peak)
		near(t, "active", o.Active, w.Active, 0.02)
		near(t, "wall", o.Wall, w.Wall, 0.02)
		if o.Wall < 3*98 || o.Wall > 3*222 {
			t.Errorf("%v W are not between idle and peak", o.Wall)
		}
	}
}

// Requests are neither lost nor made up; a seed has one outcome, and another seed another one.
func TestConservationAndSeeds(t *testing.T) {
	for i := range Default().Applications {
		p := place(t, Default().Applications[i].Name, "2xType2-SmartNIC", 1, How{Policy: Spread, Seed: 3})
		peak, _ := p.Peak()
		l := Load{Rate: 0.8 * peak, Requests: 5_000, Seed: 7}
		o := run(t, p, l)
		if o.Arrived != o.Answered+o.InFlight || o.Answered != 5_500 || o.Latency.TotalCount() != 5_000 {
			t.Errorf("%s: %d came, %d answered, %d in flight", p.Application.Name, o.Arrived, o.Answered, o.InFlight)
		}
		if !reflect.DeepEqual(o, run(t, p, l)) {
			t.Errorf("%s: a seed has two outcomes", p.Application.Name)
		}
		l.Seed++
		if o.Latency.Mean() == run(t, p, l).Latency.Mean() {
			t.Errorf("%s: two seeds have one outcome", p.Application.Name)
		}
	}
}

// Placements meet their constraints, and bear the load that they were made for. HCM saves ways, but for what the documentation says.
func TestPlacements(t *testing.T) {
	hops := make(map[Policy][]float64)
	for _, policy := range []Policy{HCM, Spread, Annealing} {
		for i := range Default().Applications {
			p := place(t, Default().Applications[i].Name, "3xType1-SmartNIC", 1, How{Policy: policy, Seed: 1})
			if peak, _ := p.Peak(); peak < p.Plan {
				t.Errorf("%s by %s: the peak is %v, the plan %v", p.Application.Name, policy, peak, p.Plan)
			}
			hops[policy] = append(hops[policy], p.Hops())
			for k := range p.instances {
				at, backup := p.Deployment.Node(k), p.Deployment.Node(len(p.instances)+k)
				if p.Cluster.topo.Server(at) == p.Cluster.topo.Server(backup) {
					t.Errorf("%s by %s: %s and its backup are on one server", p.Application.Name, policy, p.instances[k].name)
				}
				if p.instances[k].part.Host && p.Cluster.nodes[at].kind != placement.Host {
					t.Errorf("%s by %s: %s is on a NIC", p.Application.Name, policy, p.instances[k].name)
				}
			}
		}
	}
	if a, b := fewer(hops[HCM], hops[Spread]), fewer(hops[Annealing], hops[HCM]); a != 6 || b != 7 {
		t.Errorf("HCM communicates less than spread for %d applications, and annealing less than HCM for %d", a, b)
	}
}

func fewer(a, b []float64) (n int) {
	for i := range a {
		if a[i] < b[i] {
			n++
		}
	}
	return n
}

func TestRunRefuses(t *testing.T) {
	p := place(t, "BM25", "1xOne", 0, How{Policy: HCM})
	for want, l := range map[string]Load{
		"load: -1 requests/s are not positive":                                  {Rate: -1, Requests: 1},
		"load: NaN requests/s are not positive":                                 {Rate: math.NaN(), Requests: 1},
		"load: 40000 requests/s are too many: node server0/nic0 can serve less": {Rate: 40_000, Requests: 1},
		"load: 10 at 1e-09 requests/s take longer than 1000000 s":               {Rate: 1e-9, Requests: 10},
		"requests: 0 is not between 1 and":                                      {Rate: 1},
	} {
		if _, err := p.Run(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	c := Default()
	a, err := c.Application("KVS*100")
	if err != nil {
		t.Fatal(err)
	}
	cl, err := c.Cluster("1xWimpy")
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Setup{a, cl, 0}).Place(t.Context(), How{Policy: HCM})
	if refused, ok := errors.AsType[*placement.RefusedError](err); !ok || refused.Decision.Trials[0].Short[placement.Memory] != shardMemory ||
		!strings.Contains(err.Error(), "the nearest, server0/nic0, lacks 64 MiB memory") {
		t.Errorf("%v", err)
	}
	if _, err := (&Setup{a, cl, -1}).Place(t.Context(), How{Policy: HCM}); err == nil || !strings.Contains(err.Error(), "backups: -1 is not between") {
		t.Errorf("%v", err)
	}
}
