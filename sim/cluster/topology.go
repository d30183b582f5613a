package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/lambdanic/lambdanic/internal/placement"
)

// Cluster is servers, in racks of 40 below pods of 24 racks, as placement.FatTree has them (section 5.6).
type Cluster struct {
	Name    string
	Servers []*System
	topo    *placement.Topology
	nodes   []node // by NodeID
}

// node is a host or a NIC.
type node struct {
	*Processor
	server int
	kind   placement.Kind
	weight float64 // of its utilisation in that of its server
}

// MaxServers bounds a cluster.
const MaxServers = 100_000

// Cluster makes one of a text like 3xType1-SmartNIC or 2xBeefy+2xWimpy.
func (c *Catalogue) Cluster(text string) (*Cluster, error) {
	cl := &Cluster{Name: text}
	for part := range strings.SplitSeq(text, "+") {
		count, name, found := strings.Cut(strings.TrimSpace(part), "x")
		n, err := strconv.Atoi(count)
		if !found || err != nil || n < 1 || n > MaxServers-len(cl.Servers) {
			return nil, fmt.Errorf("cluster %q: %q: write it as 3xType1-SmartNIC or 2xBeefy+2xWimpy, of at most %d servers", text, part, MaxServers)
		}
		s, err := c.system(name)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", text, err)
		}
		for range n {
			cl.Servers = append(cl.Servers, s)
		}
	}
	if err := cl.build(); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", text, err)
	}
	return cl, nil
}

func (c *Catalogue) system(name string) (*System, error) {
	var names []string
	for i := range c.Systems {
		if strings.EqualFold(c.Systems[i].Name, name) {
			return &c.Systems[i], nil
		}
		names = append(names, c.Systems[i].Name)
	}
	return nil, fmt.Errorf("server %q: it has to be one of %s", name, strings.Join(names, ", "))
}

func (cl *Cluster) build() (err error) {
	groups := []placement.Group{{Name: "dc"}}
	var nodes []placement.Node
	var pod, rack string
	for i, s := range cl.Servers {
		if i%(placement.ServersPerRack*placement.DefaultRacks) == 0 {
			pod = fmt.Sprintf("pod%d", i/(placement.ServersPerRack*placement.DefaultRacks))
			groups = append(groups, placement.Group{Name: pod, Parent: "dc"})
		}
		if i%placement.ServersPerRack == 0 {
			rack = fmt.Sprintf("rack%d", i/placement.ServersPerRack)
			groups = append(groups, placement.Group{Name: rack, Parent: pod})
		}
		server := fmt.Sprintf("server%d", i)
		groups = append(groups, placement.Group{Name: server, Parent: rack})
		host, nic := s.weights()
		add := func(name string, p *Processor, k placement.Kind, gbps, weight float64) {
			nodes = append(nodes, placement.Node{Name: server + name, Parent: server, Kind: k, Capacity: p.capacity(gbps)})
			cl.nodes = append(cl.nodes, node{p, i, k, weight})
		}
		for n := range s.NICs {
			add(fmt.Sprintf("/nic%d", n), &s.NIC, placement.NIC, s.Bandwidth/float64(s.NICs), nic)
		}
		if s.Host.Cores > 0 {
			add("/host", &s.Host, placement.Host, s.Bandwidth, host)
		}
	}
	cl.topo, err = placement.New(groups, nodes)
	return err
}

// capacity is in cores of the speed of those measured. A node has any number of outstanding requests.
func (p *Processor) capacity(gbps float64) (v placement.Vector) {
	v[placement.Cores] = int64(p.cores() * 1000)
	v[placement.Memory] = int64(p.Memory * 1024)
	v[placement.Bandwidth] = int64(gbps * 1000)
	v[placement.Requests] = 1
	return v
}

// cores is how many of those measured are worth as much.
func (p *Processor) cores() float64 { return float64(p.Cores) * p.Speed }

// mostWatts is the most active power that any of the paper's services takes on a core of a host and of a NIC (Table 1). A user's services do not
// count: what a server takes does not depend on which services a catalogue has.
var mostWatts = sync.OnceValues(func() (host, nic float64) {
	for _, v := range Default().Services {
		host = max(host, v.Host.Watts/float64(v.Host.Cores))
		nic = max(nic, v.NIC.Watts/float64(v.NIC.Cores))
	}
	return host, nic
})

// weights share what a server takes between idle and peak among its processors. The paper gives the sum alone; it is assumed to be as mostWatts.
func (s *System) weights() (host, nic float64) {
	host, nic = mostWatts()
	host *= s.Host.cores()
	nic *= s.NIC.cores()
	sum := host + float64(s.NICs)*nic
	return host / sum, nic / sum
}

func (cl *Cluster) hosts() bool {
	for i := range cl.nodes {
		if cl.nodes[i].kind == placement.Host {
			return true
		}
	}
	return false
}

// totals are the sums of a number over the servers.
func (cl *Cluster) total(of func(*System) float64) (sum float64) {
	for _, s := range cl.Servers {
		sum += of(s)
	}
	return sum
}
