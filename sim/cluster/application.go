package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/internal/placement"
)

// Application is stages of microservices. A request goes to one shard of each microservice of the first stage. Each microservice that has served
// it calls all those of the next stage, each with the chance Share. The first stage chooses among the next one's shards by a key, which may be
// any; from then on, a shard calls the one of its own number, which has the same keys. The request is answered when no microservice has it.
//
// The paper shows one graph alone (Figure 1), and has of the others how many nodes they have (Table 3), and that nodes have a fanout of 6 in
// the mean and 12 at most (section 4). With the 6 and 12 shards of that graph, and one backup replica for each, all eight applications have as many
// nodes as in Table 3; and the nodes of that graph that call others have exactly those fanouts.
type Application struct {
	Name   string
	Stages [][]Part
}

// Part is a microservice in a stage.
type Part struct {
	Service *Service
	Shards  int
	Host    bool    // it is kept off NICs, which would starve (sections 4 and 5.2)
	Share   float64 // of the requests that come to the stage
}

// Syntax says how graphs are written.
const Syntax = `stages with > between them, each of SERVICE*SHARDS@host:SHARE with + between them, as in "API gw*6@host > SQL*12@host > EMA*12 + Spike*12:0.1"`

const (
	maxShards = 10_000
	maxEdges  = 1_000_000
	maxCalls  = 10_000
)

// Application is the one of that name, or of a graph that is written as Syntax says.
func (c *Catalogue) Application(text string) (*Application, error) {
	var names []string
	for i := range c.Applications {
		if strings.EqualFold(c.Applications[i].Name, text) {
			return &c.Applications[i], nil
		}
		names = append(names, c.Applications[i].Name)
	}
	a := &Application{Name: text}
	for stage := range strings.SplitSeq(text, ">") {
		var parts []Part
		for part := range strings.SplitSeq(stage, "+") {
			p, err := c.part(strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("application %q, neither one of %s nor a graph: %w", text, strings.Join(names, ", "), err)
			}
			parts = append(parts, p)
		}
		a.Stages = append(a.Stages, parts)
	}
	if n := a.shards(); n > maxShards {
		return nil, fmt.Errorf("application %q: %d shards are more than %d", text, n, maxShards)
	}
	if n := a.edges(); n > maxEdges {
		return nil, fmt.Errorf("application %q: %d edges between shards are more than %d", text, n, maxEdges)
	}
	if calls := a.calls(); calls > maxCalls {
		return nil, fmt.Errorf("application %q: %.6g calls of a request are more than %d", text, calls, maxCalls)
	}
	return a, nil
}

// edges is how many pairs of shards call one another.
func (a *Application) edges() (n int) {
	for number, stage := range a.Stages[1:] {
		callers := (&Application{Stages: a.Stages[number : number+1]}).shards()
		for _, p := range stage {
			if number > 0 {
				n += callers
			} else {
				n += callers * p.Shards
			}
		}
	}
	return n
}

// calls is how many microservices serve a request, in the mean.
func (a *Application) calls() (sum float64) {
	all, _ := a.instances()
	for i := range all {
		sum += all[i].visits
	}
	return sum
}

func (c *Catalogue) part(text string) (p Part, err error) {
	p = Part{Shards: 1, Share: 1}
	rest, share, found := strings.Cut(text, ":")
	if found {
		if p.Share, err = strconv.ParseFloat(share, 64); err != nil || !(p.Share > 0 && p.Share <= 1) {
			return p, fmt.Errorf("%s: the share has to be above 0 and at most 1", text)
		}
	}
	rest, p.Host = strings.CutSuffix(strings.TrimSpace(rest), "@host")
	if _, kind, found := strings.Cut(rest, "@"); found {
		return p, fmt.Errorf("%s: after @ there can only be host, and not %q: without it, a microservice may be on NICs and on hosts", text, kind)
	}
	name, shards, found := strings.Cut(rest, "*")
	if found {
		if p.Shards, err = strconv.Atoi(strings.TrimSpace(shards)); err != nil || p.Shards < 1 || p.Shards > maxShards {
			return p, fmt.Errorf("%s: the shards have to be from 1 to %d", text, maxShards)
		}
	}
	p.Service, err = c.service(strings.TrimSpace(name))
	return p, err
}

func (a *Application) shards() (n int) {
	for _, stage := range a.Stages {
		for _, p := range stage {
			n += p.Shards
		}
	}
	return n
}

