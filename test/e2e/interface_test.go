package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// cable is an interface of this machine and, at its other end, a machine of its own.
type cable struct {
	name string // the interface here
	peer string // the network namespace at the other end
}

// farEnd is what the interface at the other end is called.
const farEnd = "far0"

// newCable gives the near end 10.238.X.1 and the far end 10.238.X.2. The far end does what a network card would: it
// finishes checksums, and it takes frames that the near end's driver sends (docs/architecture.md, the virtual SmartNIC).
func newCable(t *testing.T, i *instance) cable {
	t.Helper()
	c := cable{name: i.name + "c", peer: i.name + "-peer"}
	subnet := instances.Load() % 256
	onThread(t, func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		peer, err := netns.NewNamed(c.peer)
		if err != nil {
			return err
		}
		defer peer.Close()
		t.Cleanup(func() { _ = netns.DeleteNamed(c.peer) })
		if err := netns.Set(home); err != nil {
			return err
		}
		veth := netlink.NewVeth(netlink.LinkAttrs{Name: c.name})
		veth.PeerName, veth.PeerNamespace = farEnd, netlink.NsFd(peer)
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		t.Cleanup(func() { _ = netlink.LinkDel(veth) })
		return setUp(c.name, fmt.Sprintf("10.238.%d.1/24", subnet))
	})
	c.atPeer(t, func() error {
		if out, err := exec.Command("ethtool", "-K", farEnd, "tx", "off").CombinedOutput(); err != nil {
			return fmt.Errorf("ethtool: %w: %s", err, out)
		}
		return errors.Join(setUp(farEnd, fmt.Sprintf("10.238.%d.2/24", subnet)), passAll(t, farEnd))
	})
	return c
}

func setUp(name, cidr string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return errors.Join(changeAddress(name, cidr, netlink.AddrAdd), netlink.LinkSetUp(l))
}

// passAll attaches an XDP program that passes every packet, for as long as the test runs.
func passAll(t *testing.T, name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	const xdpPass = 2
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.XDP,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer prog.Close()
	attached, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
	if err != nil {
		return err
	}
	t.Cleanup(func() { attached.Close() })
	return nil
}

// atPeer runs f on a thread at the other end of the cable.
func (c cable) atPeer(t *testing.T, f func() error) {
	t.Helper()
	onThread(t, func() error {
		peer, err := netns.GetFromName(c.peer)
		if err != nil {
			return err
		}
		defer peer.Close()
		if err := netns.Set(peer); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread that ends with f, whatever its namespace then is.
func onThread(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A NIC program on an interface that is not ours answers requests from the wire, lets all else pass, and goes without a
// trace.
func TestRealInterface(t *testing.T) {
	for _, mode := range []string{"native", "generic"} {
		t.Run(mode, func(t *testing.T) {
			needRoot(t)
			i := newInstance(t)
			c := newCable(t, i)
			i.start("--nic", c.name, "--mode", mode)
			i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC))
			f := i.describe("web_server")
			i.expect("web_server", "0", "/hello", http.StatusOK, hello) // this needs no packet on the wire
			listener, err := net.Listen("tcp", net.JoinHostPort(f.Endpoint.Addr().String(), "0"))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			c.atPeer(t, func() error {
				if err := askForHello(t, &f); err != nil {
					return err
				}
				conn, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					return fmt.Errorf("past the NIC program: %w", err)
				}
				return conn.Close()
			})
			i.run("down")
			l, err := netlink.LinkByName(c.name)
			if err != nil {
				t.Fatalf("the interface is gone: %v", err)
			}
			if xdp := l.Attrs().Xdp; xdp != nil && xdp.Attached {
				t.Errorf("the interface still carries a program: %+v", xdp)
			}
		})
	}
}

// askForHello asks web_server over the wire.
func askForHello(t *testing.T, f *api.Function) error {
	client, err := lambdanic.DialConn(f.Endpoint.String())
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := client.Call(t.Context(), lambdanic.Request{Workload: f.Workload, Body: []byte("/hello")})
	if err != nil || string(answer.Body) != hello {
		return fmt.Errorf("over the wire: %q, %w", answer.Body, err)
	}
	return nil
}

// A NIC serves the addresses that its interface has now, not those that it had when the NIC came up, also where they changed
// while no daemon ran.
func TestAddressesComeAndGo(t *testing.T) {
	needRoot(t)
	i := newInstance(t)
	c := newCable(t, i)
	i.start("--nic", c.name)
	i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC))
	f := i.describe("web_server")
	subnet := instances.Load() % 256
	own4, own6 := fmt.Sprintf("10.239.%d.1", subnet), fmt.Sprintf("fd6c:6e69:64:%x::1", subnet)
	ask := func(addr string) (err error) {
		c.atPeer(t, func() error {
			var client *lambdanic.Conn
			if client, err = lambdanic.DialConn(net.JoinHostPort(addr, fmt.Sprint(f.Endpoint.Port()))); err != nil {
				return nil
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // asked again until patience ends
			defer cancel()
			_, err = client.Call(ctx, lambdanic.Request{Workload: f.Workload, Body: []byte("/hello")})
			return nil
		})
		return err
	}
	here := func(change func(netlink.Link, *netlink.Addr) error, cidr string) {
		t.Helper()
		if err := changeAddress(c.name, cidr, change); err != nil {
			t.Fatal(err)
		}
	}
	c.atPeer(t, func() error {
		return errors.Join(
			changeAddress(farEnd, fmt.Sprintf("10.239.%d.2/24", subnet), netlink.AddrAdd), changeAddress(farEnd, fmt.Sprintf("fd6c:6e69:64:%x::2/64", subnet), netlink.AddrAdd))
	})
	qp := []string{"rdma", "qp", "add", "web_server", "--peer", fmt.Sprintf("fd6c:6e69:64:%x::2", subnet), "--peer-qpn", "0x11", "--psn", "1"}
	i.refused("the NIC has no address of", qp...)

	here(netlink.AddrAdd, own6+"/64")
	poll(t, "IPv6 is served", func() error { return ask(own6) })
	if made := query[api.QueuePair](i, qp...); made.Address.String() != own6 {
		t.Errorf("the queue pair's address is %v, not %s", made.Address, own6)
	}
	i.kill()
	here(netlink.AddrAdd, own4+"/24")
	i.start("--nic", c.name)
	poll(t, "the other IPv4 address is served", func() error { return ask(own4) })
	here(netlink.AddrDel, own4+"/24")
	poll(t, "a removed address is not served", func() error {
		if ask(own4) == nil {
			return errors.New("it is")
		}
		return nil
	})
	i.kill()
	here(netlink.AddrDel, own6+"/64") // now the interface has its addresses of when the NIC was made
	i.start("--nic", c.name)
	if ask(own6) == nil {
		t.Error("an address that was removed while no daemon ran is served")
	}
	if err := ask(f.Endpoint.Addr().String()); err != nil {
		t.Errorf("the first address: %v", err)
	}
}

// changeAddress adds an address to an interface, or removes it. An IPv6 address is used at once, not after its neighbours were asked.
func changeAddress(name, cidr string, change func(netlink.Link, *netlink.Addr) error) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	if addr.IP.To4() == nil {
		addr.Flags = unix.IFA_F_NODAD
	}
	return change(l, addr)
}
