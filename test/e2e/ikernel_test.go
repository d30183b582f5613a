package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// counted is a counter of the only ikernel.
func (i *instance) counted(name string) uint64 {
	i.t.Helper()
	list := query[[]api.Ikernel](i, "ik", "stats")
	for _, c := range list[0].Counters {
		if c.Name == name {
			return c.Value
		}
	}
	i.t.Fatalf("no %s are counted: %+v", name, list)
	return 0
}

// An ikernel shares its interface with lambdas. When the daemon dies, lambdas answer on, and the server gets all of its requests; the next daemon attaches
// the ikernel again.
func TestIkernelBesideLambdas(t *testing.T) {
	needRoot(t)
	i := newInstance(t)
	c := newCable(t, i)
	i.start("--nic", c.name)
	i.run("deploy", "lambdas/web_server", "--target", string(api.TargetNIC))
	f := i.describe("web_server")
	ask := func() {
		t.Helper()
		c.atPeer(t, func() error { return askForHello(t, &f) })
	}
	s := isolated.Far(t, f.Endpoint.Addr(), c.peer)
	s.Set("k", "first")
	if out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port)); !strings.Contains(string(out), c.name) {
		t.Errorf("attach says %s", out)
	}
	i.awaitHit(s, "k", "first")
	ask()

	i.kill()
	ask()
	s.Set("k", "second")
	s.Get("k", "second")
	i.start("--nic", c.name)
	i.awaitAttached()
	i.awaitHit(s, "k", "second")
	i.run("ik", "detach", fmt.Sprintf("memcached-cache-%d", s.Port))
	s.Get("k", "second")
	ask()
}

// awaitAttached waits until the only ikernel is attached.
func (i *instance) awaitAttached() {
	i.t.Helper()
	poll(i.t, "it is attached again", func() error {
		if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 1 || list[0].State != api.IkernelAttached {
			return fmt.Errorf("there is %+v", list)
		}
		return nil
	})
}

// awaitHit asks for a key until the NIC answers.
func (i *instance) awaitHit(s *isolated.Server, key, value string) {
	i.t.Helper()
	before := i.counted("hits")
	poll(i.t, "the NIC answers", func() error {
		s.Get(key, value)
		if i.counted("hits") == before {
			return errors.New("the server answered")
		}
		return nil
	})
}

// A memcached gets an ikernel while it runs; the daemon dies, comes again and finds it attached; it is detached. At no time does a client get
// a wrong answer or none.
func TestIkernel(t *testing.T) {
	i, s := up(t), isolated.New(t)
	s.Set("k", "first")
	out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.Netns, "--name", "cache", "--memory", "2MiB")
	if !strings.Contains(string(out), "lo (generic)") {
		t.Errorf("attach says %s", out)
	}
	i.awaitHit(s, "k", "first")
	s.Set("k", "second")
	s.Get("k", "second")
	i.awaitHit(s, "k", "second")

	i.kill()
	s.Get("k", "second")
	s.Set("k", "third")
	s.Get("k", "third")
	i.start()
	i.awaitAttached()
	i.awaitHit(s, "k", "third")

	out = i.run("ik", "attach", "source-filter", "--port", fmt.Sprint(s.Port), "--netns", s.Netns, "--allow", "127.0.0.2", "--before", "cache", "--name", "filter")
	if !strings.Contains(string(out), "1 of 2") {
		t.Errorf("attach before another says %s", out)
	}
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 2 || list[0].Name != "filter" || list[1].Place != 2 {
		t.Errorf("the list is %+v", list)
	}
	i.run("ik", "detach", "filter")
	i.run("ik", "detach", "cache")
	s.Get("k", "third")
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 0 {
		t.Errorf("%+v is left", list)
	}
	if out, err := i.try("ik", "detach", "cache"); err == nil || !strings.Contains(out, "lambdanic ik list") {
		t.Errorf("what is detached is detached again: %s", out)
	}
}

