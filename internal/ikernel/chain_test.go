package ikernel

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// count returns a counter of a named ikernel.
func (n *node) count(name, counter string) uint64 {
	n.t.Helper()
	list, err := n.List()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, i := range list {
		for _, c := range i.Counters {
			if i.Name == name && c.Name == counter {
				return c.Value
			}
		}
	}
	n.t.Fatalf("%s has no counter %s: %+v", name, counter, list)
	return 0
}

// attach attaches an ikernel, and returns its name.
func (n *node) attach(r api.IkernelRequest) string {
	n.t.Helper()
	i, err := n.Attach(n.t.Context(), r)
	if err != nil {
		n.t.Fatal(err)
	}
	return i.Name
}

func (n *node) detach(name string) {
	n.t.Helper()
	if err := n.Detach(n.t.Context(), name); err != nil {
		n.t.Fatal(err)
	}
}

// inOrder says whether exactly these are attached, in this order at one port.
func inOrder(names ...string) func(list []api.Ikernel) bool {
	return func(list []api.Ikernel) bool {
		if len(list) != len(names) {
			return false
		}
		for i, name := range names {
			if list[i].Name != name || list[i].State != api.IkernelAttached || list[i].Place != i+1 || list[i].Places != len(names) {
				return false
			}
		}
		return true
	}
}

func (n *node) expectOrder(names ...string) {
	n.t.Helper()
	if list, err := n.List(); err != nil || !inOrder(names...)(list) {
		n.t.Errorf("the list is %+v, %v, want %q", list, err, names)
	}
}

// A memcachedSite has a memcached that is asked from several addresses.
type memcachedSite struct {
	*node
	server *isolated.Server
}

const cacheFrame = "\x00\x01\x00\x00\x00\x01\x00\x00"

// ask sends a GET of k by UDP from an address.
func (s *memcachedSite) ask(from string) *net.UDPConn {
	s.t.Helper()
	var conn *net.UDPConn
	if err := veth.InNamed(s.server.Netns, func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(s.server.Port)})
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte(cacheFrame + "get k\r\n")); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// answered waits for the value.
func (s *memcachedSite) answered(conn *net.UDPConn) {
	s.t.Helper()
	reply := make([]byte, 2000)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := conn.Read(reply); err != nil || string(reply[:n]) != cacheFrame+"VALUE k 0 1\r\nv\r\nEND\r\n" {
		s.t.Fatalf("the answer is %q, %v", reply[:n], err)
	}
}

// unanswered checks that no answer has come, after what is sent later was answered.
func (s *memcachedSite) unanswered(conn *net.UDPConn) {
	s.t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := conn.Read(make([]byte, 2000)); !errors.Is(err, os.ErrDeadlineExceeded) {
		s.t.Fatalf("an answer of %d bytes, %v", n, err)
	}
}

const allowed, refused = "127.0.0.1", "127.0.0.2"

// TestFilterBeforeCache has the NIC answer from the cache those who are allowed, and nobody answer others.
func TestFilterBeforeCache(t *testing.T) {
	server := isolated.New(t)
	s := &memcachedSite{newNode(t), server}
	cache := s.attach(request(server))
	server.Set("k", "v")
	s.await("hit", func([]api.Ikernel) bool {
		s.answered(s.ask(refused)) // anyone may ask the cache alone
		return s.count(cache, "hits") > 0
	})
	filter := s.attach(api.IkernelRequest{
		Ikernel: "source-filter", Netns: server.Netns, Port: server.Port, Allow: []string{allowed}, Before: cache,
	})
	s.expectOrder(filter, cache)
	hits, misses := s.count(cache, "hits"), s.count(cache, "misses")
	const each = 20
	for range each {
		conn := s.ask(refused)
		s.answered(s.ask(allowed))
		s.unanswered(conn)
	}
	if n := s.count(cache, "hits") - hits; n != each || s.count(cache, "misses") != misses {
		t.Errorf("the cache has answered %d GETs, want %d, and misses %d", n, each, s.count(cache, "misses")-misses)
	}
	if passed, dropped := s.count(filter, "passed"), s.count(filter, "dropped_source"); passed != each || dropped != each {
		t.Errorf("the filter has passed %d and dropped %d, want %d each", passed, dropped, each)
	}
	s.detach(filter)
	s.expectOrder(cache)
	s.answered(s.ask(refused))
	if n := s.count(cache, "hits") - hits; n != each+1 {
		t.Errorf("without the filter, the cache has answered %d GETs, want %d: it keeps what it has", n, each+1)
	}
	s.detach(cache)
	s.answered(s.ask(refused))
}

