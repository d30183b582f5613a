package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// namespaceDaemon has one namespace, "tenant", over its quota. It notes the changes that it is asked for.
func namespaceDaemon(t *testing.T) (run func(args ...string) (string, error), asked *[]string) {
	t.Helper()
	asked = new([]string)
	lambdas, memory, requests, nicTime, weight := uint64(1), uint64(64<<20), uint64(50_000), uint64(25_000_000), uint64(40)
	n := api.Namespace{
		Name: "tenant", Number: 2, Networks: []api.Network{{Kind: api.NetworkVLAN, ID: 100}, {Kind: api.NetworkVXLAN, ID: 5001}}, Quota: api.Quota{Lambdas: &lambdas, Memory: &memory, Requests: &requests, NICTime: &nicTime, Weight: &weight},
		Use:  api.NamespaceUse{Lambdas: 3, Memory: 3 << 20},
		Over: []string{"namespace tenant has 3 lambdas"}, Stats: &api.Stats{Requests: 10, Replies: 9, Errors: 1, OverQuota: 7, OverShare: 5, OverBandwidth: 6, BadTags: 4, Replayed: 3, Drops: 2, SampledNS: 1500},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PATCH /system/namespace/{name}/quota", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.PathValue("name")+" "+string(body))
		_ = json.NewEncoder(w).Encode(n)
	})
	mux.HandleFunc("GET /system/namespaces/details", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]api.Namespace{{Name: "default"}, n})
	})
	mux.HandleFunc("GET /system/namespace/tenant", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(n) })
	mux.HandleFunc("GET /system/functions", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("namespace") != "tenant" {
			t.Errorf("asked for %s", r.URL)
		}
		_ = json.NewEncoder(w).Encode([]api.Function{{Name: "web", Namespace: "tenant", Memory: 5000}})
	})
	mux.HandleFunc("GET /system/ikernels", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]api.Ikernel{
			{IkernelRequest: api.IkernelRequest{Ikernel: "memcached-cache", Name: "cache", Namespace: "tenant"}}, {IkernelRequest: api.IkernelRequest{Name: "nobodys"}},
			{IkernelRequest: api.IkernelRequest{Name: "batch", Namespace: "tenant"}, Application: &api.IkernelApplication{PID: 7, Command: "server"}},
		})
	})
	mux.HandleFunc("DELETE /system/namespace/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") == "busy" {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(api.Error{Error: "namespace busy is in use"})
		}
	})
	return fakeDaemon(t, mux), asked
}

