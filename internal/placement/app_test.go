package placement

import (
	"strings"
	"testing"
)

const thermostat = `
name: thermostat
services:
- {name: api, demand: {millicores: 500, requests: 10}, on_nic: {millicores: 900}, kinds: [host], stateful: true}
- {name: ema, demand: {millicores: 100}, apart: [backup], labels: {crypto: "yes"}}
- {name: backup, demand: {millicores: 100}, max_colocated: 3, move_cost: 7}
- {name: sql, demand: {memory: 1000}, node: s1/host}
edges:
- {from: api, to: ema, traffic: 100}
- {from: ema, to: sql}
- {from: api, to: backup}
- {from: backup, to: sql}
`

func TestReadApp(t *testing.T) {
	a, err := ReadApp([]byte(thermostat))
	if err != nil {
		t.Fatal(err)
	}
	s := a.Services
	if a.Name != "thermostat" || !s[0].allows(Host) || s[0].allows(NIC) || s[0].demand(NIC.ordinal())[Cores] != 900 || s[0].demand(Host.ordinal())[Cores] != 500 {
		t.Errorf("got %+v", a)
	}
	if s[0].moveCost() != StatefulMove || s[1].moveCost() != 1 || s[2].moveCost() != 7 || a.traffic != 100 {
		t.Errorf("got %+v", a)
	}
	topo, err := ReadTopology([]byte(twoServers))
	if err != nil {
		t.Fatal(err)
	}
	state := NewState(topo)
	d, err := state.Add(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.HCM(d, Options{}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"s1/host", "s2/nic", "s1/host", "s1/host"} {
		if got := topo.name(d.Node(i)); got != want {
			t.Errorf("%s is on %s, want %s", s[i].Name, got, want)
		}
	}
	if broken := state.Check(); len(broken) > 0 {
		t.Error(broken)
	}
	if _, err := state.Add(a); err == nil {
		t.Error("an app was added twice")
	}
	state.Place(d, 2, d.Node(1))
	state.Place(d, 0, d.Node(1))
	state.Place(d, 3, d.Node(1))
	var broken []string
	for _, v := range state.Check() {
		broken = append(broken, v.Error())
	}
	if got, want := strings.Join(broken, "\n"), `app "thermostat": microservice "api" on node "s2/nic": kind
app "thermostat": microservice "ema" on node "s2/nic": apart
app "thermostat": microservice "backup" on node "s2/nic": apart
app "thermostat": microservice "backup" on node "s2/nic": max_colocated, 1 too many
app "thermostat": microservice "sql" on node "s2/nic": pinned elsewhere`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAppErrors(t *testing.T) {
	for change, want := range map[string]string{
		"":                                               "the file is empty",
		"name: thermostat|x: y":                          `unknown field "x"`,
		"name: thermostat|name: ''":                      "it has no name",
		"kinds: [host]|kinds: host":                      `line 4: services[0].kinds: "host" is no list`,
		"stateful: true|stateful: 1":                     "line 4: services[0].stateful: 1 has to be true or false",
		"node: s1/host|pin: s1/host":                     `line 7: services[3]: unknown field "pin": it has to be one of name, demand, on_nic,`,
		"traffic: 100|traffic: 1.5":                      "line 9: edges[0].traffic: 1.5 has to be a whole number",
		"name: api|name: ''":                             "microservice 1 has no name",
		"name: api, d|name: ema, d":                      `two microservices are named "ema"`,
		"kinds: [host]|kinds: [gpu]":                     `microservice "api": kind "gpu"`,
		"memory: 1000|memory: -1":                        `microservice "sql": demand: memory is -1`,
		"millicores: 900|millicores: -1":                 `microservice "api": on_nic: millicores is -1`,
		"max_colocated: 3|max_colocated: -1":             "max_colocated is -1",
		"move_cost: 7|move_cost: -7":                     "move_cost is -7",
		"apart: [backup]|apart: [ema]":                   `microservice "ema" cannot be apart from itself`,
		"apart: [backup]|apart: [nobody]":                `apart from "nobody", which is none of the app`,
		"from: api|from: nobody":                         `there is no microservice "nobody"`,
		"to: ema|to: nobody":                             `there is no microservice "nobody"`,
		"traffic: 100|traffic: -100":                     "traffic is -100",
		"from: backup, to: sql|from: ema, to: sql":       "is there twice",
		"from: backup, to: sql|from: sql, to: api":       "edges form a cycle",
		"from: backup, to: sql|from: backup, to: backup": "edges form a cycle",
	} {
		text := change
		if from, to, ok := strings.Cut(change, "|"); ok {
			text = strings.Replace(thermostat, from, to, 1)
		}
		if _, err := ReadApp([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ...%s...", change, err, want)
		}
	}
	a, err := ReadApp([]byte(strings.Replace(thermostat, "s1/host", "s9/host", 1)))
	if err != nil {
		t.Fatal(err)
	}
	topo, err := ReadTopology([]byte(twoServers))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewState(topo).Add(a); err == nil || !strings.Contains(err.Error(), `pinned to the node "s9/host", which does not exist`) {
		t.Errorf("got %v", err)
	}
}

// YAML in flow style begins as JSON does.
func TestReadFlow(t *testing.T) {
	for _, text := range []string{`{name: x, services: [{name: a}]}`, `{"name": x, services: [{name: a}]}`, `{"name": "x", "services": [{"name": "a"}]}`, "{\n  name: x, services: [{name: a}]}"} {
		if a, err := ReadApp([]byte(text)); err != nil || a.Name != "x" || a.Services[0].Name != "a" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadApp([]byte("{\"name\": \"x\",\n,}")); err == nil || !strings.Contains(err.Error(), "app: line 2: invalid character") {
		t.Errorf("got %v", err)
	}
	// JSON has lines too.
	_, err := ReadApp([]byte("{\"name\": \"x\",\n \"services\": [\n  {\"name\": \"a\", \"demand\": {\"memory\": \"1\"}}]}"))
	if want := `app: line 3: services[0].demand.memory: "1" has to be a whole number`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Whatever app is read can be placed, and what is placed breaks no constraint.
func FuzzReadApp(f *testing.F) {
	f.Add([]byte(thermostat))
	f.Add([]byte(`{"name": "a", "services": [{"name": "x", "demand": {"millicores": 1099511627776}}, {"name": "y"}], "edges": [{"from": "x", "to": "y"}]}`))
	f.Add([]byte("name: a\nservices: [{name: x}]\nedges: [{from: x, to: x}]"))
	topo, err := ReadTopology([]byte(twoServers))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ReadApp(data)
		if err != nil {
			return
		}
		s := NewState(topo)
		d, err := s.Add(a)
		if err != nil {
			return
		}
		_ = s.HCM(d, Options{})
		if broken := s.Check(); len(broken) > 0 {
			t.Fatal(broken)
		}
		if s.HCM(d, Options{Overcommit: true}) == nil {
			for _, v := range s.Check() {
				if _, ok := v.Constraint.Resource(); !ok {
					t.Fatal(v)
				}
			}
		}
		s.Remove(d)
		if s.Free(0) != topo.Node(0).Capacity {
			t.Fatalf("a removed app left something behind: %v", s.Free(0))
		}
	})
}
