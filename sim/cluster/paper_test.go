package cluster

import (
	"strings"
	"testing"
)

// The formula of section 5.5, on what Table 5 makes of the throughput, has what the paper's text has of Figure 10: after five years, 4xWimpy is 14.1 %
// better than 2xType2 for NFV-FIN, which is 1.9 times as good as 4xBeefy for IOT-TS. Table 5 has two digits.
func TestPerDollarIsFigure10(t *testing.T) {
	after5 := func(cluster string, application int) float64 {
		cl, err := Default().Cluster(cluster)
		if err != nil {
			t.Fatal(err)
		}
		watts := cl.total(func(s *System) float64 { return s.Peak })
		return perDollar(1000*table5[cluster][application]*watts, cl.total(func(s *System) float64 { return s.Cost }), watts, 5)
	}
	near(t, "NFV-FIN", after5("4xWimpy", 0)/after5("2xType2-SmartNIC", 0), 1.141, 0.03)
	near(t, "IOT-TS", after5("2xType2-SmartNIC", 2)/after5("4xBeefy", 2), 1.9, 0.03)
}

// Table 4 has the clusters' sums.
func TestClustersAreTable4(t *testing.T) {
	for name, want := range map[string][4]float64{ // $, idle W, peak W, Gb/s
		"4xBeefy": {18000, 332, 804, 80}, "4xWimpy": {8836, 316, 380, 80}, "2xType2-SmartNIC": {13500, 290, 504, 80}, "1xSuperBeefy": {12550, 77, 256, 80},
		"2xBeefy+2xWimpy": {2*4500 + 2*2209, 324, 592, 80}, // of which the paper has another price
	} {
		cl, err := Default().Cluster(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, of := range []func(*System) float64{
			func(s *System) float64 { return s.Cost }, func(s *System) float64 { return s.Idle }, func(s *System) float64 { return s.Peak },
			func(s *System) float64 { return s.Bandwidth },
		} {
			if got := cl.total(of); got != want[i] {
				t.Errorf("%s: %v, want %v", name, got, want[i])
			}
		}
	}
}

// What the paper found holds here: what runs on NICs alone is best on them, and what needs hosts is worst on Wimpy.
func TestTable5Order(t *testing.T) {
	all, err := Default().Table5(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for i := range all {
		got[all[i].Cluster+" "+all[i].Application] = all[i].WallKRPJ()
	}
	for _, order := range []string{
		"4xWimpy NFV-FIN, 2xType2-SmartNIC NFV-FIN, 2xBeefy+2xWimpy NFV-FIN, 1xSuperBeefy NFV-FIN, 4xBeefy NFV-FIN",
		"2xType2-SmartNIC RTA-SHM, 1xSuperBeefy RTA-SHM, 4xBeefy RTA-SHM, 2xBeefy+2xWimpy RTA-SHM, 4xWimpy RTA-SHM",
		"4xBeefy IOT-TS, 2xBeefy+2xWimpy IOT-TS, 4xWimpy IOT-TS",
	} {
		names := strings.Split(order, ", ")
		for i := range names[1:] {
			if got[names[i]] <= got[names[i+1]] {
				t.Errorf("%s has %v, and %s has %v", names[i], got[names[i]], names[i+1], got[names[i+1]])
			}
		}
	}
}

// While the cluster has room, Figure 6 has the paper's direction: HCM is more energy-efficient than annealing, and has less latency. In a full
// cluster it does not. The documentation has both, and why.
func TestFigure6Direction(t *testing.T) {
	best := func(fill float64, other Policy) (gain, saved float64) {
		all, err := Default().Figure6(t.Context(), Figure6{
			Policies: []How{{Policy: HCM, Fill: fill, Seed: 1}, {Policy: other, Fill: fill, Seed: 1}}, Shards: Shards, Requests: 5_000, Seed: 1, Progress: func(int, int) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(all); i += 2 {
			gain = max(gain, 100*(all[i].WallKRPJ()/all[i+1].WallKRPJ()-1))
			saved = max(saved, 100*(1-all[i].Latency.Mean()/all[i+1].Latency.Mean()))
		}
		return gain, saved
	}
	for _, other := range []Policy{Spread, Annealing} {
		if gain, saved := best(0.1, other); gain < 8 || saved < 24 {
			t.Errorf("with room, HCM has up to %.1f %% more KRPJ and %.1f %% less latency than %s", gain, saved, other)
		}
		if gain, _ := best(1, other); gain > 2 {
			t.Errorf("in a full cluster, HCM has up to %.1f %% more KRPJ than %s: say so in the documentation", gain, other)
		}
	}
}

func TestScale(t *testing.T) {
	for _, policy := range []Policy{HCM, Spread} {
		o, err := Default().Place(t.Context(), Scale{Servers: 41, Microservices: 200, How: How{Policy: policy}}, func(int, int) {})
		if err != nil || o.Microservices != 72+60+84 || o.Applications != 3 || o.PerMicroservice() <= 0 {
			t.Errorf("%s: %+v, %v", policy, o, err)
		}
	}
	for want, s := range map[string]Scale{
		"servers: 0 is not between 1 and":       {Microservices: 1},
		"microservices: 0 is not between 1 and": {Servers: 1},
		"no node fits microservice":             {Servers: 1, Microservices: 10_000, How: How{Policy: HCM}},
		"an ILP of 72 microservices on 200":     {Servers: 40, Microservices: 1, How: How{Policy: ILP}},
		`policy "" is unknown`:                  {Servers: 1, Microservices: 1},
	} {
		if _, err := Default().Place(t.Context(), s, func(int, int) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