// The flags change what they name, and nothing else.
func TestNamespaceSet(t *testing.T) {
	run, asked := namespaceDaemon(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--lambdas", "10", "--memory", "64MiB"}, `tenant {"lambdas":10,"memory":67108864}`},
		{[]string{"--lambdas", "0"}, `tenant {"lambdas":0}`},
		{[]string{"--memory", "none"}, `tenant {"memory":null}`},
		{[]string{"--memory", "4096"}, `tenant {"memory":4096}`},
		{[]string{"--requests", "50000", "--nic-time", "2.5%"}, `tenant {"requests":50000,"nic_time":25000000}`},
		{[]string{"--requests", "none", "--nic-time", "none"}, `tenant {"requests":null,"nic_time":null}`},
		{[]string{"--nic-time", "0%"}, `tenant {"nic_time":0}`},
		{[]string{"--nic-time", "400%"}, `tenant {"nic_time":4000000000}`},
		{[]string{"--weight", "40"}, `tenant {"weight":40}`},
	} {
		*asked = nil
		out, err := run(append([]string{"namespace", "set", "tenant"}, c.args...)...)
		if err != nil || len(*asked) != 1 || (*asked)[0] != c.want {
			t.Errorf("%v asked for %q (%v), want %q", c.args, *asked, err, c.want)
		}
		if !strings.Contains(out, "namespace tenant has 3 of 1 lambda, 3.0 MiB of 64 MiB of memory; requests/s <= 50000, NIC time/s <= 2.5%, weight 40\nwarning: namespace tenant has 3 lambdas\n") {
			t.Errorf("%v: %q", c.args, out)
		}
	}
	*asked = nil
	for want, args := range map[string][]string{
		`"-1" is not a number`:         {"tenant", "--lambdas", "-1"},
		`"many" is not a number`:       {"tenant", "--lambdas", "many"},
		`"-1MiB" is not a size`:        {"tenant", "--memory", "-1MiB"},
		`or none for no limit`:         {"tenant", "--memory", "big"},
		`"" is not a size`:             {"tenant", "--memory", ""},
		`"1.5" is not a number`:        {"tenant", "--requests", "1.5"},
		`from 0 to 4294967295`:         {"tenant", "--requests", "5000000000"},
		`"10" is not a share of a CPU`: {"tenant", "--nic-time", "10"},
		`"-1%" is not a share`:         {"tenant", "--nic-time", "-1%"},
		`"NaN%" is not a share`:        {"tenant", "--nic-time", "NaN%"},
		`"1e9%" is not a share`:        {"tenant", "--nic-time", "1e9%"},
		`"0" is not a weight`:          {"tenant", "--weight", "0"},
		`"10001" is not a weight`:      {"tenant", "--weight", "10001"},
		`"none" is not a weight`:       {"tenant", "--weight", "none"},
		"name one with --lambdas, --":  {"tenant"},
		"set NAME":                     {"--lambdas", "3"},
		"an argument is empty: write `lambdanic namespace set NAME": {"", "--lambdas", "3"},
	} {
		if _, err := run(append([]string{"namespace", "set"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("asked for %q", *asked)
	}
}

func TestNamespaceListAndShow(t *testing.T) {
	run, _ := namespaceDaemon(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, "NAME LAMBDAS MEMORY REQUESTS/S NIC TIME/S WEIGHT REQUESTS REPLIES ERRORS OVER QUOTA OVER SHARE OVER BANDWIDTH BAD TAGS REPLAYED DROPS NIC TIME default 0 0 B unlimited unlimited 100 - - - - - - - - - - " +
			"tenant 3 of 1 3.0 MiB of 64 MiB <= 50000 <= 2.5% 40 10 9 1 7 5 6 4 3 2 96µs"},
		{[]string{"show", "tenant"}, "name tenant number 2 lambdas 3 of 1 memory 3.0 MiB of 64 MiB requests/s <= 50000 NIC time/s <= 2.5% weight 40 keys none networks vlan:100, vxlan:5001 " +
			"requests 10 replies 9 errors 1 over quota 7 over share 5 over bandwidth 6 bad tags 4 replayed 3 drops 2 NIC time 96µs warning namespace tenant has 3 lambdas function web 4.9 KiB ikernel cache memcached-cache ikernel batch process 7 (server)"},
	} {
		out, err := run(append([]string{"namespace"}, c.args...)...)
		if got := strings.Join(strings.Fields(out), " "); err != nil || got != c.want {
			t.Errorf("%v: %q (%v), want %q", c.args, got, err, c.want)
		}
	}
	var n api.Namespace
	if out, err := run("namespace", "show", "tenant", "--json"); err != nil || json.Unmarshal([]byte(out), &n) != nil || len(n.Networks) != 2 || n.Stats.Requests != 10 || *n.Quota.Lambdas != 1 {
		t.Errorf("%q (%v)", out, err)
	}
	var list []api.Namespace
	if out, err := run("namespace", "list", "--json"); err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 2 || list[0].Stats != nil {
		t.Errorf("%q (%v)", out, err)
	}
	if _, err := run("namespace", "show", "nosuch"); err == nil {
		t.Error("a namespace is shown that there is not")
	}
}

func TestNamespaceRemoveGoesOn(t *testing.T) {
	run, _ := namespaceDaemon(t)
	out, err := run("namespace", "remove", "busy", "tenant")
	if err == nil || !strings.Contains(err.Error(), "busy is in use") || out != "namespace tenant is removed\n" {
		t.Errorf("%q (%v)", out, err)
	}
}

func TestNamespaceKeyRemove(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /system/namespace/tenant/keys/1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	run := fakeDaemon(t, mux)
	for want, args := range map[string][]string{"namespace tenant: key 1 is removed": {"1"}, `{ "removed": [ "1" ] }`: {"1", "--json"}} {
		if out, err := run(append([]string{"namespace", "key", "remove", "tenant"}, args...)...); err != nil || strings.Join(strings.Fields(out), " ") != want {
			t.Errorf("%v: %q (%v), want %q", args, out, err, want)
		}
	}
}

// The examples of docs/tenants.md are commands that there are.
func TestTenantsDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/tenants.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(strings.SplitN(line, "#", 2)[0]); len(words) > 1 && words[0] == "lambdanic" {
			takes(t, words[1:])
			commands++
		}
	}
	if commands < 4 {
		t.Errorf("there are only %d", commands)
	}
}
