package placement

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

const twoServers = `
groups:
- {name: rack}
- {name: s1, parent: rack}
- {name: s2, parent: rack}
nodes:
- {name: s2/nic, parent: s2, kind: nic, capacity: {millicores: 12000, memory: 4096, bandwidth: 20000, requests: 100}, labels: {crypto: "yes"}}
- {name: s2/host, parent: s2, kind: host, capacity: {millicores: 12000, memory: 65536, disk: 1, bandwidth: 20000, requests: 100}}
- {name: s1/nic, parent: s1, kind: nic, capacity: {millicores: 12000, memory: 4096, bandwidth: 20000, requests: 100}}
- {name: s1/host, parent: s1, kind: host, capacity: {millicores: 12000, memory: 65536, bandwidth: 20000, requests: 100}, load: {requests: 7}}
`

func TestReadTopology(t *testing.T) {
	topo, err := ReadTopology([]byte(twoServers))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for id := range topo.Len() {
		names = append(names, topo.Node(NodeID(id)).Name)
	}
	if want := []string{"s1/nic", "s1/host", "s2/nic", "s2/host"}; !slices.Equal(names, want) {
		t.Errorf("nodes in tree order: %v, want %v", names, want)
	}
	if n := topo.Node(2); n.Labels["crypto"] != "yes" || n.Capacity != (Vector{12000, 4096, 0, 20000, 100}) {
		t.Errorf("got %+v", n)
	}
	if topo.Node(1).Load != (Vector{Requests: 7}) {
		t.Errorf("got %+v", topo.Node(1))
	}
}

