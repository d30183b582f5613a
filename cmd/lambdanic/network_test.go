package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// networkDaemon has the namespace "tenant" with these networks. It notes what it is asked for.
func networkDaemon(t *testing.T, networks ...api.Network) (run func(args ...string) (string, error), asked *[]string) {
	t.Helper()
	asked = new([]string)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, r.Method+" "+r.URL.Path+" "+string(body))
		_ = json.NewEncoder(w).Encode(api.Namespace{Name: "tenant", Networks: networks})
	}
	mux.HandleFunc("POST /system/namespace/tenant/networks", answer)
	mux.HandleFunc("DELETE /system/namespace/tenant/networks/{network}", answer)
	return fakeDaemon(t, mux), asked
}

// The commands ask for one change, and say by which networks the functions are reached then.
func TestNamespaceNetwork(t *testing.T) {
	vlan := api.Network{Kind: api.NetworkVLAN, ID: 100}
	for _, c := range []struct {
		networks  []api.Network
		args      []string
		asks, out string
	}{
		{
			[]api.Network{vlan},
			[]string{"add", "tenant", "vlan:100"}, `POST /system/namespace/tenant/networks {"network":"vlan:100"}`,
			"the functions of namespace tenant on the NIC are reached by vlan:100 alone; see `lambdanic namespace show tenant`\n",
		},
		{
			[]api.Network{vlan, {Kind: api.NetworkVXLAN, ID: 5001}},
			[]string{"add", "tenant", "vxlan:5001"}, `POST /system/namespace/tenant/networks {"network":"vxlan:5001"}`,
			"the functions of namespace tenant on the NIC are reached by vlan:100, vxlan:5001 alone; see `lambdanic namespace show tenant`\n",
		},
		{
			[]api.Network{vlan},
			[]string{"remove", "tenant", "vxlan:5001"}, `DELETE /system/namespace/tenant/networks/vxlan:5001 `,
			"the functions of namespace tenant on the NIC are reached by vlan:100 alone; see `lambdanic namespace show tenant`\n",
		},
		{
			nil,
			[]string{"rm", "tenant", "vlan:100"}, `DELETE /system/namespace/tenant/networks/vlan:100 `,
			"namespace tenant has no networks: packets in no network reach its functions; give it one with `lambdanic namespace network add tenant vlan:ID`\n",
		},
		{[]api.Network{vlan}, []string{"add", "tenant", "vlan:100", "--json"}, `POST /system/namespace/tenant/networks {"network":"vlan:100"}`, `"vlan:100"`},
	} {
		run, asked := networkDaemon(t, c.networks...)
		out, err := run(append([]string{"namespace", "network"}, c.args...)...)
		if err != nil || !slices.Equal(*asked, []string{c.asks}) || !strings.Contains(out, c.out) {
			t.Errorf("%v: %q, asked for %q (%v)", c.args, out, *asked, err)
		}
	}
}

// What is no network is refused before anybody is asked.
func TestNamespaceNetworkRefuses(t *testing.T) {
	run, asked := networkDaemon(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "tenant", "100"}, "give it as vlan:ID or vxlan:ID"},
		{[]string{"add", "tenant", "vlan:4095"}, "a number from 1 to 4094"},
		{[]string{"remove", "tenant", "vxlan:0"}, "a number from 1 to 16777215"},
		{[]string{"add", "tenant"}, "add NAMESPACE vlan:ID|vxlan:ID"},
		{[]string{"remove", "tenant"}, "remove NAMESPACE vlan:ID|vxlan:ID"},
	} {
		if _, err := run(append([]string{"namespace", "network"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
	if len(*asked) > 0 {
		t.Errorf("asked for %q", *asked)
	}
}

// The warning names the interfaces that hide VLAN tags, and says nothing of those of which nobody knows.
func TestStrippedTagsAreWarnedOf(t *testing.T) {
	var out strings.Builder
	strips := func(iface string) (bool, error) {
		if iface == "unknown" {
			return true, errors.New("no such device")
		}
		return iface == "eth1", nil
	}
	warnOfStripping(&out, []api.NodeTarget{{Target: api.TargetNIC, Interfaces: []string{"eth0", "eth1", "unknown"}}, {Target: api.TargetProcess}}, strips)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "warning: eth1 takes VLAN tags") || !strings.Contains(got, "`ethtool -K eth1 rxvlan off`") {
		t.Errorf("got %q", got)
	}
}
