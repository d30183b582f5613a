package daemon

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A NIC whose interface goes comes back by itself, with what is deployed.
func TestVirtualNICComesBack(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "j")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	f := deployWebServer(t, p)
	want := get(t, c.node.Listen)
	if err := veth.Remove("lnic-" + p.Instance); err != nil {
		t.Fatal(err)
	}
	// Until the daemon misses the interface, the program answers without it.
	eventually(t, "the interface again", func() bool {
		_, err := net.InterfaceByName("lnic-" + p.Instance)
		return err == nil
	})
	eventually(t, "the function on it", func() bool { return describeWeb(t, p).State == api.StateReady })
	eventually(t, "a gateway that reaches the lambda again", func() bool {
		client := http.Client{Timeout: time.Second}
		r, err := client.Get("http://" + c.node.Listen + "/function/web")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	if got := get(t, c.node.Listen); got != want {
		t.Errorf("it answers %q, want %q", got, want)
	}
	if again := describeWeb(t, p); again.State != api.StateReady || again.Revision != f.Revision || again.Target != api.TargetNIC {
		t.Errorf("%+v, want revision %d ready on nic", again, f.Revision)
	}
}

// An application's ikernel goes by the quotas of a NIC that was made anew.
func TestApplicationFollowsNIC(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	config := onInterface(t, "n")
	p, iface := config.Paths, config.NIC.Interfaces[0]
	mustUp(t, config)
	c := NewClient(p)
	if _, err := c.SetQuota(t.Context(), "tenant", api.QuotaChange{}); err != nil {
		t.Fatal(err)
	}
	ikernels, err := lambdanic.OpenIkernels(p.IkernelSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer ikernels.Close()
	k, err := ikernels.CreateFor("passthrough", "tenant")
	if err != nil {
		t.Fatal(err)
	}
	var server *net.UDPConn
	var client net.Conn
	if err := veth.In(isolated.Namespace(t, "lnf"+p.Instance), func() (err error) {
		if server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err == nil {
			client, err = net.Dial("udp", server.LocalAddr().String())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer client.Close()
	if err := k.Attach(server); err != nil {
		t.Fatal(err)
	}
	available := func() bool {
		n, err := c.Node(t.Context())
		return err == nil && n.Targets[0].Available
	}
	quotas := filepath.Join(nic.DefaultPinDir, p.Instance+":limits", "ln_quotas")
	former, err := ebpf.LoadPinnedMap(quotas, nil) // which is kept until the end, so that no other one has its number
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	if err := veth.Remove(iface); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a node without a NIC and quotas", func() bool {
		_, err := os.Stat(quotas)
		return errors.Is(err, os.ErrNotExist) && !available()
	})
	plug(t, iface)
	eventually(t, "a NIC", available)
	next, err := ebpf.LoadPinnedMap(quotas, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if number(t, next) == number(t, former) {
		t.Fatal("the NIC has the quotas that it had")
	}
	if _, err := c.SetQuota(t.Context(), "tenant", api.QuotaChange{Requests: api.SetLimit(0)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a datagram over quota", func() bool {
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		list, err := c.Ikernels(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("there are %+v, %v", list, err)
		}
		return slices.ContainsFunc(list[0].Counters, func(c api.Counter) bool { return c.Name == "over_quota" && c.Value > 0 })
	})
}

// number is the kernel's number of a map.
func number(t *testing.T, m *ebpf.Map) ebpf.MapID {
	t.Helper()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}

// While a real interface is away, its functions say so and stay; when it comes back, so do they.
func TestRealInterfaceComesBack(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	config := onInterface(t, "k")
	p, iface := config.Paths, config.NIC.Interfaces[0]
	mustUp(t, config)
	deployWebServer(t, p)
	if err := veth.Remove(iface); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a reason that names the interface", func() bool {
		f := describeWeb(t, p)
		return f.State == api.StateError && f.Target == api.TargetNIC && strings.Contains(f.Reason, iface)
	})
	if n, err := NewClient(p).Node(t.Context()); err != nil || n.Targets[0].Available || !strings.Contains(n.Targets[0].Reason, iface) {
		t.Errorf("the node says %+v (%v)", n, err)
	}
	plug(t, iface)
	eventually(t, "the function on its interface", func() bool { return describeWeb(t, p).State == api.StateReady })
}

// onInterface configures an instance whose NIC is a real interface, which it makes.
func onInterface(t *testing.T, name string) Config {
	t.Helper()
	p := newInstance(t, name)
	iface := "ln" + p.Instance
	plug(t, iface)
	return Config{Paths: p, NIC: nics.Options{Interfaces: []string{iface}}}
}

// plug makes an interface with an address that nobody is to use (RFC 5737).
func plug(t *testing.T, name string) {
	t.Helper()
	l := netlink.NewVeth(netlink.LinkAttrs{Name: name})
	l.PeerName = name + "p"
	if err := netlink.LinkAdd(l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = veth.Remove(name) })
	addr := netip.MustParsePrefix("198.51.100.1/30")
	ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), addr.Addr().BitLen())}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ip}); err != nil {
		t.Fatal(err)
	}
}

func describeWeb(t *testing.T, p Paths) *api.Function {
	t.Helper()
	f, err := NewClient(p).Describe(t.Context(), "", "web")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there is not %s", what)
		}
	}
}