// TestFilterBehindCache attaches the filter after the cache: hits are answered before it.
func TestFilterBehindCache(t *testing.T) {
	server := isolated.New(t)
	s := &memcachedSite{newNode(t), server}
	cache := s.attach(request(server))
	server.Set("k", "v")
	s.await("hit", func([]api.Ikernel) bool {
		s.answered(s.ask(allowed))
		return s.count(cache, "hits") > 0
	})
	filter := s.attach(api.IkernelRequest{Ikernel: "source-filter", Netns: server.Netns, Port: server.Port, Allow: []string{allowed}})
	s.expectOrder(cache, filter)
	s.answered(s.ask(refused))
	if n := s.count(filter, "dropped_source"); n != 0 {
		t.Errorf("the filter has dropped %d GETs that the cache has answered", n)
	}
	s.detach(cache)
	conn := s.ask(refused)
	s.answered(s.ask(allowed))
	s.unanswered(conn)
	if passed, dropped := s.count(filter, "passed"), s.count(filter, "dropped_source"); passed != 1 || dropped != 1 {
		t.Errorf("the filter has passed %d and dropped %d, want 1 each", passed, dropped)
	}
}

// TestFilterBeforeGuard has coap-jwt check what the filter passes alone, and both count.
func TestFilterBeforeGuard(t *testing.T) {
	s := newKeyedSite(t)
	guard := s.attach(s.request("a"))
	filter := s.filter("127.0.0.1", guard)
	s.expectOrder(filter, guard)
	counts := func(passed, dropped, valid, forged uint64) {
		t.Helper()
		s.await("counted", func([]api.Ikernel) bool {
			return s.count(filter, "passed") == passed && s.count(filter, "dropped_source") == dropped &&
				s.count(guard, "passed") == valid && s.count(guard, "dropped_signature") == forged
		})
	}
	s.send("a")
	counts(1, 0, 1, 0)
	s.send("b")
	counts(2, 0, 1, 1)
	s.sendFrom("127.0.0.2")
	counts(2, 1, 1, 1)
	s.detach(guard)
	s.send("b")
	s.await("passed to the server", func([]api.Ikernel) bool { return s.count(filter, "passed") == 3 })
}

// filter attaches a filter before another ikernel.
func (s *keyedSite) filter(allow, before string) string {
	r := s.request()
	r.Ikernel, r.Name, r.Allow, r.Before = "source-filter", "filter", []string{allow}, before
	return s.attach(r)
}

