package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The paper's applications (Table 3) and the size of their graphs.
var e3Apps = []struct {
	name     string
	nodes    int
	services []string
}{
	{"NFV-FIN", 72, []string{"Flow mon.", "IPsec", "NIDS"}},
	{"NFV-DIN", 60, []string{"DDoS", "NATv4", "NIDS"}},
	{"NFV-IFID", 84, []string{"NATv4", "Flow mon.", "IPsec", "DDoS"}},
	{"RTA-PTC", 60, []string{"Count", "Top ranker", "KNN"}},
	{"RTA-SF", 96, []string{"Spike", "Count", "KVS", "Bayes"}},
	{"RTA-SHM", 84, []string{"Count", "EMA", "SQL", "BM25"}},
	{"IOT-DH", 108, []string{"API gw", "Count", "KNN", "KVS", "SQL"}},
	{"IOT-TS", 108, []string{"API gw", "EMA", "Spike", "Recommend", "SQL"}},
}

// e3Services are the paper's microservices: whether they are stateful and what a server makes of them, with DPDK and on the NIC, in krps
// (Tables 1 and 2).
var e3Services = map[string]struct {
	stateful  bool
	dpdk, nic float64
}{
	"IPsec": {false, 911.9, 1851.1}, "BM25": {false, 99.5, 394.1}, "NIDS": {false, 1841.1, 1988.8}, "Recommend": {true, 4.1, 12.8},
	"NATv4": {false, 1917.5, 2053.1}, "Count": {true, 1960.0, 2016.8}, "EMA": {true, 2009.2, 2052.0}, "KVS": {true, 2005.0, 2033.4},
	"Flow mon.": {true, 2014.4, 2032.6}, "DDoS": {true, 1844.8, 1952.5}, "KNN": {false, 42.4, 29.9}, "Spike": {true, 104.3, 73.8},
	"Bayes": {false, 13.7, 1.6}, "API gw": {true, 1584.3, 124.5}, "Top ranker": {true, 771.9, 14.8}, "SQL": {true, 528.0, 39.5},
}

