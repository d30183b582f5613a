package placement

import "fmt"

// FatTree describes a cluster like that of section 5.6: racks of 40 servers, below pods. (Al-Fares, Loukissas, Vahdat: A Scalable, Commodity
// Data Center Network Architecture, SIGCOMM 2008: all pods are equally far apart.)
type FatTree struct {
	Servers int    // at least 1
	NICs    int    // per server
	Racks   int    // per pod; 0 is DefaultRacks
	Host    Vector // capacity of a host; zero is that of a Type2-SmartNIC server
	NIC     Vector // capacity of a NIC; zero is one of the four of a Type2-SmartNIC server
}

// ServersPerRack is that of section 5.6.
const ServersPerRack = 40

// DefaultRacks is how many racks a pod has. The paper does not say.
const DefaultRacks = 24

// Capacities of a Type2-SmartNIC server (section 5 and Table 4): a host with 16 cores and 128 GB, and four NICs with 12 cores and 4 GB each,
// which together have 40 Gb/s. Disk and room for requests, which the paper does not give, are ours.
var (
	Type2Host = Vector{Cores: 16000, Memory: 128 << 10, Disk: 1 << 20, Bandwidth: 40000, Requests: 16384}
	Type2NIC  = Vector{Cores: 12000, Memory: 4 << 10, Bandwidth: 10000, Requests: 4096}
)

// Type2 is a cluster of Type2-SmartNIC servers.
func Type2(servers int) FatTree { return FatTree{Servers: servers, NICs: 4} }

// maxNodes bounds what numbers of nodes are made for.
const maxNodes = 1 << 24

// Topology makes the cluster. Names are dc, pod0, rack0, server0, server0/nic0 and server0/host.
func (f FatTree) Topology() (*Topology, error) {
	if f.Servers < 1 || f.NICs < 0 || f.Racks < 0 || f.Servers > maxNodes || f.NICs > maxNodes || f.Servers*(f.NICs+1) > maxNodes {
		return nil, fmt.Errorf("fat tree of %d servers with %d NICs and %d racks a pod: it has to have a server, and at most %d nodes", f.Servers, f.NICs, f.Racks, maxNodes)
	}
	if f.Racks == 0 {
		f.Racks = DefaultRacks
	}
	if f.Host == (Vector{}) {
		f.Host = Type2Host
	}
	if f.NIC == (Vector{}) {
		f.NIC = Type2NIC
	}
	groups, nodes := []Group{{Name: "dc"}}, make([]Node, 0, f.Servers*(f.NICs+1))
	var pod, rack string
	for s := range f.Servers {
		if s%(ServersPerRack*f.Racks) == 0 {
			pod = fmt.Sprintf("pod%d", s/(ServersPerRack*f.Racks))
			groups = append(groups, Group{pod, "dc"})
		}
		if s%ServersPerRack == 0 {
			rack = fmt.Sprintf("rack%d", s/ServersPerRack)
			groups = append(groups, Group{rack, pod})
		}
		server := fmt.Sprintf("server%d", s)
		groups = append(groups, Group{server, rack})
		for n := range f.NICs {
			nodes = append(nodes, Node{Name: fmt.Sprintf("%s/nic%d", server, n), Parent: server, Kind: NIC, Capacity: f.NIC})
		}
		nodes = append(nodes, Node{Name: server + "/host", Parent: server, Kind: Host, Capacity: f.Host})
	}
	return New(groups, nodes)
}
