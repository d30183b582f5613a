package nic

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module/calls"
	"github.com/lambdanic/lambdanic/test/seed"
)

// Whatever a service answers, the client gets one answer, which has no more than the service's.
func TestServiceReplies(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	long := strings.Repeat("x", 1350)
	for name, tc := range map[string]struct {
		reply  string
		status api.Status
		body   string
	}{
		"hit":                    {"VALUE key 0 2\r\nhi\r\nEND\r\n", api.StatusOK, "key=hi"},
		"hit of nothing":         {"VALUE key 0 0\r\n\r\nEND\r\n", api.StatusOK, "key="},
		"miss":                   {"END\r\n", api.StatusNotFound, ""},
		"stored":                 {"STORED\r\n", api.StatusOK, "STORED"},
		"error":                  {"ERROR\r\n", api.StatusServiceError, "ERROR"},
		"client error":           {"CLIENT_ERROR bad data chunk\r\n", api.StatusServiceError, "CLIENT_ERROR bad data chunk"},
		"server error":           {"SERVER_ERROR busy\r\n", api.StatusServiceError, "SERVER_ERROR busy"},
		"long error":             {"SERVER_ERROR " + long + "\r\n", api.StatusServiceError, "SERVER_ERROR " + long},
		"not stored":             {"NOT_STORED\r\n", api.StatusServiceError, "NOT_STORED"},
		"nothing":                {"", api.StatusServiceError, ""},
		"an empty line":          {"\r\n", api.StatusServiceError, ""},
		"a hit that is cut":      {"VALUE key 0 5\r\nab", api.StatusFailed, ""},
		"a hit that is longer":   {"VALUE key 0 1\r\nab\r\nEND\r\n", api.StatusFailed, ""},
		"a hit without a key":    {"VALUE ", api.StatusFailed, ""},
		"a hit without a size":   {"VALUE key 0 \r\nEND\r\n", api.StatusFailed, ""},
		"a hit of too much":      {"VALUE key 0 4294967297\r\nab\r\nEND\r\n", api.StatusFailed, ""},
		"a hit of a long key":    {"VALUE " + strings.Repeat("k", 251) + " 0 1\r\na\r\nEND\r\n", api.StatusFailed, ""},
		"a hit of all that fits": {value("key", long), api.StatusOK, "key=" + long},
	} {
		t.Run(name, func(t *testing.T) {
			c.t, fake.t = t, t
			id := c.send(methodGet, []byte("key"), api.RPCMaxPayload)
			q := fake.receive()
			if q.text != "get key\r\n" {
				t.Fatalf("the service was asked %q", q.text)
			}
			fake.answer(q, 0, 1, tc.reply)
			h, body := c.receive()
			if h.Request != id || h.Type != api.TypeResponse || api.Status(h.Code) != tc.status || string(body) != tc.body {
				t.Errorf("got %+v %q, want status %d %q", h, body, tc.status, tc.body)
			}
		})
	}
}

// A reply of several datagrams, or of more than the request has room for, becomes the error "too large".
func TestServiceRepliesTooLarge(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	for _, total := range []uint16{0, 2, 65535} {
		id := c.send(methodGet, []byte("key"), api.RPCMaxPayload)
		fake.answer(fake.receive(), 0, total, value("key", "x"))
		if h := c.expectError(id, api.CodeTooLarge); h.MessageLen != 0 {
			t.Errorf("datagram 1 of %d: %d bytes would do", total, h.MessageLen)
		}
	}
	id := c.send(methodGet, []byte("key"), 100)
	fake.answer(fake.receive(), 0, 1, value("key", strings.Repeat("x", 97)))
	if h := c.expectError(id, api.CodeTooLarge); h.MessageLen != 101 {
		t.Errorf("%d bytes would do, want 101", h.MessageLen)
	}
}