// Scaled is the application with so many shards where it had the most, and as many in proportion of the others, but at least one.
func (a *Application) Scaled(shards int) (*Application, error) {
	if shards < 1 || shards > maxShards {
		return nil, fmt.Errorf("shards: %d is not between 1 and %d", shards, maxShards)
	}
	largest := 0
	for _, stage := range a.Stages {
		for _, p := range stage {
			largest = max(largest, p.Shards)
		}
	}
	scaled := &Application{Name: a.Name}
	for _, stage := range a.Stages {
		parts := slices.Clone(stage)
		for i := range parts {
			parts[i].Shards = max(1, parts[i].Shards*shards/largest)
		}
		scaled.Stages = append(scaled.Stages, parts)
	}
	return scaled, nil
}

// instance is a shard of a part.
type instance struct {
	name   string
	part   *Part
	visits float64 // of a request
	calls  []call
}

// call goes to one of some shards, of which each is as likely as the others.
type call struct {
	to    []int32
	share float64
}

// instances are those that serve, stage by stage, and what a request calls first.
func (a *Application) instances() (all []instance, first []call) {
	var stages [][][]int32 // shards by part
	for number, stage := range a.Stages {
		var ids [][]int32
		named := make(map[string]int) // shards of a service, which may be in several parts
		for at := range stage {
			p := &stage[at]
			var shards []int32
			for range p.Shards {
				shards = append(shards, int32(len(all)))
				all = append(all, instance{name: fmt.Sprintf("%d/%s/%d", number, p.Service.Name, named[p.Service.Name]), part: p})
				named[p.Service.Name]++
				if number == 0 {
					all[len(all)-1].visits = p.Share / float64(p.Shards)
				}
			}
			if number == 0 {
				first = append(first, call{shards, p.Share})
			}
			ids = append(ids, shards)
		}
		stages = append(stages, ids)
	}
	for number := range stages[1:] {
		for _, from := range stages[number] {
			for shard, id := range from {
				all[id].calls = a.next(number, shard, stages[number+1])
				for _, c := range all[id].calls {
					for _, to := range c.to {
						all[to].visits += all[id].visits * c.share / float64(len(c.to))
					}
				}
			}
		}
	}
	return all, first
}

// next are the calls of a shard to the next stage.
func (a *Application) next(stage, shard int, ids [][]int32) (all []call) {
	for at, shards := range ids {
		if stage > 0 {
			shards = shards[shard%len(shards):][:1]
		}
		all = append(all, call{shards, a.Stages[stage+1][at].Share})
	}
	return all
}

// What a microservice takes beside cores. The paper has the size of requests (section 2.3); the others are assumed.
const (
	RequestBytes = 512
	shardMemory  = 64 // MiB
)

// megabits is what comes to a microservice of so many requests a second.
func megabits(rate float64) float64 { return rate * RequestBytes * 8 / 1e6 }

// app is the application for so many requests a second, for placement: what serves, in the order of instances, and then its backups. Those take
// memory, and are not on the server of the one that they stand in for (section 3.5), which has an edge to them, without traffic, so that HCM places
// it first: else the backups would decide where it cannot be.
func (a *Application) app(rate float64, backups int, hosts bool) (*placement.App, error) {
	all, _ := a.instances()
	var services []placement.Service
	var edges []placement.Edge
	for i := range all {
		in := &all[i]
		s := placement.Service{Name: in.name, Stateful: in.part.Service.Stateful, Demand: in.demand(placement.Host, rate)}
		onNIC := in.demand(placement.NIC, rate)
		s.OnNIC = &onNIC
		if in.part.Host && hosts {
			s.Kinds = []placement.Kind{placement.Host}
		}
		services = append(services, s)
		for _, c := range in.calls {
			for _, to := range c.to {
				edges = append(edges, placement.Edge{From: in.name, To: all[to].name, Traffic: 1 + int64(megabits(rate*in.visits*c.share/float64(len(c.to))))})
			}
		}
	}
	for i := range all {
		others := []string{services[i].Name}
		for n := range backups {
			b := placement.Service{Name: fmt.Sprintf("%s/backup%d", all[i].name, n), Stateful: services[i].Stateful, Kinds: services[i].Kinds}
			b.Demand[placement.Memory] = shardMemory
			b.Apart = append(b.Apart, others...)
			others = append(others, b.Name)
			services = append(services, b)
			edges = append(edges, placement.Edge{From: services[i].Name, To: b.Name})
		}
	}
	app, err := placement.NewApp(a.Name, services, edges)
	if err != nil {
		return nil, fmt.Errorf("make the graph: %w", err)
	}
	return app, nil
}

// demand is what an instance takes of a node, of so many requests a second to the application, wherever those are that it talks to.
func (in *instance) demand(k placement.Kind, rate float64) (v placement.Vector) {
	v[placement.Cores] = int64(1000*rate*in.visits*in.part.Service.seconds(k, in.mostEnds())) + 1
	v[placement.Memory] = shardMemory
	v[placement.Bandwidth] = int64(megabits(rate*in.visits)) + 1
	return v
}
