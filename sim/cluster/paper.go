package cluster

import (
	"context"
	"fmt"
)

// Paper names the experiments of the paper that there are.
var Paper = []string{"table5", "figure6", "table6", "figure10"}

// The clusters and applications of Table 5 and Figure 10.
var (
	paperClusters     = []string{"4xBeefy", "4xWimpy", "2xBeefy+2xWimpy", "2xType2-SmartNIC", "1xSuperBeefy"}
	paperApplications = []string{"NFV-FIN", "RTA-SHM", "IOT-TS"}
)

// table5 is the paper's: thousands of requests per joule of wall power.
var table5 = map[string][3]float64{
	"4xBeefy": {5.1, 1.9, 2.7}, "4xWimpy": {29.9, 0.4, 0.1}, "2xBeefy+2xWimpy": {8.2, 1.4, 1.9}, "2xType2-SmartNIC": {29.0, 4.5, 6.1},
	"1xSuperBeefy": {8.8, 2.9, 5.0},
}

// Table6 is the paper's: ms for each microservice, of 10,000, on so many servers. Of the ILP, where it took more than a second, it has no more.
func Table6(servers int, p Policy) (ms float64, ok bool) {
	if p == Spread {
		p = Annealing
	}
	ms, ok = table6[servers][p]
	return ms, ok
}

var table6 = map[int]map[Policy]float64{
	100: {HCM: 4.85, Annealing: 3.15, ILP: 7.64}, 200: {HCM: 8.31, Annealing: 4.73, ILP: 19.43}, 400: {HCM: 19.83, Annealing: 7.43, ILP: 84.83},
	600: {HCM: 34.32, Annealing: 15.64, ILP: 361.85}, 800: {HCM: 74.39, Annealing: 23.50}, 1000: {HCM: 263.46, Annealing: 61.42},
}

const (
	// Shards is how many the paper's microservices have at most.
	Shards = 12
	// backups is how many each of them has (section 4).
	backups = 1
)

// Efficiency is an application on a cluster at the peak.
type Efficiency struct {
	Cluster, Application string
	Peak                 float64 // requests/s
	Power
	Paper float64 // thousands of requests per joule of wall power, of Table 5
	cost  float64 // $
	draw  float64 // W, of the cluster at its peak
}

// ActiveKRPJ is that of the peak.
func (e *Efficiency) ActiveKRPJ() float64 { return e.activeKRPJ(e.Peak) }

// WallKRPJ is that of the peak.
func (e *Efficiency) WallKRPJ() float64 { return e.wallKRPJ(e.Peak) }

// Electricity is $ for a kWh (section 5.5).
const Electricity = 0.0733

const hoursPerYear = 8766

// PerDollar is the requests that a dollar pays for, when the cluster has been at its peak for so many years: section 5.5's cost efficiency.
func (e *Efficiency) PerDollar(years float64) float64 {
	return perDollar(e.Peak, e.cost, e.draw, years)
}

func perDollar(rate, cost, watts, years float64) float64 {
	hours := years * hoursPerYear
	return rate * hours * 3600 / (cost + watts/1000*hours*Electricity)
}

// Table5 has the paper's applications on its clusters, which Figure 10 has too.
func (c *Catalogue) Table5(ctx context.Context) (all []Efficiency, err error) {
	for _, name := range paperClusters {
		for at, application := range paperApplications {
			p, err := c.placed(ctx, application, name, How{Policy: HCM}, Shards)
			if err != nil {
				return nil, err
			}
			e := Efficiency{Cluster: name, Application: application, Paper: table5[name][at]}
			e.Peak, _ = p.Peak()
			e.Power = p.Power(e.Peak)
			e.cost = p.Cluster.total(func(s *System) float64 { return s.Cost })
			e.draw = p.Cluster.total(func(s *System) float64 { return s.Peak })
			all = append(all, e)
		}
	}
	return all, nil
}

// placed places one of the catalogue's applications, scaled to so many shards, as the paper did.
func (c *Catalogue) placed(ctx context.Context, application, cluster string, h How, shards int) (*Placed, error) {
	a, err := c.Application(application)
	if err != nil {
		return nil, err
	}
	if a, err = a.Scaled(shards); err != nil {
		return nil, err
	}
	cl, err := c.Cluster(cluster)
	if err != nil {
		return nil, err
	}
	p, err := (&Setup{a, cl, backups}).Place(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("%s on %s by %s: %w", application, cluster, h.Policy, err)
	}
	return p, nil
}

// Comparison is an application by a policy.
type Comparison struct {
	Application string
	Policy      Policy
	Peak        float64 // requests/s
	Hops        float64
	*Outcome    // at Knee of the load that it was placed for
}

// Knee is the share of the peak at which loads are simulated that are to be at the peak, where queues have no end. The paper takes the knee of
// the measured latency over throughput; its place is assumed.
const Knee = 0.9

// Figure6 compares policies on three Type1-SmartNIC servers.
type Figure6 struct {
	Policies []How
	Shards   int // of the applications' microservices that have the most
	Requests int
	Seed     uint64
	Progress func(done, all int)
}

// Figure6 runs it.
func (c *Catalogue) Figure6(ctx context.Context, f Figure6) (all []Comparison, err error) {
	for i := range c.Applications {
		for k, h := range f.Policies {
			p, err := c.placed(ctx, c.Applications[i].Name, "3xType1-SmartNIC", h, f.Shards)
			if err != nil {
				return nil, err
			}
			one := Comparison{Application: c.Applications[i].Name, Policy: h.Policy, Hops: p.Hops()}
			one.Peak, _ = p.Peak()
			if one.Outcome, err = p.Run(ctx, Load{Rate: Knee * p.Plan, Requests: f.Requests, Seed: f.Seed}); err != nil {
				return nil, err
			}
			all = append(all, one)
			f.Progress(i*len(f.Policies)+k+1, len(c.Applications)*len(f.Policies))
		}
	}
	return all, nil
}