// Only the service that was asked can answer, and only what it was asked.
func TestForgedReplies(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	id := c.send(methodGet, []byte("key"), 64)
	q := fake.receive()
	forged := frame(q.id, 0, 1, value("key", "forged"))
	otherPort := q
	otherPort.from = netip.AddrPortFrom(q.from.Addr(), q.from.Port()+1)

	// Answers by somebody who knows of the call, but is not its server; and by the server, without the call's ID or port.
	forgeries, strays := uint64(0), uint64(0)
	for name, forge := range map[string]func() error{
		"another port": func() error {
			_, err := newFake(t, n.HostAddr()).conn.WriteToUDPAddrPort(forged, q.from)
			return err
		},
		"another address": func() error {
			_, err := bindOther(t, n, fake.addr().Port()).WriteToUDPAddrPort(forged, q.from)
			return err
		},
	} {
		if err := forge(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		forgeries++
		eventually(t, name+" is counted as forged", func() bool { return counted(t, n, "forged") == forgeries })
	}
	for name, forge := range map[string]func() error{
		"another call": func() error {
			_, err := fake.conn.WriteToUDPAddrPort(frame(q.id+1, 0, 1, value("key", "forged")), q.from)
			return err
		},
		"another use of the call": func() error {
			_, err := fake.conn.WriteToUDPAddrPort(forged, otherPort.from)
			return err
		},
		"no frame header": func() error {
			_, err := fake.conn.WriteToUDPAddrPort(forged[:7], q.from)
			return err
		},
		"nothing": func() error {
			_, err := fake.conn.WriteToUDPAddrPort(nil, q.from)
			return err
		},
	} {
		if err := forge(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		strays++
		expectStrays(t, n, name, strays)
	}
	fake.answer(q, 0, 1, value("key", "true"))
	if h, body := c.receive(); h.Request != id || string(body) != "key=true" {
		t.Errorf("got %+v %q", h, body)
	}
	fake.answer(q, 0, 1, value("key", "twice"))
	expectStrays(t, n, "a second reply", strays+1)
}

func expectStrays(t *testing.T, n *NIC, what string, count uint64) {
	t.Helper()
	eventually(t, what+" is counted as a stray", func() bool { return counted(t, n, "stray") == count })
}

// bindOther gives a socket at another address of the host's end, one of RFC 5737's.
func bindOther(t *testing.T, n *NIC, port uint16) *net.UDPConn {
	t.Helper()
	l, err := netlink.LinkByName(n.HostEnd())
	if err != nil {
		t.Fatal(err)
	}
	other := net.IPv4(198, 51, 100, 1)
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: netlink.NewIPNet(other)}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: other, Port: int(port)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A reply that comes after the time-out is a stray.
func TestLateReply(t *testing.T) {
	n := open(t, pacedConfig(t))
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), time.Millisecond))
	c := dialNIC(t, n.Addr())
	c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
	late := fake.receive()
	fake.answer(late, 0, 1, value("key", "late"))
	expectStrays(t, n, "a late reply", 1)
}