// A tenant's ikernel is kept in the quotas of its namespace, which stays as long as the ikernel does.
func TestIkernelOfTenant(t *testing.T) {
	i, s := up(t), isolated.New(t)
	out := i.run("ik", "attach", "memcached-cache", "--port", fmt.Sprint(s.Port), "--netns", s.Netns, "--name", "cache", "--memory", "2MiB", "-n", "tenant")
	if !strings.Contains(string(out), "tenant") {
		t.Errorf("attach says %s", out)
	}
	s.Set("k", "v")
	i.awaitHit(s, "k", "v")
	if out, err := i.try("namespace", "remove", "tenant"); err == nil || !strings.Contains(out, "it has 1 ikernel: detach them first") {
		t.Errorf("a namespace with an ikernel is removed: %s", out)
	}
	i.run("namespace", "set", "tenant", "--requests", "0")
	s.Ask("k")
	poll(t, "the GET is refused", func() error {
		if n := i.counted("over_quota"); n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	i.run("namespace", "set", "tenant", "--requests", "none")
	s.Get("k", "v")
	i.run("ik", "detach", "cache")
	i.run("namespace", "remove", "tenant")
}

// listsOwn has the list show echo, which this process has for its socket.
func (i *instance) listsOwn(address string) {
	i.t.Helper()
	list := query[[]api.Ikernel](i, "ik", "list")
	if len(list) != 1 || list[0].Application == nil || list[0].Ikernel != "echo" || list[0].State != api.IkernelAttached {
		i.t.Fatalf("there is %+v", list)
	}
	of := list[0].Application
	if of.PID != os.Getpid() || len(of.Sockets) != 1 || of.Sockets[0].Own.String() != address || of.Sockets[0].Peer.IsValid() {
		i.t.Errorf("it is for %+v", of)
	}
	if replied := list[0].Counters[2]; replied.Name != "replied" || replied.Value == 0 {
		i.t.Errorf("it counts %+v", list[0].Counters)
	}
	out := string(i.run("ik", "list"))
	for _, want := range []string{list[0].Name, fmt.Sprintf("process %d (%s)", of.PID, of.Command), address, "attached"} {
		if !strings.Contains(out, want) {
			i.t.Errorf("the list has no %q: %s", want, out)
		}
	}
	if out, err := i.try("ik", "detach", list[0].Name); err == nil || !strings.Contains(out, fmt.Sprintf("%v has %s", of, list[0].Name)) {
		i.t.Errorf("another's ikernel is detached: %s", out)
	}
}

// applicationOf starts an instance with a NIC, and makes an application's socket at the NIC's address, a client's at the other end of the cable, and the
// application's connection to the daemon.
func applicationOf(t *testing.T) (i *instance, server, client *net.UDPConn, ikernels *lambdanic.Ikernels) {
	t.Helper()
	needRoot(t)
	i = newInstance(t)
	c := newCable(t, i)
	i.start("--nic", c.name)
	l, err := netlink.LinkByName(c.name)
	if err != nil {
		t.Fatal(err)
	}
	own, err := netlink.AddrList(l, netlink.FAMILY_V4)
	if err != nil || len(own) != 1 {
		t.Fatalf("%s has the addresses %v, %v", c.name, own, err)
	}
	if server, err = net.ListenUDP("udp", &net.UDPAddr{IP: own[0].IP}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	c.atPeer(t, func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	t.Cleanup(func() { client.Close() })
	if ikernels, err = lambdanic.OpenIkernels(filepath.Join(i.dir, "run", i.name, "ikernel.sock")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ikernels.Close() })
	return i, server, client, ikernels
}

// An application has an ikernel for a socket of its own. When the daemon dies the application gets all of its datagrams.
func TestApplicationIkernel(t *testing.T) {
	i, server, client, ikernels := applicationOf(t)
	gets := func(who string, conn *net.UDPConn) {
		t.Helper()
		poll(t, who+" gets a message", func() error { // the kernel takes a moment to forget the ikernels of a daemon that died
			if _, err := client.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _, err := conn.ReadFromUDP(make([]byte, 1))
			return err
		})
	}
	echo, err := ikernels.Create("echo")
	if err != nil {
		t.Fatal(err)
	}
	gets("the server", server)
	if err := echo.Attach(server); err != nil {
		t.Fatal(err)
	}
	gets("the client", client)
	i.listsOwn(server.LocalAddr().String())
	i.kill()
	gets("the server", server)
	if err := echo.Attach(server); err == nil || !strings.Contains(err.Error(), "is it still running") {
		t.Errorf("got %v without a daemon", err)
	}
}

// An application's ikernel is of a tenant's namespace: it is kept in the quotas, and the namespace stays as long as the ikernel does.
func TestApplicationIkernelOfTenant(t *testing.T) {
	i, server, client, ikernels := applicationOf(t)
	if _, err := ikernels.CreateFor("echo", "tenant"); err == nil || !strings.Contains(err.Error(), "`lambdanic namespace set NAME --weight 100` makes one") {
		t.Errorf("of a namespace that is not there: %v", err)
	}
	i.run("namespace", "set", "tenant", "--weight", "100")
	echo, err := ikernels.CreateFor("echo", "tenant")
	if err != nil {
		t.Fatal(err)
	}
	if err := echo.Attach(server); err != nil {
		t.Fatal(err)
	}
	send := func(message string) {
		t.Helper()
		if _, err := client.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	gets := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := client.Read(b); err != nil || string(b[:n]) != want {
			t.Fatalf("the client gets %q, %v, want %q", b[:n], err, want)
		}
	}
	send("within quota")
	gets("within quota")
	if out, err := i.try("namespace", "remove", "tenant"); err == nil || !strings.Contains(out, "it has 1 ikernel: detach them first, or end their applications") {
		t.Errorf("a namespace with an ikernel is removed: %s", out)
	}
	i.run("namespace", "set", "tenant", "--requests", "0")
	send("over quota")
	poll(t, "the datagram is refused", func() error {
		if n := i.counted("over_quota"); n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	for _, command := range []string{"list", "stats"} {
		if out := string(i.run("ik", command)); !strings.Contains(out, "tenant") {
			t.Errorf("ik %s does not name the namespace: %s", command, out)
		}
	}
	i.run("namespace", "set", "tenant", "--requests", "none")
	send("without quota")
	gets("without quota")
	if err := echo.Destroy(); err != nil {
		t.Fatal(err)
	}
	i.run("namespace", "remove", "tenant")
}