// e3App makes the paper's applications, one after the other, until there are as many microservices. Microservices are sharded, each shard
// calls some of the next microservice's, and SQL is pinned to hosts (section 4). Those slower on the NIC take more of its cores. Amounts,
// which the paper does not give, are ours, and such that 10,000 microservices take a third of 100 servers.
func e3App(tb testing.TB, microservices int) *App {
	tb.Helper()
	var services []Service
	var edges []Edge
	for number := 0; len(services) < microservices; number++ {
		app := e3Apps[number%len(e3Apps)]
		shards := app.nodes / len(app.services)
		for stage, name := range app.services {
			kind := e3Services[name]
			for shard := range shards {
				if len(services) == microservices {
					break
				}
				s := Service{Name: fmt.Sprintf("%d/%s/%d", number, name, shard), Stateful: kind.stateful}
				s.Demand = Vector{Cores: 200 + 10*int64(number%7), Memory: 64 + 16*int64(stage), Bandwidth: 50 + int64(10*stage), Requests: 16}
				onNIC := s.Demand
				onNIC[Cores] = min(2000, int64(float64(onNIC[Cores])*kind.dpdk/kind.nic))
				s.OnNIC = &onNIC
				if name == "SQL" {
					s.Kinds = []Kind{Host}
				}
				services = append(services, s)
				for caller := range 2 {
					if stage > 0 {
						from := fmt.Sprintf("%d/%s/%d", number, app.services[stage-1], (shard+caller)%shards)
						edges = append(edges, Edge{from, s.Name, 20})
					}
				}
			}
		}
	}
	a, err := NewApp("e3", services, edges)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

const paperMicroservices = 10000 // section 5.6

// table6 is the paper's Table 6: ms per microservice.
var table6 = map[int]struct{ hcm, annealing float64 }{
	100: {4.85, 3.15}, 200: {8.31, 4.73}, 400: {19.83, 7.43}, 600: {34.32, 15.64}, 800: {74.39, 23.50}, 1000: {263.46, 61.42},
}

// table6Sizes are those of Table 6, and one far beyond.
var table6Sizes = []int{100, 200, 400, 600, 800, 1000, 100000}

func placeByHCM(s *State, d *Deployment) error { return s.HCM(d, Options{}) }

// scale is a benchmark of placing an app on clusters of Type2-SmartNIC servers.
type scale struct {
	app   *App
	sizes []int                     // in servers
	load  func(*testing.B, *State)  // what else is on the cluster; nil: nothing
	paper func(servers int) float64 // ms per microservice; nil or 0: it has no figure
	place func(*State, *Deployment) error
}

func (c *scale) run(b *testing.B) {
	for _, servers := range c.sizes {
		b.Run(fmt.Sprintf("servers=%d", servers), func(b *testing.B) {
			topo, err := Type2(servers).Topology()
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				s := NewState(topo)
				if c.load != nil {
					c.load(b, s)
				}
				d, err := s.Add(c.app)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := c.place(s, d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/float64(len(c.app.Services)), "ms/microservice")
			if c.paper != nil && c.paper(servers) > 0 {
				b.ReportMetric(c.paper(servers), "paper-ms/microservice")
			}
		})
	}
}

// BenchmarkHCM places 10,000 microservices, as Table 6 does.
func BenchmarkHCM(b *testing.B) {
	c := scale{
		app: e3App(b, paperMicroservices), sizes: table6Sizes, paper: func(servers int) float64 { return table6[servers].hcm }, place: placeByHCM,
	}
	c.run(b)
}

// BenchmarkAnnealing anneals 10,000 microservices, as Table 6 does.
func BenchmarkAnnealing(b *testing.B) {
	c := scale{
		app: e3App(b, paperMicroservices), sizes: table6Sizes, paper: func(servers int) float64 { return table6[servers].annealing },
		place: func(s *State, d *Deployment) error { return s.Anneal(d, AnnealOptions{Seed: 1}) },
	}
	c.run(b)
}

// BenchmarkHCMLoaded is the case that is hard for the index: every node has statistics of its own, most nodes lack something, and every
// microservice wants something else.
func BenchmarkHCMLoaded(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	app := e3App(b, paperMicroservices)
	services := slices.Clone(app.Services)
	for i := range services {
		s := &services[i]
		s.Demand[Cores] += r.Int64N(1000)
		s.Demand[Memory] += r.Int64N(1000)
		s.Demand[Bandwidth] += r.Int64N(1000)
		s.OnNIC = nil
	}
	app, err := NewApp("loaded", services, app.Edges)
	if err != nil {
		b.Fatal(err)
	}
	load := func(b *testing.B, s *State) {
		for id := range NodeID(s.Topology().Len()) {
			var load Vector
			for k, all := range s.Topology().Node(id).Capacity {
				load[k] = int64(float64(all) * (1 - math.Pow(r.Float64(), 3)))
			}
			if err := s.SetLoad(id, load); err != nil {
				b.Fatal(err)
			}
		}
	}
	c := scale{app: app, sizes: []int{10000, 100000}, load: load, place: placeByHCM}
	c.run(b)
}

// BenchmarkILP solves ever larger models exactly.
func BenchmarkILP(b *testing.B) {
	for _, size := range []struct{ servers, microservices int }{{1, 5}, {1, 8}, {1, 10}, {2, 5}, {2, 8}, {4, 5}} {
		b.Run(fmt.Sprintf("servers=%d/microservices=%d", size.servers, size.microservices), func(b *testing.B) {
			topo, err := Type2(size.servers).Topology()
			if err != nil {
				b.Fatal(err)
			}
			app := chain(b, size.microservices)
			for b.Loop() {
				s := NewState(topo)
				d, err := s.Add(app)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.ILP(b.Context(), d, ILPOptions{Timeout: 20 * time.Second}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/float64(size.microservices), "ms/microservice")
		})
	}
}

// chain is an app in which each microservice calls the next one; they take unlike shares of a node.
func chain(tb testing.TB, n int) *App {
	tb.Helper()
	services, edges := make([]Service, n), make([]Edge, 0, n)
	for i := range services {
		services[i] = Service{Name: fmt.Sprint("s", i), Demand: Vector{Cores: 2000 + 500*int64(i%5), Memory: 500, Bandwidth: 500, Requests: 10}}
		if i > 0 {
			edges = append(edges, Edge{services[i-1].Name, services[i].Name, 10 + int64(i%3)})
		}
	}
	a, err := NewApp("chain", services, edges)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}
