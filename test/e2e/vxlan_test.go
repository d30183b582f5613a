package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// The addresses in each tenant's network: they may overlap.
const (
	inNetwork = "10.99.0.1" // the NIC's
	ofTenant  = "10.99.0.2/24"
)

// enlarge makes room for a VXLAN's headers on both ends of the cable: packets of λ-RPC take 1,500 bytes.
func (c cable) enlarge(t *testing.T) {
	t.Helper()
	grow := func(name string) error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, 1550)
	}
	if err := grow(c.name); err != nil {
		t.Fatal(err)
	}
	c.atPeer(t, func() error { return grow(farEnd) })
}

// tenantOf makes a network namespace that reaches the NIC by the kernel's own VXLAN, over the cable.
func (c cable) tenantOf(t *testing.T, vni int) (name string) {
	t.Helper()
	name = fmt.Sprintf("%s-%d", c.name, vni)
	ns := isolated.Namespace(t, name)
	c.atPeer(t, func() error {
		far, err := netlink.LinkByName(farEnd)
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(far, netlink.FAMILY_V4)
		if err != nil || len(addrs) == 0 {
			return fmt.Errorf("the far end's addresses: %v, %w", addrs, err)
		}
		near := net.IP(append([]byte{}, addrs[0].IP.To4()...))
		near[3] = 1
		vxlan := &netlink.Vxlan{
			LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("vx", vni), MTU: 1500}, VxlanId: vni, VtepDevIndex: far.Attrs().Index,
			SrcAddr: addrs[0].IP, Group: near, Port: 4789,
		}
		return errors.Join(netlink.LinkAdd(vxlan), netlink.LinkSetNsFd(vxlan, int(ns)))
	})
	join(t, name, fmt.Sprint("vx", vni))
	return name
}

// join gives an interface in a tenant's network namespace the tenant's address, and has it find the NIC.
func join(t *testing.T, namespace, iface string) {
	t.Helper()
	if err := veth.InNamed(namespace, func() error {
		l, err := netlink.LinkByName(iface)
		if err != nil {
			return err
		}
		return errors.Join(setUp(iface, ofTenant), netlink.NeighAdd(&netlink.Neigh{
			LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.ParseIP(inNetwork), HardwareAddr: net.HardwareAddr{2, 9, 9, 0, 0, 1},
		}))
	}); err != nil {
		t.Fatal(err)
	}
}

// callFrom calls a function from a network namespace, at the address in the tenant's network.
func callFrom(t *testing.T, namespace string, f api.Function, body string, patience time.Duration) (answer []byte, err error) {
	t.Helper()
	err = veth.InNamed(namespace, func() error {
		client, err := lambdanic.DialConn(net.JoinHostPort(inNetwork, fmt.Sprint(api.RPCPort)))
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		a, err := client.Call(ctx, lambdanic.Request{Workload: f.Workload, Body: []byte(body)})
		answer = a.Body
		return err
	})
	return answer, err
}

// reversed is what the function mirror makes of a message.
func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// Two tenants whose networks have the same addresses reach each its own functions, by the VXLAN of the kernel, with requests and replies of one packet
// and of many.
func TestVXLAN(t *testing.T) {
	needRoot(t)
	i := newInstance(t)
	c := newCable(t, i)
	c.enlarge(t)
	i.start("--nic", c.name, "--address", inNetwork)
	var functions []api.Function
	for _, tenant := range []string{"first", "second"} {
		i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC), "-n", tenant)
		i.run("deploy", "test/lambdas/mirror", "--target", string(api.TargetNIC), "-n", tenant)
		functions = append(functions, query[api.Function](i, "describe", "web_server", "-n", tenant), query[api.Function](i, "describe", "mirror", "-n", tenant))
	}
	i.run("namespace", "network", "add", "first", "vxlan:5001")
	i.run("namespace", "network", "add", "second", "vxlan:5002")
	tenants := []string{c.tenantOf(t, 5001), c.tenantOf(t, 5002)}
	long := strings.Repeat("a message of many packets ", 500)
	for n, tenant := range tenants {
		for f, function := range functions {
			body, want := "/hello", hello
			if function.Name == "mirror" {
				body, want = long, reversed(long)
			}
			if f/2 != n {
				if answer, err := callFrom(t, tenant, function, body, 100*time.Millisecond); err == nil {
					t.Errorf("tenant %d gets %d bytes of the other's %s", n, len(answer), function.Name)
				}
				continue
			}
			if answer, err := callFrom(t, tenant, function, body, patience); err != nil || string(answer) != want {
				t.Errorf("tenant %d: its %s: %d bytes, %v", n, function.Name, len(answer), err)
			}
		}
	}
}
