package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// placeFiles writes a rack of two servers and two applications, and moves there.
func placeFiles(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"rack.yml": `
groups: [{name: rack}, {name: s1, parent: rack}, {name: s2, parent: rack}]
nodes:
- {name: s1/host, parent: s1, kind: host, capacity: {millicores: 16000, memory: 65536, bandwidth: 25000, requests: 100}}
- {name: s1/nic, parent: s1, kind: nic, capacity: {millicores: 4000, memory: 4096, bandwidth: 25000, requests: 100}}
- {name: s2/host, parent: s2, kind: host, capacity: {millicores: 16000, memory: 65536, bandwidth: 25000, requests: 100}}
`,
		"web.yml":    "name: web\nservices:\n- {name: web, demand: {millicores: 9000}}\n- {name: log, demand: {millicores: 1000}, kinds: [nic]}\nedges: [{from: web, to: log, traffic: 5}]\n",
		"more.yml":   "name: web\nservices:\n- {name: web, demand: {millicores: 9000}}\n- {name: cache, demand: {millicores: 3500}}\nedges: [{from: web, to: cache, traffic: 5}]\n",
		"large.yml":  "name: web\nservices:\n- {name: web, demand: {millicores: 17000}}\n",
		"pinned.yml": "name: web\nservices:\n- {name: web, node: s1/host}\n",
		"card.yml":   "name: shop\nservices:\n- {name: card, demand: {millicores: 12000}, node: s1/host}\n",
		"bad.yml":    "name: bad\nservices:\n- {name: a}\n- {name: b, pin: s1/host}\n",
		// By hcm, the small ones share a host, so that the last has none.
		"tight.yml":  "name: tight\nservices: [{name: a, demand: {millicores: 6000}}, {name: b, demand: {millicores: 6000}}, {name: c, demand: {millicores: 10000}}, {name: d, demand: {millicores: 10000}}]\n",
		"empty.json": "{}",
		"gone.json":  `{"apps": [{"name": "web", "services": [{"name": "web", "node": "s9/host"}]}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// placed places, and gives where services are by name.
func placed(t *testing.T, args string) (*placeResult, map[string]string) {
	t.Helper()
	got, said, err := simulateBoth(t, append([]string{"place", "--topology", "rack.yml", "--json"}, strings.Fields(args)...)...)
	if err != nil {
		t.Fatalf("%s: %v, %s", args, err, said)
	}
	r, at := new(placeResult), make(map[string]string)
	if err := json.Unmarshal([]byte(got), r); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	for _, a := range r.Apps {
		for _, s := range a.Services {
			at[s.Name] = s.Node
		}
	}
	if err := os.WriteFile("placed.json", []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
	return r, at
}

func TestSimPlace(t *testing.T) {
	placeFiles(t)
	// The second application's pinned one has no choice.
	for _, policy := range []string{"hcm", "anneal", "ilp"} {
		r, at := placed(t, "web.yml card.yml --policy "+policy)
		if at["card"] != "s1/host" || at["web"] != "s2/host" || at["log"] != "s1/nic" {
			t.Errorf("%s: %v", policy, at)
		}
		if a := r.Apps[0]; a.Communication <= 0 || a.Cost-a.Interference-a.Communication > 1e-9 || len(r.Nodes) != 3 || r.Nodes[0].Free[0] != 4000 {
			t.Errorf("%s: %+v", policy, r)
		}
	}
	got, err := simulate(t, "place", "--topology", "rack.yml", "web.yml", "--explain=log")
	for _, want := range []string{"APP  SERVICE  NODE     KIND  WHY\nweb  web      s1/host  host  the first that fits\n", "cost of web: ", "\nlog: s1/nic is the best fit of level 2 (the same server, s1) from s1/host\n  level 1 (the same node), 1 node: 1 refused by kind\n"} {
		if err != nil || !strings.Contains(got, want) || strings.Contains(got, "\nweb: ") {
			t.Errorf("%v, it printed\n%swant\n%s", err, got, want)
		}
	}
	if got, err := simulate(t, "place", "--topology", "rack.yml", "web.yml", "--policy", "anneal", "--explain"); err != nil || !strings.Contains(got, "\nlog: s1/nic is where it adds 0.5000 to the app's cost; no other one fits as the others are placed\n  level 2 (the same server, s1), 1 node: 1 refused by kind\n") {
		t.Errorf("%v, %s", err, got)
	}
}

// What an earlier result has stays where it is, whatever would be better; what is gone is told.
func TestSimPlaceKeeps(t *testing.T) {
	placeFiles(t)
	for _, policy := range []string{"hcm", "anneal", "ilp"} {
		placed(t, "web.yml card.yml") // web on s2
		if _, at := placed(t, "more.yml card.yml --placed placed.json --policy "+policy); at["web"] != "s2/host" || at["cache"] == "" || at["log"] != "" {
			t.Errorf("%s: %v", policy, at)
		}
	}
	placed(t, "web.yml")
	got, err := simulate(t, "place", "--topology", "rack.yml", "--placed", "placed.json", "more.yml")
	if want := "placed.json: its microservice web/log is in no application any more"; err != nil || !strings.Contains(got, want) || !strings.Contains(got, "web  web      s1/host  host  it was there before\n") {
		t.Errorf("%v, %s", err, got)
	}
}

func TestSimPlaceRefuses(t *testing.T) {
	placeFiles(t)
	placed(t, "web.yml card.yml")
	for args, want := range map[string]string{
		"web.yml":                                                      `required flag(s) "topology" not set`,
		"--topology rack.yml":                                          "requires at least 1 arg",
		"--topology no.yml web.yml":                                    "--topology: open no.yml",
		"--topology web.yml web.yml":                                   `--topology web.yml: topology: unknown field "edges": it has to be one of groups, nodes`,
		"--topology rack.yml no.yml":                                   "application: open no.yml",
		"--topology rack.yml bad.yml":                                  `bad.yml: app: line 4: services[1]: unknown field "pin"`,
		"--topology rack.yml large.yml":                                `app "web": no placement meets all constraints: microservice "web" fits on none of the 3 nodes that it may be on: the nearest, s1/host, lacks 1000 millicores`,
		"--topology rack.yml large.yml --policy anneal":                `"web" fits on none of the 3 nodes`,
		"--topology rack.yml large.yml --policy ilp":                   `"web" fits on none of the 3 nodes`,
		"--topology rack.yml tight.yml":                                `no node fits microservice "d": all 3 nodes: 3 refused by millicores`,
		"--topology rack.yml tight.yml --seed 1":                       "hcm moves nothing out of the way: try --policy anneal, or ilp",
		"--topology rack.yml web.yml --policy best":                    `--policy: policy "best"`,
		"--topology rack.yml web.yml web.yml":                          `app "web" is there already`,
		"--topology rack.yml web.yml --explain=db":                     "--explain=db: there is no such microservice: web, log",
		"--topology rack.yml web.yml --explain log":                    "open log: no such file or directory: to explain a microservice of that name, write --explain=log",
		"--topology rack.yml web.yml --placed placed.json":             `with --placed placed.json: application "shop" was placed: give its file too`,
		"--topology rack.yml web.yml --placed empty.json":              "it has no applications: it has to be what an earlier --json printed",
		"--topology rack.yml web.yml --placed rack.yml":                "it has to be what an earlier --json printed: invalid character",
		"--topology rack.yml web.yml --placed gone.json":               `microservice "web" was on node "s9/host", which the topology does not have`,
		"--topology rack.yml pinned.yml card.yml --placed placed.json": `microservice "web" was on node "s2/host", and is pinned to "s1/host"`,
		"--topology rack.yml large.yml card.yml --placed placed.json":  `what was placed does not fit any more: node "s2/host" lacks 1000 millicores`,
	} {
		if got, err := simulate(t, append([]string{"place"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %s, want %s", args, err, got, want)
		}
	}
	if _, at := placed(t, "tight.yml --policy anneal"); at["a"] == at["b"] || at["c"] == at["d"] {
		t.Errorf("%v", at)
	}
}
