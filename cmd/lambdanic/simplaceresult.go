package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// placeResult is what --json prints and --placed reads.
type placeResult struct {
	Policy cluster.Policy `json:"policy"`
	Apps   []placedApp    `json:"apps"`
	Nodes  []placedNode   `json:"nodes"` // that run something
}

type placedApp struct {
	Name          string          `json:"name"`
	Cost          float64         `json:"cost"` // the sum of the two, as anneal and ilp weigh them
	Interference  float64         `json:"interference"`
	Communication float64         `json:"communication"`
	Services      []placedService `json:"services"`
}

type placedService struct {
	Name        string         `json:"name"`
	Node        string         `json:"node"`
	Kind        placement.Kind `json:"kind"`
	Why         string         `json:"why"`
	Explanation string         `json:"explanation,omitempty"`
}

type placedNode struct {
	Name     string           `json:"name"`
	Kind     placement.Kind   `json:"kind"`
	Services int              `json:"services"`
	Free     placement.Vector `json:"free"`
}

func (p *placePlan) result() *placeResult {
	r := &placeResult{Policy: p.how.Policy}
	topo := p.state.Topology()
	count := make([]int, topo.Len())
	for _, d := range p.deployments {
		w := placement.DefaultWeights
		app := placedApp{
			Name: d.App.Name, Cost: p.state.Cost(d, w), Interference: p.state.Cost(d, placement.Weights{Interference: w.Interference}),
			Communication: p.state.Cost(d, placement.Weights{Communication: w.Communication}),
		}
		for i := range d.App.Services {
			n := topo.Node(d.Node(i))
			count[d.Node(i)]++
			s := placedService{Name: d.App.Services[i].Name, Node: n.Name, Kind: n.Kind}
			s.Why, s.Explanation = p.why(d, i)
			app.Services = append(app.Services, s)
		}
		r.Apps = append(r.Apps, app)
	}
	for id, n := range count {
		if n > 0 {
			node := topo.Node(placement.NodeID(id))
			r.Nodes = append(r.Nodes, placedNode{node.Name, node.Kind, n, p.state.Free(placement.NodeID(id))})
		}
	}
	return r
}

// why says why a microservice is where it is, in a few words, and at length if that was asked for.
func (p *placePlan) why(d *placement.Deployment, i int) (short, long string) {
	name := placedName{d.App.Name, d.App.Services[i].Name}
	decision, decided := p.decisions[name]
	switch {
	case p.kept[name]:
		return "it was there before", ""
	case decided:
		short, long = decision.Why(), decision.String()
	case p.how.Policy == cluster.ILP:
		short = "the least cost"
	default:
		short = "the least cost found"
	}
	if !p.explained(name) {
		return short, ""
	}
	if !decided {
		c := p.state.Compare(d, i, p.how.Policy.Weights())
		long = c.String()
	}
	return short, long
}

// print writes tables, costs and explanations for people.
func (p *placePlan) print(w io.Writer) error {
	r := p.result()
	var services, nodes [][]string
	var explanations []string
	for i := range r.Apps {
		a := &r.Apps[i]
		for _, s := range a.Services {
			services = append(services, []string{a.Name, s.Name, s.Node, string(s.Kind), s.Why})
			if s.Explanation != "" {
				explanations = append(explanations, s.Explanation)
			}
		}
	}
	for _, n := range r.Nodes {
		nodes = append(nodes, []string{n.Name, string(n.Kind), strconv.Itoa(n.Services), n.Free.String()})
	}
	if err := ui.Table(w, []string{"APP", "SERVICE", "NODE", "KIND", "WHY"}, services); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := ui.Table(w, []string{"NODE", "KIND", "SERVICES", "FREE"}, nodes); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i := range r.Apps {
		a := &r.Apps[i]
		fmt.Fprintf(w, "cost of %s: %.4f (interference %.4f, communication %.4f)\n", ui.Printable(a.Name), a.Cost, a.Interference, a.Communication)
	}
	for _, e := range explanations {
		fmt.Fprintln(w)
		for line := range strings.SplitSeq(e, "\n") {
			text, indented := strings.CutPrefix(line, "\t")
			if indented {
				text = "  " + text
			}
			fmt.Fprintln(w, ui.Printable(text))
		}
	}
	return nil
}