func TestTopologyErrors(t *testing.T) {
	for change, want := range map[string]string{
		"":                                  "the file is empty",
		"[":                                 "topology:",
		"a: 1":                              `unknown field "a"`,
		"nodes: []":                         "it has no nodes",
		"parent: s1, kind: nic|kind: nic":   `node "s1/nic": there is no parent ""`,
		"parent: s1, kind|parent: s3, kind": `node "s1/nic": there is no parent "s3"`,
		"name: s1, parent: rack|name: s1, parent: crack": `group "s1": there is no parent "crack"`,
		"name: s1, parent: rack|name: s1":                `groups "rack" and "s1" have no parent`,
		"{name: rack}|{name: rack, parent: s1}":          "no group is the root",
		"name: s1, parent: rack|name: s1, parent: s1":    `group "s1" is below itself`,
		"{name: s1, parent|{name: s2, parent":            `two groups are named "s2"`,
		"- {name: s1, |- {":                              "group 2 has no name",
		"name: s1/nic|name: s2/nic":                      `two nodes are named "s2/nic"`,
		"name: s1/nic|name: ''":                          "node 3 has no name",
		"kind: nic|kind: gpu":                            `node "s2/nic": kind "gpu": it has to be nic or host`,
		"memory: 4096|memory: -1":                        `node "s2/nic": capacity: memory is -1`,
		"memory: 4096|disk: 5":                           `node "s2/nic": capacity: memory is missing or 0`,
		"memory: 4096|memory: 1.5":                       "line 7: nodes[0].capacity.memory: 1.5 has to be a whole number",
		"memory: 4096|ram: 4096":                         `line 7: nodes[0].capacity: resource "ram": it has to be one of millicores, memory`,
		"load: {requests: 7}|load: {requests: -7}":       `node "s1/host": load: requests is -7`,
		"groups:|groups:\n- {name: s0, parent: rack}":    `group "s0" has no nodes`,
		"labels: {|lables: {":                            `line 7: nodes[0]: unknown field "lables": it has to be one of name, parent,`,
		"crypto: \"yes\"|crypto: 1":                      "line 7: nodes[0].labels.crypto: 1 has to be text: quote it",
		"{name: rack}|rack":                              `groups[0]: "rack" is no object`,
		"{name: rack}|&a {name: rack}\n- *a":             "aliases are not supported",
		"groups:|---\na: 1\n---\ngroups:":                "documents, and not one",
	} {
		text := change
		if from, to, ok := strings.Cut(change, "|"); ok {
			text = strings.Replace(twoServers, from, to, 1)
		}
		if _, err := ReadTopology([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ...%s...", change, err, want)
		}
	}
	if _, err := ReadTopology([]byte(`{"nodes": []} {}`)); err == nil || !strings.Contains(err.Error(), "something follows") {
		t.Errorf("got %v", err)
	}
}

// Levels are those of section 3.3, each node is in one, and hops are the links on the way, on any tree.
func TestLevels(t *testing.T) {
	r := seed.Rand(t)
	for range 100 {
		topo := randomTopology(t, r, 12)
		n := newNaive(topo, parentsOf(topo))
		for from := range topo.Len() {
			seen, last := 0, 0
			for _, l := range topo.Levels(NodeID(from)) {
				if l.Number <= last || !slices.IsSorted(l.Nodes) {
					t.Fatalf("level %d after %d: %v", l.Number, last, l.Nodes)
				}
				last = l.Number
				seen += len(l.Nodes)
				for _, id := range l.Nodes {
					if want := n.level(from, int(id)); want != l.Number {
						t.Fatalf("node %d from %d is in level %d, want %d", id, from, l.Number, want)
					}
				}
			}
			if seen != topo.Len() {
				t.Fatalf("%d of %d nodes are in a level", seen, topo.Len())
			}
		}
	}
}

func TestFatTree(t *testing.T) {
	topo, err := FatTree{Servers: 85, NICs: 2, Racks: 2}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	id := func(name string) NodeID {
		id, ok := topo.ID(name)
		if !ok {
			t.Fatalf("no node %s", name)
		}
		return id
	}
	if topo.Len() != 85*3 {
		t.Errorf("%d nodes", topo.Len())
	}
	for to, hops := range map[string]int{"server0/nic0": 0, "server0/nic1": 2, "server0/host": 2, "server39/host": 4, "server40/nic0": 6, "server80/nic1": 8} {
		if got := topo.Hops(id("server0/nic0"), id(to)); got != hops {
			t.Errorf("%d hops to %s, want %d", got, to, hops)
		}
	}
	var sizes []string
	for _, l := range topo.Levels(id("server0/nic0")) {
		sizes = append(sizes, fmt.Sprintf("%d:%d", l.Number, len(l.Nodes)))
	}
	if want := "1:1 2:2 3:78 4:39 5:80 6:40 7:10 8:5"; strings.Join(sizes, " ") != want {
		t.Errorf("levels %v, want %s", sizes, want)
	}
	for _, bad := range []FatTree{{}, {Servers: -1}, {Servers: 1, NICs: -1}, {Servers: 1, Racks: -1}, {Servers: 1 << 40, NICs: 1 << 40}, {Servers: 1, NIC: Vector{Cores: -1}, NICs: 1}} {
		if _, err := bad.Topology(); err == nil {
			t.Errorf("%+v was made", bad)
		}
	}
}

// What is read is sound, and reads back from what is written.
func FuzzReadTopology(f *testing.F) {
	f.Add([]byte(twoServers))
	f.Add([]byte(`{"groups": [{"name": "g"}], "nodes": [{"name": "n", "parent": "g", "kind": "host", "capacity": {"millicores": 1, "memory": 1, "bandwidth": 1, "requests": 1}}]}`))
	f.Add([]byte("groups: [{name: a, parent: a}]\nnodes: [{name: n, parent: a}]"))
	f.Add([]byte("a: &a [1]\nb: [*a, *a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		topo, err := ReadTopology(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteTopology(&b, topo); err != nil {
			t.Fatal(err)
		}
		again, err := ReadTopology(b.Bytes())
		if err != nil {
			t.Fatalf("%v in %s", err, &b)
		}
		for id := range topo.Len() {
			was, is := *topo.Node(NodeID(id)), *again.Node(NodeID(id))
			if len(was.Labels) == 0 && len(is.Labels) == 0 {
				was.Labels, is.Labels = nil, nil
			}
			if !reflect.DeepEqual(was, is) {
				t.Fatalf("node %d was %+v, is %+v", id, was, is)
			}
		}
		if len(NewState(topo).Check()) != 0 {
			t.Fatal("constraints are broken where nothing runs")
		}
	})
}
