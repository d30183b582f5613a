package daemon

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
)

// From a namespace's first network to its last, its functions are not there for clients in no network, also with the next daemon. By HTTP nothing changes.
func TestTenantWithNetworks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "n")
	config := Config{Paths: p, Listen: anyPort, NIC: nics.Options{UnknownError: true}}
	c := mustUp(t, config)
	client, ctx := NewClient(p), t.Context()
	web := deployWebServer(t, p)
	f, err := client.Deploy(ctx, types.FunctionDeployment{Service: "web", Namespace: "tenant", Image: web.Image})
	if err != nil {
		t.Fatal(err)
	}
	served := func(when string, inNoNetwork bool) {
		t.Helper()
		fetch(t, "http://"+c.node.Listen+"/function/web.tenant")
		if err := asks(t, f); inNoNetwork != (err == nil) || !inNoNetwork && !errors.Is(err, lambdanic.ErrUnknownWorkload) {
			t.Errorf("%s: from no network: %v", when, err)
		}
	}
	served("without networks", true)
	vlan, vxlan := api.Network{Kind: api.NetworkVLAN, ID: 100}, api.Network{Kind: api.NetworkVXLAN, ID: 5001}
	for _, network := range []api.Network{vlan, vxlan} {
		if _, err := client.AddNetwork(ctx, "tenant", network); err != nil {
			t.Fatal(err)
		}
		served("with "+network.String(), false)
	}
	if _, err := client.AddNetwork(ctx, "other", vlan); err == nil || !strings.Contains(err.Error(), "`lambdanic namespace network remove tenant vlan:100`") {
		t.Errorf("added to another namespace: %v", err)
	}
	c.kill()
	c = mustUp(t, config)
	served("with the next daemon", false)
	for _, step := range []struct {
		remove      api.Network
		left        int
		inNoNetwork bool
	}{{vlan, 1, false}, {vxlan, 0, true}} {
		n, err := client.RemoveNetwork(ctx, "tenant", step.remove)
		if err != nil || len(n.Networks) != step.left {
			t.Errorf("without %v: %+v (%v)", step.remove, n, err)
		}
		served("without "+step.remove.String(), step.inNoNetwork)
	}
	if node, err := client.Node(ctx); err != nil || len(node.Targets) == 0 || len(node.Targets[0].Interfaces) != 1 || !strings.Contains(node.Targets[0].Detail, node.Targets[0].Interfaces[0]) {
		t.Errorf("the node does not name its interface: %+v (%v)", node, err)
	}
}
