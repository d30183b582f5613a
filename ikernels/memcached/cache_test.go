package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A site is a network namespace that a veth pair leads to, in which a memcached runs.
type site struct {
	t      *testing.T
	name   string
	near   veth.End // of the pair, here
	server *memcached.Server
	addr   netip.AddrPort // of the server, from here
	cache  *Cache
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := newPlainSite(t)
	pass, err := xdp.AttachPass(s.near.Index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pass.Close() })
	return s
}

// newPlainSite makes a site whose pair of interfaces is as it comes.
func newPlainSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, name: fmt.Sprintf("lnmc%d", os.Getpid())}
	ns, err := veth.NewNamespace(s.name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	t.Cleanup(func() {
		if err := errors.Join(veth.Remove(s.name), veth.RemoveNamespace(s.name)); err != nil {
			t.Error(err)
		}
	})
	within := netip.MustParsePrefix("198.18.0.0/15")
	n, err := veth.FreeSubnet(within, uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	s.near, _, err = veth.New(veth.Side{Name: s.name, Addrs: []netip.Prefix{veth.Host(within, n, 1)}},
		veth.Side{Name: "far", Addrs: []netip.Prefix{veth.Host(within, n, 2)}}, ns, 0)
	if err != nil {
		t.Fatal(err)
	}
	addr := veth.Host(within, n, 2).Addr()
	s.in(func() error {
		s.server, err = memcached.Start(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1"), addr})
		return err
	})
	t.Cleanup(func() { _ = s.server.Stop() })
	s.addr = netip.AddrPortFrom(addr, s.server.Port)
	return s
}

// in runs f in the server's namespace.
func (s *site) in(f func() error) {
	s.t.Helper()
	if err := veth.InNamed(s.name, f); err != nil {
		s.t.Fatal(err)
	}
}

// attach puts a cache in front of the server.
func (s *site) attach() {
	s.t.Helper()
	s.attachBy(xdp.ModeNative)
}

func (s *site) attachBy(mode xdp.Mode) {
	s.t.Helper()
	s.in(func() (err error) {
		s.cache, err = Attach(Options{Server: demux.Server{Port: s.server.Port, Mode: mode}, Memory: memoryMin})
		return err
	})
	s.t.Cleanup(func() {
		if err := s.cache.Close(); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *site) statistics() Statistics {
	s.t.Helper()
	stats, err := s.cache.Statistics()
	if err != nil {
		s.t.Fatal(err)
	}
	return stats
}

// A client asks by UDP.
type client struct {
	t    *testing.T
	conn net.Conn
	id   uint16
}

func (s *site) client() *client {
	s.t.Helper()
	conn, err := net.Dial("udp", s.addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: s.t, conn: conn}
}

// frame is what stands before the request with this ID and its reply.
func frame(id uint16) []byte { return []byte{byte(id >> 8), byte(id), 0, 0, 0, 1, 0, 0} }

// ask sends a request, and returns the reply's first datagram.
func (c *client) ask(request string) string {
	c.t.Helper()
	c.id++
	if _, err := c.conn.Write(append(frame(c.id), request...)); err != nil {
		c.t.Fatal(err)
	}
	return c.receive()
}

// receive returns the next datagram of a reply.
func (c *client) receive() string {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	reply := make([]byte, 2000)
	n, err := c.conn.Read(reply)
	if err != nil {
		c.t.Fatalf("no reply: %v", err)
	}
	if !bytes.HasPrefix(reply[:n], frame(c.id)) {
		c.t.Fatalf("the reply to request %d begins with %x", c.id, reply[:min(n, 8)])
	}
	return string(reply[8:n])
}

// hit asks until the NIC program answers, and returns its reply. All replies must be alike.
func (s *site) hit(c *client, request string) string {
	s.t.Helper()
	first := ""
	for begin := time.Now(); ; {
		before := s.statistics().Hits
		reply := c.ask(request)
		if first == "" {
			first = reply
		}
		if reply != first {
			s.t.Fatalf("%q is answered with %q and then with %q", request, first, reply)
		}
		if s.statistics().Hits > before {
			return reply
		}
		if time.Since(begin) > 20*time.Second {
			s.t.Fatalf("%q is no hit: %+v", request, s.statistics())
		}
		time.Sleep(time.Millisecond)
	}
}

// keep stores a value for key a, and asks until the NIC program answers with it.
func (s *site) keep(c *client) {
	s.t.Helper()
	s.text(s.dial(), "set a 0 0 1\r\nx\r\n", "STORED\r\n")
	s.hit(c, "get a\r\n")
}

// text sends a request by TCP, and returns the reply up to its last line.
func (s *site) text(c net.Conn, request, last string) string {
	s.t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		s.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var reply []byte
	for b := make([]byte, 4096); !strings.HasSuffix(string(reply), last); {
		n, err := c.Read(b)
		if reply = append(reply, b[:n]...); err != nil {
			s.t.Fatalf("%q is answered with %q: %v", request, reply, err)
		}
	}
	return string(reply)
}

func (s *site) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestHits compares the NIC program's replies with memcached's.
func TestHits(t *testing.T) {
	s := newSite(t)
	s.text(s.dial(), "set before 0 0 1\r\nx\r\n", "STORED\r\n")
	s.attach()
	tcp, udp := s.dial(), s.client()
	s.hit(udp, "get before\r\n")
	long := strings.Repeat("k", 250)
	s.text(tcp, "set a 0 0 1\r\nx\r\nset bb 4294967295 0 0\r\n\r\nset "+long+" 7 1000 150\r\n"+strings.Repeat("v", 150)+"\r\nset 8.bytes. 0 0 5\r\nabc\r\n\r\n",
		"STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n")
	for _, request := range []string{
		"get a\r\n", "gets a\r\n", "get bb\r\n", "gets bb\r\n", "get 8.bytes.\r\n", "get " + long + "\r\n", "gets " + long + "\r\n",
		"get a bb 8.bytes.\r\n", "gets a bb a a\r\n",
	} {
		want := s.text(tcp, request, "END\r\n")
		if got := s.hit(udp, request); got != want {
			t.Errorf("%q: got %q, want %q", request, got, want)
		}
	}
	// memcached sends each value in a datagram of its own, as if it were the whole reply.
	got := udp.ask("get a nothing bb\r\n")
	for !strings.HasSuffix(got, "END\r\n") {
		got += udp.receive()
	}
	if got != "VALUE a 0 1\r\nx\r\nVALUE bb 4294967295 0\r\n\r\nEND\r\n" {
		t.Errorf("a GET that is hit in part: %q", got)
	}
	if stats := s.statistics(); stats.Writes.ChangesAll > 0 {
		t.Errorf("nothing changed all keys: %+v", stats)
	}
}

// TestWritesAreSeen changes a cached value by every command that can, and asks at once.
func TestWritesAreSeen(t *testing.T) {
	s := newSite(t)
	s.attach()
	tcp, udp := s.dial(), s.client()
	for _, write := range []string{
		"set a 1 0 1\r\n2\r\n", "replace a 2 0 1\r\n3\r\n", "append a 0 0 1\r\n4\r\n", "prepend a 0 0 1\r\n4\r\n", "incr a 3\r\n", "decr a 1\r\n",
		"touch a 100\r\n", "gat 0 a\r\n", "ms a 1 F3\r\n5\r\n", "ma a\r\n", "mg a T30\r\n", "delete a\r\n", "add a 0 0 1\r\n1\r\n", "md a\r\n",
		"set a 1 0 1\r\n2\r\n", "flush_all\r\n", "set a 1 0 1 noreply\r\n2\r\n", "set a 1 0 1\r\n3\r\n",
	} {
		end := "\r\n"
		if strings.HasPrefix(write, "gat") {
			end = "END\r\n"
		}
		if strings.Contains(write, "noreply") {
			write, end = write+"version\r\n", "\r\n"
		}
		if reply := s.text(tcp, write, end); strings.Contains(reply, "ERROR") {
			t.Fatalf("%q: %q", write, reply)
		}
		want := s.text(tcp, "gets a\r\n", "END\r\n")
		if got := udp.ask("gets a\r\n"); got != want {
			t.Fatalf("after %q: got %q, want %q", write, got, want)
		}
		if want != "END\r\n" {
			if got := s.hit(udp, "gets a\r\n"); got != want {
				t.Fatalf("hit after %q: got %q, want %q", write, got, want)
			}
		}
	}
	// By UDP.
	if got := udp.ask("set a 0 0 1\r\n9\r\n"); got != "STORED\r\n" {
		t.Fatal(got)
	}
	if got := udp.ask("get a\r\n"); got != "VALUE a 0 1\r\n9\r\nEND\r\n" {
		t.Errorf("after a set by UDP: %q", got)
	}
}

// TestStale has a client mark a value as stale. Another one must be chosen to renew it, though the worker asked before.
func TestStale(t *testing.T) {
	s := newSite(t)
	s.attach()
	tcp, udp := s.dial(), s.client()
	s.text(tcp, "set a 0 0 1\r\nx\r\nmd a I T30\r\n", "HD\r\n")
	for s.statistics().Stale == 0 {
		if got := udp.ask("get a\r\n"); got != "VALUE a 0 1\r\nx\r\nEND\r\n" {
			t.Fatal(got)
		}
	}
	if got := s.text(tcp, "mg a\r\n", "\r\n"); got != "HD W X\r\n" && got != "HD X W\r\n" {
		t.Errorf("the next one to ask is told %q", got)
	}
}

// TestExpiry has memcached forget values by itself: they expire, or a client has said that all shall be forgotten later.
func TestExpiry(t *testing.T) {
	s := newSite(t)
	s.attach()
	tcp, udp := s.dial(), s.client()
	s.text(tcp, "set a 0 3 1\r\nx\r\nset b 0 0 1\r\nx\r\nset c 0 100 1\r\nx\r\n", "STORED\r\nSTORED\r\nSTORED\r\n")
	for _, key := range []string{"a", "b", "c"} {
		s.hit(udp, "get "+key+"\r\n")
	}
	s.agree(tcp, udp, "a")
	s.text(tcp, "flush_all 3\r\n", "OK\r\n")
	s.hit(udp, "get b\r\n")
	s.agree(tcp, udp, "c")
	s.agree(tcp, udp, "b")
	// What is set within the second of the flush is forgotten, too.
	for got := ""; got != "VALUE b 0 1\r\ny\r\nEND\r\n"; {
		got = s.text(tcp, "set b 0 0 1\r\ny\r\nget b\r\n", "END\r\n")
		got = strings.TrimPrefix(got, "STORED\r\n")
	}
	if got := s.hit(udp, "get b\r\n"); got != "VALUE b 0 1\r\ny\r\nEND\r\n" {
		t.Errorf("after the flush: %q", got)
	}
}

// agree asks for a key until it is gone. Nobody may be answered with the value after memcached itself has said that it is gone.
func (s *site) agree(tcp net.Conn, udp *client, key string) {
	s.t.Helper()
	for {
		there := s.text(tcp, "get "+key+"\r\n", "END\r\n") != "END\r\n"
		answered := udp.ask("get "+key+"\r\n") != "END\r\n"
		if answered && !there {
			s.t.Fatalf("%q is answered, and memcached has forgotten it", key)
		}
		if !there {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRestart ends the server, and starts another one at the same port.
func TestRestart(t *testing.T) {
	s := newSite(t)
	s.attach()
	udp := s.client()
	s.keep(udp)
	s.in(func() error { return s.server.Restart(t.Context()) })
	if got := udp.ask("get a\r\n"); got != "END\r\n" {
		t.Errorf("the new server's value: %q", got)
	}
	s.text(s.dial(), "set a 0 0 1\r\ny\r\n", "STORED\r\n")
	if got := s.hit(udp, "get a\r\n"); got != "VALUE a 0 1\r\ny\r\nEND\r\n" {
		t.Errorf("the new server's value: %q", got)
	}
}

// TestRestartElsewhere has the next server listen at fewer addresses. The others may be another server's, so the cache has to be attached anew.
func TestRestartElsewhere(t *testing.T) {
	s := newSite(t)
	s.attach()
	udp := s.client()
	s.keep(udp)
	if err := s.cache.Lost(); err != nil {
		t.Error(err)
	}
	s.in(func() (err error) {
		if err := s.server.Stop(); err != nil {
			return err
		}
		s.server, err = memcached.StartAt(t.Context(), s.server.Port, []netip.Addr{s.addr.Addr()})
		return err
	})
	t.Cleanup(func() { _ = s.server.Stop() })
	for begin := time.Now(); s.cache.Lost() == nil; time.Sleep(time.Millisecond) {
		if got := udp.ask("get a\r\n"); got != "END\r\n" {
			t.Errorf("the new server's value: %q", got)
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the cache does not see that the server listens elsewhere")
		}
	}
	if err := s.cache.Lost(); !strings.Contains(err.Error(), "listened at [127.0.0.1 ") {
		t.Error(err)
	}
}

// TestUnseen sets a key by a connection whose socket has no memory for what the observer keeps of it.
func TestUnseen(t *testing.T) {
	s := newSite(t)
	s.attach()
	udp := s.client()
	s.keep(udp)
	s.in(func() error { return os.WriteFile("/proc/sys/net/core/optmem_max", []byte("2048"), 0) })
	s.text(s.dial(), "set a 0 0 1\r\ny\r\n", "STORED\r\n")
	if got := udp.ask("get a\r\n"); got != "VALUE a 0 1\r\ny\r\nEND\r\n" {
		t.Errorf("after a write that was not seen: %q", got)
	}
	if s := s.statistics(); s.Hits != 1 || s.Writes.ChangesAll == 0 {
		t.Errorf("%+v: want one hit, and a change of all keys", s)
	}
}

// TestNothingStale has clients write and read the same keys at once. No reader may get a value older than the last one whose write had been answered
// when the reader asked.
func TestNothingStale(t *testing.T) {
	const keys, readers, writes = 4, 4, 3000
	s := newSite(t)
	s.attach()
	var stored [keys]atomic.Uint64 // the last value that a server said to have stored
	var writers, all sync.WaitGroup
	tcp, udp := s.dial(), s.client()
	for key := range uint64(keys) {
		s.text(tcp, fmt.Sprintf("set %d 0 0 1\r\n0\r\n", key), "STORED\r\n")
	}
	enough := func() bool { return s.statistics().Hits >= 500 } // or the writers would leave no time for hits where all is slow
	write := func(key int, send func(set string) string) {
		for n := uint64(1); n <= writes || !enough(); n++ {
			if got := send(fmt.Sprintf("set %d 0 0 %d\r\n%d\r\n", key, len(fmt.Sprint(n)), n)); got != "STORED\r\n" {
				t.Errorf("a set is answered with %q", got)
				return
			}
			stored[key].Store(n)
		}
	}
	for key := range keys {
		conn := s.dial()
		writers.Go(func() {
			if key == 0 {
				write(key, udp.ask)
			} else {
				write(key, func(set string) string { return s.text(conn, set, "\r\n") })
			}
		})
	}
	done := make(chan struct{})
	for reader := range readers {
		c := s.client()
		all.Go(func() {
			for i := reader; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				least := stored[i%keys].Load()
				var n, size uint64
				reply := c.ask(fmt.Sprintf("get %d\r\n", i%keys))
				if _, err := fmt.Sscanf(reply, fmt.Sprintf("VALUE %d 0 %%d\r\n%%d\r\nEND\r\n", i%keys), &size, &n); err != nil || n < least {
					t.Errorf("key %d is answered with %q (%v), and %d was stored before", i%keys, reply, err, least)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	all.Wait()
	stats := s.statistics()
	t.Logf("%+v", stats)
	if stats.Misses < writes/10 {
		t.Errorf("too little happened to tell anything: %+v", stats)
	}
}

// TestLeftToServer sends what is no GET of one datagram, or one that the server might answer otherwise. All goes to the server.
func TestLeftToServer(t *testing.T) {
	s := newSite(t)
	s.attach()
	c := s.client()
	s.text(s.dial(), "set a 0 0 1\r\nx\r\n", "STORED\r\n")
	s.hit(c, "get a\r\n")
	before := s.statistics()
	one := string(frame(1))
	datagrams := []string{
		"", "get a\r\n", one, one[:7], one + "get a", one + "get a\n", one + "get a\r", one + "get  a\r\n", one + "get a \r\n", one + "GET a\r\n",
		one + "get\r\n", one + "get \r\n", one + "gets\r\n", one + "get a\r\nget a\r\n", one + "get a\x00\r\n", one + "get a\ta\r\n",
		one + "get " + strings.Repeat("k", 251) + "\r\n", one + "get " + strings.Repeat("k", 1380) + "\r\n", one + "mg a v\r\n", one + "version\r\n",
		one + "get" + strings.Repeat(" a", 65) + "\r\n", "\x00\x01\x00\x00\x00\x02\x00\x00get a\r\n", "\x00\x01\x00\x00\x00\x00\x00\x00get a\r\n",
		one + "\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00a", one + "get a\r\n" + strings.Repeat("x", 1400),
	}
	for _, d := range datagrams {
		if _, err := io.WriteString(c.conn, d); err != nil {
			t.Fatal(err)
		}
	}
	for s.statistics().Other < before.Other+uint64(len(datagrams)) {
		time.Sleep(time.Millisecond)
	}
	if after := s.statistics(); after.Hits != before.Hits || after.Misses != before.Misses {
		t.Errorf("of %d datagrams some were taken for GETs: %+v, before %+v", len(datagrams), after, before)
	}
}

// TestLarge asks for values that the packet has no room for, and for one that no datagram has room for.
func TestLarge(t *testing.T) {
	s := newSite(t)
	s.attach()
	c := s.client()
	for _, size := range []int{100, 1300, 5000} {
		s.text(s.dial(), fmt.Sprintf("set a 0 0 %d\r\n%s\r\n", size, strings.Repeat("x", size)), "STORED\r\n")
		if size == 100 {
			s.hit(c, "get a\r\n")
			continue
		}
		before := s.statistics()
		for after := before; after.Large == before.Large && after.Unkept == before.Unkept; after = s.statistics() {
			c := s.client()
			if _, err := c.conn.Write(append(frame(1), "get a\r\n"...)); err != nil {
				t.Fatal(err)
			}
			reply := make([]byte, 2000)
			n, err := c.conn.Read(reply)
			// A reply of several datagrams may begin with any of them, and with one to an earlier request at the same port.
			if want := fmt.Sprintf("VALUE a 0 %d\r\nxxx", size); err != nil || size == 1300 && !bytes.HasPrefix(reply[8:n], []byte(want)) {
				t.Fatalf("got %.40q, %v, want %q", reply[:n], err, want)
			}
			_ = c.conn.Close() // with what else the server sends
		}
	}
	if stats := s.statistics(); stats.Hits != 1 || stats.Large == 0 || stats.Unkept == 0 || stats.Writes.Losses() > 0 {
		t.Errorf("%+v: want one hit, large replies, and one value that was not kept", stats)
	}
}

// everywhere has the server listen at all addresses, and returns a client whose key k the cache has.
func (s *site) everywhere() *client {
	s.t.Helper()
	s.in(func() (err error) {
		_ = s.server.Stop()
		s.server, err = memcached.Start(s.t.Context(), []netip.Addr{netip.IPv4Unspecified()})
		return err
	})
	s.t.Cleanup(func() { _ = s.server.Stop() })
	s.addr = netip.AddrPortFrom(s.addr.Addr(), s.server.Port)
	s.attach()
	c := s.client()
	s.text(s.dial(), "set k 0 0 1\r\nv\r\n", "STORED\r\n")
	s.hit(c, "get k\r\n")
	return c
}

// TestBoundBeside has a server that listens at all addresses, and another one that takes the same port at one address later: what comes for it is its own.
func TestBoundBeside(t *testing.T) {
	s := newSite(t)
	c := s.everywhere()
	before := s.statistics().Hits

	var beside *net.UDPConn
	s.in(func() (err error) {
		beside, err = isolated.ListenShared(t.Context(), s.addr.String())
		return err
	})
	defer beside.Close()
	if _, err := c.conn.Write(append(frame(1), "get k\r\n"...)); err != nil {
		t.Fatal(err)
	}
	_ = beside.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, _, err := beside.ReadFrom(make([]byte, 100)); err != nil {
		t.Errorf("the socket at %s does not get the GET: %v", s.addr, err)
	}
	if hits := s.statistics().Hits; hits != before {
		t.Errorf("the cache answered %d of the GETs to another's socket", hits-before)
	}
}

// TestForwarded has a server that listens at all addresses, on a machine that gets GETs for another machine, too.
func TestForwarded(t *testing.T) {
	s := newSite(t)
	c := s.everywhere()
	before := s.statistics().Hits

	other := s.addr.Addr().Next()
	var far net.HardwareAddr
	s.in(func() error {
		l, err := netlink.LinkByName("far")
		if err == nil {
			far = l.Attrs().HardwareAddr
		}
		return err
	})
	near, err := netlink.LinkByName(s.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: near.Attrs().Index, IP: other.AsSlice(), HardwareAddr: far, State: netlink.NUD_PERMANENT,
	}); err != nil {
		t.Fatal(err)
	}
	forwarded, err := net.Dial("udp", netip.AddrPortFrom(other, s.server.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer forwarded.Close()
	if _, err := forwarded.Write(append(frame(1), "get k\r\n"...)); err != nil {
		t.Fatal(err)
	}
	c.ask("get k\r\n") // which comes behind it
	if hits := s.statistics().Hits - before; hits != 1 {
		t.Errorf("%d GETs were answered, want 1: the other is not the server's", hits)
	}
}

// TestAttachRefuses names what a cache cannot be attached to.
func TestAttachRefuses(t *testing.T) {
	s := newSite(t)
	port := s.server.Port
	for want, o := range map[string]Options{
		"cannot have 1MiB of memory: give it at least 2MiB, and at most 2GiB": {Server: demux.Server{Port: port}, Memory: 1 << 20},
		"cannot have 4GiB of memory":                                          {Server: demux.Server{Port: port}, Memory: 4 << 30},
		"to interface nope: ":                                                 {Server: demux.Server{Port: port, Interfaces: []string{"nope"}}},
		"no server answers by TCP":                                            {Server: demux.Server{Port: 1}},
		"mode \"best\"":                                                       {Server: demux.Server{Port: port, Mode: "best"}},
	} {
		s.in(func() error {
			c, err := Attach(o)
			if err == nil {
				err = c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			return nil
		})
	}
	s.attach() // nothing is left behind
}

// TestVeth attaches the cache to a veth whose other end has no XDP program, which loses what a native one sends, and to one whose other end has one. Hits
// must be answered by both.
func TestVeth(t *testing.T) {
	for name, c := range map[string]struct {
		site func(*testing.T) *site
		want xdp.Mode
	}{"as it comes": {newPlainSite, xdp.ModeGeneric}, "program on both ends": {newSite, xdp.ModeNative}} {
		t.Run(name, func(t *testing.T) {
			s := c.site(t)
			s.attachBy(xdp.ModeAuto)
			s.keep(s.client())
			if ports := s.cache.Attachment().Ports(); len(ports) != 1 || ports[0].Mode != c.want {
				t.Errorf("attached in mode %s, want %s", ports[0].Mode, c.want)
			}
		})
	}
}