// sendFrom sends a byte from another address.
func (s *keyedSite) sendFrom(from string) {
	s.t.Helper()
	if err := veth.InNamed(s.netns, func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, s.conn.LocalAddr().(*net.UDPAddr))
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte{0})
		return errors.Join(err, conn.Close())
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestChainComesBack has a daemon start anew, whose ikernels come back at different moments: each at the place that it had.
func TestChainComesBack(t *testing.T) {
	s := newKeyedSite(t)
	second := s.request("a")
	second.Name = "second"
	last := s.request("b")
	last.Name = "last"
	s.attach(second)
	s.attach(last)
	s.filter("127.0.0.1", "second")
	between := s.request("c")
	between.Name, between.Before = "between", "last"
	s.attach(between)
	s.expectOrder("filter", "second", "between", "last")
	lost := [...]string{"a", "c"} // without its key, a guard is not attached again
	err := s.Close()
	for _, id := range lost {
		err = errors.Join(err, os.Remove(s.key(id).File))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.open()
	s.tend()
	s.await("two of four", func(list []api.Ikernel) bool {
		return len(list) == 4 && list[0].Place == 1 && list[1].Reason != "" && list[2].Reason != "" && list[3].Place == 2 && list[3].Places == 2
	})
	s.write("c")
	s.await("three of four", func(list []api.Ikernel) bool { return list[2].Place == 2 && list[3].Place == 3 })
	s.write("a")
	s.await("complete", inOrder("filter", "second", "between", "last"))
	s.detach("filter")
	s.filter("127.0.0.1", "")
	s.expectOrder("second", "between", "last", "filter")
}

// addInterface adds interface a to the server's namespace.
func (s *keyedSite) addInterface() {
	s.t.Helper()
	if err := veth.InNamed(s.netns, func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "a"})
		pair.PeerName = "b"
		return netlink.LinkAdd(pair)
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestChainLosesInterface takes the interface away that ikernels share, and brings it again.
func TestChainLosesInterface(t *testing.T) {
	s := newKeyedSite(t)
	s.addInterface()
	for i := range 3 {
		r := s.request("a")
		r.Name, r.Interfaces = fmt.Sprint("guard", i), []string{"a", "lo"}
		s.attach(r)
	}
	s.tend()
	if err := veth.InNamed(s.netns, func() error { return veth.Remove("a") }); err != nil {
		t.Fatal(err)
	}
	s.await("waiting", func(list []api.Ikernel) bool {
		for _, i := range list {
			if i.State != api.IkernelWaiting || !strings.Contains(i.Reason, "interface a") {
				return false
			}
		}
		return len(list) == 3
	})
	s.addInterface()
	s.await("complete", inOrder("guard0", "guard1", "guard2"))
}

// TestChainRefused asks for chains that cannot be. Nothing of them is kept.
func TestChainRefused(t *testing.T) {
	s := newKeyedSite(t)
	s.addInterface()
	s.attach(s.request("a"))
	r := s.request()
	r.Ikernel, r.Name, r.Rate = "source-filter", "filter", 1
	for want, change := range map[string]func(r *api.IkernelRequest){
		"on interface lo, and this one would be on interfaces a, lo": func(r *api.IkernelRequest) { r.Interfaces = []string{"lo", "a"} },
		"can have none before it at port 1":                          func(r *api.IkernelRequest) { r.Port, r.Before = 1, "guard" },
		"it would not be before guard":                               func(r *api.IkernelRequest) { r.Interfaces, r.Before = []string{"a"}, "guard" },
		`before "nope", which is not attached`:                       func(r *api.IkernelRequest) { r.Before = "nope" },
	} {
		r := r
		change(&r)
		if _, err := s.Attach(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s.expectOrder("guard")
	if n := s.records(); n != 1 {
		t.Errorf("%d records are kept, want 1", n)
	}
}

// TestOrderOf attaches ever more ikernels before the same one.
func TestOrderOf(t *testing.T) {
	m := &Manager{all: map[string]*attachment{"last": {port: 1, order: apart}, "elsewhere": {port: 2, order: 3 * apart}}}
	before := int64(0)
	for i := range 200 {
		name := fmt.Sprint(i)
		order, err := m.orderOf(&api.IkernelRequest{Name: name, Port: 1, Before: "last"})
		if err != nil {
			if i < 30 || !strings.Contains(err.Error(), "no order is left") {
				t.Errorf("after %d: %v", i, err)
			}
			break
		}
		if order >= apart || i > 0 && order <= before {
			t.Fatalf("number %d has order %d, after %d", i, order, before)
		}
		before = order
		m.all[name] = &attachment{port: 1, order: order}
	}
	if order, err := m.orderOf(&api.IkernelRequest{Port: 1}); err != nil || order != 4*apart {
		t.Errorf("one after all has order %d, %v", order, err)
	}
}