// Twenty thousand calls at once, answered in any order.
func TestManyCalls(t *testing.T) {
	const calls, batch = 20_000, 250
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	bigBuffers(t, c.conn)
	bigBuffers(t, fake.conn)
	missing := map[uint64]string{}
	var asked []question
	for len(missing) < calls {
		for range batch {
			key := fmt.Sprint("key", c.next)
			missing[c.send(methodGet, []byte(key), 64)] = key + "=value of " + key
		}
		for range batch { // one batch at a time, for a veth's ring has 256 places
			asked = append(asked, fake.receive())
		}
	}
	r := seed.Rand(t)
	r.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	for len(asked) > 0 {
		for _, q := range asked[:batch] {
			key := strings.TrimSuffix(strings.TrimPrefix(q.text, "get "), "\r\n")
			fake.answer(q, 0, 1, value(key, "value of "+key))
		}
		asked = asked[batch:]
		for range batch {
			h, body := c.receive()
			if h.Type != api.TypeResponse || string(body) != missing[h.Request] {
				t.Fatalf("got %+v %q, want %q", h, body, missing[h.Request])
			}
			delete(missing, h.Request)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d calls were not answered", len(missing))
	}
	if stray, busy := counted(t, n, "stray"), counted(t, n, "busy"); stray != 0 || busy != 0 {
		t.Errorf("counted %d strays and %d busy", stray, busy)
	}
}

// When every record is in use, a new call is refused, and when some are free again, it is not.
func TestAllCallsBusy(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	c.send(methodGet, []byte("key"), 64)
	q := fake.receive()
	var call calls.Call
	records := pinnedMap(t, n, "ln_calls")
	if err := records.Lookup(uint32(q.id), &call); err != nil {
		t.Fatal(err)
	}
	for i := range records.MaxEntries() {
		if err := records.Put(i, &call); err != nil {
			t.Fatal(err)
		}
	}
	c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeBusy)
	if got := counted(t, n, "busy"); got != 1 {
		t.Errorf("%d counted, want 1", got)
	}
	fake.answer(q, 0, 1, value("key", "x"))
	c.receive()
	for i := uint32(0); i < records.MaxEntries(); i += 2 {
		if err := records.Put(i, &calls.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	c.send(methodGet, []byte("key"), 64)
	fake.answer(fake.receive(), 0, 1, value("key", "y"))
	if h, body := c.receive(); h.Type != api.TypeResponse || string(body) != "key=y" {
		t.Errorf("got %+v %q", h, body)
	}
}

// Clients and services meet across address families; errors find back as well.
func TestAddressFamilies(t *testing.T) {
	n := open(t, pacedConfig(t))
	revision := uint32(0)
	for _, nic := range []netip.Addr{n.Addr().Addr(), n.Addr6()} {
		for _, host := range []netip.Addr{n.HostAddr(), hostAddr6(n)} {
			t.Run(fmt.Sprintf("client of %v, service at %v", nic, host), func(t *testing.T) {
				fake := newFake(t, host)
				revision++
				deploy(t, n, kvRevision(t, revision, fake.addr(), longest))
				c := dialNIC(t, netip.AddrPortFrom(nic, api.RPCPort))
				for _, key := range []string{"k", "key", strings.Repeat("k", 250)} {
					for size := range 70 { // odd and even lengths, for checksums
						want := strings.Repeat("v", size)
						id := c.send(methodGet, []byte(key), len(key)+1+size)
						q := fake.receive()
						if q.text != "get "+key+"\r\n" || q.from.Addr().Is6() != host.Is6() {
							t.Fatalf("the service was asked %q by %v", q.text, q.from)
						}
						fake.answer(q, 0, 1, value(key, want))
						if h, body := c.receive(); h.Request != id || string(body) != key+"="+want {
							t.Fatalf("got %+v %q", h, body)
						}
					}
				}
				revision++
				deploy(t, n, kvRevision(t, revision, fake.addr(), time.Millisecond))
				c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
			})
		}
	}
}

// Calls in flight end with the revision that began them, and its service; new calls use the new revision's.
func TestCallsAcrossSwap(t *testing.T) {
	const calls = 100
	n := newTestNIC(t)
	c := dialNIC(t, n.Addr())
	bigBuffers(t, c.conn)
	var services []*fakeService
	asked := map[*fakeService][]question{}
	revisionOf := map[uint64]uint32{}
	for revision := range uint32(3) {
		s := newFake(t, n.HostAddr())
		services = append(services, s)
		deploy(t, n, kvRevision(t, revision+1, s.addr(), longest))
		for range calls {
			revisionOf[c.send(methodGet, []byte("key"), 64)] = revision + 1
			asked[s] = append(asked[s], s.receive())
		}
	}
	for i := range calls {
		for j, s := range services {
			s.answer(asked[s][i], 0, 1, value("key", fmt.Sprint(j+1)))
		}
	}
	for range calls * len(services) {
		h, body := c.receive()
		want := revisionOf[h.Request]
		if h.Revision != want || string(body) != fmt.Sprint("key=", want) {
			t.Errorf("got %+v %q, want revision %d", h, body, want)
		}
		delete(revisionOf, h.Request)
	}
	if len(revisionOf) > 0 {
		t.Errorf("%d calls were not answered", len(revisionOf))
	}
}
