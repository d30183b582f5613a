package process

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// startMemcached runs a real memcached and gives its address.
func startMemcached(t *testing.T) (netip.AddrPort, *memcache.Client) {
	t.Helper()
	loopback := netip.MustParseAddr("127.0.0.1")
	m, err := memcached.Start(t.Context(), []netip.Addr{loopback}, "-m", "16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop() })
	return netip.AddrPortFrom(loopback, m.Port), m.Client
}

// serviceAt is a service that the lambda waits for, however busy the machine is.
func serviceAt(addr netip.AddrPort) backend.Service {
	return backend.Service{Protocol: "memcached", Servers: []netip.AddrPort{addr}, Timeout: api.Duration(patience)}
}

func serveCaller(t *testing.T, host string, services ...backend.Service) (*Backend, *rawClient) {
	t.Helper()
	b := newBackend(t, host, shortdir.New(t))
	d := deployment(workload, 3, api.ModePacket, fixture(t, "caller"))
	for i, s := range services {
		s.Name = fmt.Sprint("s", i)
		d.Services = append(d.Services, s)
	}
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	return b, dial(t, endpoint)
}

func TestMemcached(t *testing.T) {
	addr, mc := startMemcached(t)
	_, c := serveCaller(t, plainHost, serviceAt(addr)) // within its system calls
	ask := func(command string) string {
		t.Helper()
		h, p := c.call(workload, 0, []byte(command), 1400)
		if h.Type != api.TypeResponse || h.Request != c.next || h.Revision != 3 {
			t.Fatalf("%q: %+v", command, h)
		}
		if len(p) == 0 || p[0] != command[0] {
			t.Fatalf("%q: cookie did not come back: %q", command, p)
		}
		return string(p[1:])
	}
	if got := ask("set k 0 0 5\r\nhello\r\n"); got != "STORED\r\n" {
		t.Errorf("set: %q", got)
	}
	item, err := mc.Get("k")
	if err != nil || string(item.Value) != "hello" {
		t.Errorf("over TCP: %v, %v", item, err)
	}
	if err := mc.Set(&memcache.Item{Key: "t", Value: []byte("over TCP")}); err != nil {
		t.Fatal(err)
	}
	if got := ask("get t\r\n"); got != "VALUE t 0 8\r\nover TCP\r\nEND\r\n" {
		t.Errorf("get: %q", got)
	}
	// A reply with little room may be taken from anywhere in the service's answer.
	if h, p := c.call(workload, 16, []byte("get t"+"\r\n"), 0); h.Type != api.TypeResponse || string(p) != "r TCP" {
		t.Errorf("part of an answer: %+v %q", h, p)
	}
	// The lambda adds to a request that has no room to spare, between two others.
	const methodAppend = 64
	var row [][]byte
	for _, key := range []string{"t", "k", "t"} {
		h := c.header(workload, methodAppend, len("get ")+1)
		row = append(row, packet(h, []byte("get "+key), 31))
	}
	c.sendSegments(row)
	for range row {
		h, p := c.receive()
		want := "gVALUE t 0 8\r\nover TCP\r\nEND\r\n"
		if h.Request == c.next-1 {
			want = "gVALUE k 0 5\r\nhello\r\nEND\r\n"
		}
		if h.Type != api.TypeResponse || string(p) != want {
			t.Errorf("request %d of a row: %+v %q", h.Request, h, p)
		}
	}
	if got := ask("nonsense\r\n"); !strings.HasPrefix(got, "ERROR") {
		t.Errorf("nonsense: %q", got)
	}
}

// Many calls at once each get their own answer.
func TestCallsInFlight(t *testing.T) {
	addr, mc := startMemcached(t)
	_, c := serveCaller(t, checkedHost, serviceAt(addr))
	const n = 500
	want := make(map[uint64]string)
	for i := range n {
		key := fmt.Sprint("key", i)
		if err := mc.Set(&memcache.Item{Key: key, Value: []byte(key)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		command := fmt.Sprintf("get key%d\r\n", i)
		h := c.header(workload, 0, len(command))
		want[h.Request] = fmt.Sprintf("gVALUE key%d 0 %d\r\nkey%d\r\nEND\r\n", i, len(fmt.Sprint("key", i)), i)
		c.send(packet(h, []byte(command), 200))
		if i%50 == 49 { // memcached's socket holds so many
			for range 50 {
				h, p := c.receive()
				if h.Type != api.TypeResponse || want[h.Request] != string(p) {
					t.Fatalf("request %d: %+v %q, want %q", h.Request, h, p, want[h.Request])
				}
				delete(want, h.Request)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("%d answers are missing", len(want))
	}
}

func TestCallErrors(t *testing.T) {
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const impatient, patient, broadcast, none = 0, 1, 2, 3
	services := [none]backend.Service{
		patient:   serviceAt(silent.LocalAddr().(*net.UDPAddr).AddrPort()),
		broadcast: serviceAt(netip.MustParseAddrPort("255.255.255.255:9")), // needs a permission that the process does not ask for
	}
	services[impatient] = services[patient] // the same service, but with a socket of its own
	services[impatient].Timeout = api.Duration(10 * time.Millisecond)
	_, c := serveCaller(t, checkedHost, services[:]...)
	expect := func(code api.Code) {
		t.Helper()
		if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(code) || h.Request != c.next {
			t.Errorf("got %+v, want error %d", h, code)
		}
	}
	send := func(method uint32) { c.send(packet(c.header(workload, method, 5), []byte("get k"), 0)) }
	buf := make([]byte, 2048)
	read := func() (int, *net.UDPAddr) {
		t.Helper()
		n, from, err := silent.ReadFromUDP(buf)
		if err != nil || n != 8+5 {
			t.Fatalf("service got %d bytes, %v", n, err)
		}
		return n, from
	}

	send(impatient)
	n, earlier := read()
	expect(api.CodeTimeout)
	late := append([]byte(nil), buf[:n-1]...) // there would be room for it

	send(patient) // gets no late answer to an earlier call
	n, from := read()
	silent.WriteToUDP(late, earlier)
	silent.WriteToUDP(late, from)
	silent.WriteToUDP(buf[:3], from)
	silent.WriteToUDP(buf[:n], from)
	expect(api.CodeTooLarge) // the reply has one byte more than the request

	send(patient)
	n, from = read()
	buf[5] = 2 // an answer of two datagrams, for the first of which there would be room
	silent.WriteToUDP(buf[:n-1], from)
	expect(api.CodeTooLarge)

	send(broadcast)
	expect(api.CodeUnreachable)
	send(none)
	expect(api.CodeLambdaFault)
}
