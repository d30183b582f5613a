package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/seed"
)

// Services of all protocols, on the NIC and in a process: both must do the same.

// The methods of test/lambdas/caller.c and binary.c.
const (
	methodCall   = 0
	methodKeyed  = 128
	binaryGet    = 0
	binarySet    = 1
	binaryDelete = 2
)

var fixtureRevision atomic.Uint32

// fixture builds test/lambdas/NAME.c to call a service, or none where that has no name.
func fixture(t testing.TB, name string, s backend.Service) backend.Deployment {
	t.Helper()
	build, _ := builds.LoadOrStore("fixture "+name, sync.OnceValues(func() (*compiler.Artifact, error) {
		source, err := os.ReadFile("../../test/lambdas/" + name + ".c")
		if err != nil {
			return nil, err
		}
		spec := "name: " + name + "\nlimits: {time: 10ms}\n"
		if s.Name != "" {
			spec += "services: [{name: " + s.Name + ", protocol: memcached, address: 'host:1'}]\n"
		}
		return buildFiles(map[string][]byte{name + ".c": source, api.SpecFile: []byte(spec)})
	}))
	a, err := build.(func() (*compiler.Artifact, error))()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	d := deployment(a, kvWorkload, fixtureRevision.Add(1))
	if s.Name != "" {
		d.Services = []backend.Service{s}
	}
	return d
}

// bothPlaces runs a test with a lambda on a NIC, and as a process.
func bothPlaces(t *testing.T, n *NIC, d backend.Deployment, test func(t *testing.T, c *kvConn)) {
	t.Helper()
	t.Run("nic", func(t *testing.T) {
		deploy(t, n, d)
		test(t, dialNIC(t, n.Addr()))
	})
	t.Run("process", func(t *testing.T) {
		b := startProcess(t, d)
		endpoint, _ := b.Endpoint(d.Workload)
		test(t, dialNIC(t, endpoint))
	})
}

// A datagram that a service received.
type datagram struct {
	from netip.AddrPort
	data []byte
}

func (f *fakeService) datagram() datagram {
	f.t.Helper()
	buf := make([]byte, 2048)
	_ = f.conn.SetReadDeadline(time.Now().Add(patience))
	n, from, err := f.conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		f.t.Fatalf("the service got nothing: %v", err)
	}
	return datagram{from, buf[:n]}
}

func (f *fakeService) send(to netip.AddrPort, data []byte) {
	f.t.Helper()
	if _, err := f.conn.WriteToUDPAddrPort(data, to); err != nil {
		f.t.Fatal(err)
	}
}

func raw(timeout time.Duration, retries int, id api.ServiceID, servers ...netip.AddrPort) backend.Service {
	return backend.Service{Name: "s", Protocol: api.ProtocolRaw, Servers: servers, Timeout: api.Duration(timeout), Retries: retries, ID: id}
}

// The service gets what the lambda sends, except for the request ID, and the lambda gets the answer unchanged.
func TestRawService(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	for _, id := range []api.ServiceID{{}, {At: 0, Bytes: 2}, {At: 3, Bytes: 4}, {At: 5, Bytes: 8}} {
		t.Run(fmt.Sprintf("id %+v", id), func(t *testing.T) {
			bothPlaces(t, n, fixture(t, "caller", raw(longest, 0, id, fake.addr())), func(t *testing.T, c *kvConn) {
				fake.t = t
				r := seed.Rand(t)
				for range 200 {
					exchangeRaw(t, c, fake, id, r)
				}
				if id.Bytes > 0 {
					for size := 1; size < id.At+id.Bytes; size++ { // no room for the ID
						c.expectError(c.send(methodCall, make([]byte, size), 1400), api.CodeLambdaFault)
					}
				}
			})
		})
	}
}

// A service's answer can be made longer by at least 128 bytes, also if its packet has no room for that, but no longer than the client
// has room for.
func TestLongerThanTheAnswer(t *testing.T) {
	const spare, fromArray = 128, 4096 // of test/lambdas/longer.c
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	bothPlaces(t, n, fixture(t, "longer", raw(longest, 0, api.ServiceID{}, fake.addr())), func(t *testing.T, c *kvConn) {
		fake.t = t
		r := seed.Rand(t)
		ask := func(answer []byte, more, room int) uint64 {
			request := c.send(uint32(r.IntN(2)*fromArray+more), []byte("request"), room)
			fake.send(fake.datagram().from, answer)
			return request
		}
		for more := range spare + 1 {
			answer := []byte(randomValue(r, 1+r.IntN(api.RPCMaxPayload-more)))
			request := ask(answer, more, api.RPCMaxPayload)
			h, reply := c.receive()
			if want := append(answer, bytes.Repeat([]byte("x"), more)...); h.Request != request || h.Type != api.TypeResponse || !bytes.Equal(reply, want) {
				t.Fatalf("%d more: got %+v %x, want %x", more, h, reply, want)
			}
		}
		for range 10 {
			more := 1 + r.IntN(spare)
			c.expectError(ask(make([]byte, api.RPCMaxPayload-more+1), more, api.RPCMaxPayload), api.CodeLambdaFault)
			c.expectError(ask(make([]byte, 100), more, 99+more), api.CodeLambdaFault)
		}
	})
}

func exchangeRaw(t *testing.T, c *kvConn, fake *fakeService, id api.ServiceID, r *rand.Rand) {
	t.Helper()
	body := []byte(randomValue(r, id.At+id.Bytes+1+r.IntN(1300)))
	request := c.send(methodCall, body, api.RPCMaxPayload)
	got := fake.datagram()
	end := id.At + id.Bytes
	if len(got.data) != len(body) || !bytes.Equal(got.data[:id.At], body[:id.At]) || !bytes.Equal(got.data[end:], body[end:]) {
		t.Fatalf("the service got %x, of %x", got.data, body)
	}
	answer := []byte(randomValue(r, end+r.IntN(1400-end)))
	copy(answer[id.At:end], got.data[id.At:end])
	fake.send(got.from, answer)
	h, reply := c.receive()
	if h.Request != request || h.Type != api.TypeResponse || reply[0] != body[0] || !bytes.Equal(reply[1:], answer) {
		t.Fatalf("got %+v %x, want %x", h, reply, answer)
	}
}

// Only the server that was asked can answer, from its port, to the port that asked, and with the request's ID.
func TestRawForgedReplies(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	id := api.ServiceID{At: 1, Bytes: 4}
	deploy(t, n, fixture(t, "caller", raw(longest, 0, id, fake.addr())))
	c := dialNIC(t, n.Addr())
	request := c.send(methodCall, []byte("question"), 64)
	got := fake.datagram()
	truth := slices.Clone(got.data)
	copy(truth[5:], "yes")
	wrong := slices.Clone(truth)
	wrong[4] ^= 1
	forgeries := uint64(0)
	for name, forge := range map[string]func(){
		"another port":    func() { newFake(t, n.HostAddr()).send(got.from, truth) },
		"another address": func() { (&fakeService{t, bindOther(t, n, fake.addr().Port())}).send(got.from, truth) },
		"another ID":      func() { fake.send(got.from, wrong) },
		"no ID":           func() { fake.send(got.from, truth[:4]) },
		"nothing":         func() { fake.send(got.from, nil) },
	} {
		forge()
		forgeries++
		eventually(t, name+" is counted as forged", func() bool { return counted(t, n, "forged") == forgeries })
	}
	fake.send(netip.AddrPortFrom(got.from.Addr(), 61440+2048+(got.from.Port()-1)%2048), truth)
	expectStrays(t, n, "another call's port", 1)
	fake.send(got.from, truth)
	if h, body := c.receive(); h.Request != request || string(body[1:]) != string(truth) {
		t.Errorf("got %+v %q", h, body)
	}
	fake.send(got.from, truth)
	expectStrays(t, n, "a second reply", 2)
}

// In a process, a datagram with another ID is not an answer.
func TestRawForgedInProcess(t *testing.T) {
	fake := newFake(t, netip.MustParseAddr("127.0.0.1"))
	b := startProcess(t, fixture(t, "caller", raw(longest, 0, api.ServiceID{At: 1, Bytes: 4}, fake.addr())))
	endpoint, _ := b.Endpoint(kvWorkload)
	c := dialNIC(t, endpoint)
	request := c.send(methodCall, []byte("question"), 64)
	got := fake.datagram()
	wrong := slices.Clone(got.data)
	wrong[1] ^= 1
	fake.send(got.from, wrong)
	fake.send(got.from, wrong[:4])
	newFake(t, netip.MustParseAddr("127.0.0.1")).send(got.from, got.data)
	fake.send(got.from, got.data)
	if h, body := c.receive(); h.Request != request || !bytes.Equal(body[1:], got.data) {
		t.Errorf("got %+v %q", h, body)
	}
}

// An unanswered request is sent again unchanged, without telling the client. When no try is left, the client gets a
// time-out.
func TestRetries(t *testing.T) {
	const timeout, retries = 100 * time.Millisecond, 3
	n := open(t, pacedConfig(t))
	fake := newFake(t, n.HostAddr())
	for _, s := range []backend.Service{
		raw(timeout, manyRetries, api.ServiceID{At: 2, Bytes: 8}, fake.addr()),
		{Name: "s", Protocol: api.ProtocolMemcached, Servers: []netip.AddrPort{fake.addr()}, Timeout: api.Duration(timeout), Retries: manyRetries},
	} {
		t.Run(string(s.Protocol), func(t *testing.T) {
			bothPlaces(t, n, fixture(t, "caller", s), func(t *testing.T, c *kvConn) {
				fake.t = t
				for lost := range retries + 1 {
					testRetry(t, c, fake, lost, timeout, func(request uint64, first datagram) {
						fake.send(first.from, first.data)
						h, body := c.receive()
						if h.Request != request || h.Type != api.TypeResponse || !bytes.HasSuffix(first.data, body[1:]) {
							t.Fatalf("got %+v %x", h, body)
						}
					})
				}
			})
		})
		t.Run(string(s.Protocol)+" in vain", func(t *testing.T) {
			s.Retries = retries
			bothPlaces(t, n, fixture(t, "caller", s), func(t *testing.T, c *kvConn) {
				fake.t = t
				testRetry(t, c, fake, retries, timeout, func(request uint64, first datagram) {
					c.expectError(request, api.CodeTimeout)
					newFake(t, n.HostAddr()).send(fake.addr(), []byte("behind all tries"))
					if d := fake.datagram(); string(d.data) != "behind all tries" {
						t.Errorf("sent once more than %d times again: %x", retries, d.data)
					}
				})
			})
		})
	}
	// A slow machine causes more retries.
	if retries, timeouts := counted(t, n, "retries"), counted(t, n, "timeouts"); retries < 2*(1+2+3+3) || timeouts != 2 {
		t.Errorf("%d retries and %d time-outs were counted", retries, timeouts)
	}
	var key uint32
	if err := pinnedMap(t, n, "ln_retained").NextKey(nil, &key); err == nil {
		t.Errorf("request %d is kept for ever", key)
	}
}

// manyRetries are enough for a test's answer to come in time, however busy the machine.
const manyRetries = math.MaxUint8

// testRetry loses a request so many times, on its way to the service or back, and then ends the call.
func testRetry(t *testing.T, c *kvConn, fake *fakeService, lost int, timeout time.Duration, end func(request uint64, first datagram)) {
	t.Helper()
	began := time.Now()
	question := fmt.Sprintf("a question of %s, lost this often: %d", t.Name(), lost)
	next := func() datagram {
		for {
			if d := fake.datagram(); bytes.HasSuffix(d.data, []byte(question[16:])) { // behind the request ID
				return d // not a late try of the last request
			}
		}
	}
	request := c.send(methodCall, []byte(question), 128)
	first := next()
	for range lost {
		if again := next(); again.from != first.from || !bytes.Equal(again.data, first.data) {
			t.Fatalf("sent again as %x from %v, after %x from %v", again.data, again.from, first.data, first.from)
		}
	}
	end(request, first)
	const tick = 10 * time.Millisecond // of the coarsest clock that a process may go by
	// A busy machine only prolongs it.
	if took := time.Since(began); took < time.Duration(lost)*(timeout-tick) {
		t.Errorf("%d tries took %v, of %v each", lost, took, timeout)
	}
}

// A late answer to the first try counts, though the second is under way; the answer to the second is a stray.
func TestLateAnswerToFirstTry(t *testing.T) {
	n := open(t, pacedConfig(t))
	fake := newFake(t, n.HostAddr())
	deploy(t, n, fixture(t, "caller", raw(100*time.Millisecond, manyRetries, api.ServiceID{}, fake.addr())))
	c := dialNIC(t, n.Addr())
	request := c.send(methodCall, []byte("question"), 64)
	first := fake.datagram()
	fake.datagram()
	fake.send(first.from, []byte("late"))
	if h, body := c.receive(); h.Request != request || string(body) != "qlate" {
		t.Errorf("got %+v %q", h, body)
	}
	fake.send(first.from, []byte("late"))
	expectStrays(t, n, "the second try's answer", 1)
}

// mixed hashes a key as ln_share() does (bpf/layout.h): MurmurHash3's finalizer.
func mixed(key uint64) uint64 {
	key = (key ^ key>>33) * 0xff51afd7ed558ccd
	key = (key ^ key>>33) * 0xc4ceb9fe1a85ec53
	return key ^ key>>33
}

// In both places, a call's key, or else its request's ID, chooses the server through the table of shares.
func TestServers(t *testing.T) {
	n := newTestNIC(t)
	var fakes []*fakeService
	var servers []netip.AddrPort
	for range 5 {
		f := newFake(t, n.HostAddr())
		fakes, servers = append(fakes, f), append(servers, f.addr())
	}
	s := raw(longest, 0, api.ServiceID{}, servers...)
	s.Weights = []int{1, 2, 3, 1, 1}
	shares := s.Shares()
	bothPlaces(t, n, fixture(t, "caller", s), func(t *testing.T, c *kvConn) {
		for i := range 256 {
			for _, method := range []uint32{methodCall, methodKeyed} {
				request := c.send(method, []byte{byte(i)}, 16)
				key := request
				if method == methodKeyed {
					key = uint64(i)
				}
				f := fakes[shares[mixed(key)%backend.Shares]]
				f.t = t
				f.send(f.datagram().from, []byte("here"))
				if h, body := c.receive(); h.Request != request || string(body[1:]) != "here" {
					t.Fatalf("got %+v %q", h, body)
				}
			}
		}
	})
}

// Ports and IDs of calls are spread over the whole range, and are not consecutive.
func TestCallsUnforeseeable(t *testing.T) {
	const calls = 2000
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	for _, s := range []backend.Service{
		raw(longest, 0, api.ServiceID{At: 0, Bytes: 2}, fake.addr()),
		{Name: "s", Protocol: api.ProtocolMemcached, Servers: []netip.AddrPort{fake.addr()}, Timeout: api.Duration(longest)},
	} {
		deploy(t, n, fixture(t, "caller", s))
		c := dialNIC(t, n.Addr())
		ports, ids, steps := map[uint16]int{}, map[uint16]int{}, map[[2]uint16]int{}
		var last [2]uint16
		for range calls {
			c.send(methodCall, []byte("question"), 64)
			q := fake.datagram()
			port, id := q.from.Port(), binary.BigEndian.Uint16(q.data)
			ports[port]++
			ids[id]++
			steps[[2]uint16{port - last[0], id - last[1]}]++
			last = [2]uint16{port, id}
			fake.send(q.from, q.data)
			c.receive()
		}
		// 2,000 of 2,048 hit 1,277 different ones on average, with a deviation of 15; of 65,536, 1,970 with one of 6.
		if len(ports) < 1150 || len(ids) < 1900 || len(steps) < calls-10 {
			t.Errorf("%s: %d calls have %d ports, %d IDs, and %d differences", s.Protocol, calls, len(ports), len(ids), len(steps))
		}
	}
}

// The binary protocol against a real memcached: what it stores is read by TCP, and the reverse.
func TestMemcachedBinary(t *testing.T) {
	n := newTestNIC(t)
	addr, tcp := startMemcached(t, n)
	s := backend.Service{Name: "cache", Protocol: api.ProtocolMemcached, Servers: []netip.AddrPort{addr}, Timeout: api.Duration(longest)}
	bothPlaces(t, n, fixture(t, "binary", s), func(t *testing.T, c *kvConn) {
		r := seed.Rand(t)
		for range 50 {
			key, value, other := strings.ReplaceAll(randomKey(r, 1+r.IntN(200)), "\x00", "0"), randomValue(r, r.IntN(1000)), randomValue(r, r.IntN(1000))
			if status, body := c.response(binarySet, []byte(key+"\x00"+value)); status != api.StatusOK || body != "" {
				t.Fatalf("set: status %d %q", status, body)
			}
			if item, err := tcp.Get(key); err != nil || string(item.Value) != value {
				t.Fatalf("get by TCP: %v", err)
			}
			if err := tcp.Set(&memcache.Item{Key: key, Value: []byte(other)}); err != nil {
				t.Fatal(err)
			}
			if status, body := c.response(binaryGet, []byte(key)); status != api.StatusOK || body != other {
				t.Fatalf("get: status %d %q, want %q", status, body, other)
			}
			if status, body := c.response(binaryDelete, []byte(key)); status != api.StatusOK {
				t.Fatalf("delete: status %d %q", status, body)
			}
			if status, body := c.response(binaryGet, []byte(key)); status != api.StatusNotFound || body != "Not found" {
				t.Fatalf("get after delete: status %d %q", status, body)
			}
		}
	})
}

// Three memcacheds are one store: each key is in one of them, the same one for both places.
func TestSeveralMemcacheds(t *testing.T) {
	n := newTestNIC(t)
	d := bundled(t, "kv_client", kvWorkload, 1)
	s := backend.Service{Name: "memcached", Protocol: api.ProtocolMemcached, Timeout: api.Duration(longest)}
	var stores []*memcache.Client
	for range 3 {
		addr, tcp := startMemcached(t, n)
		s.Servers, stores = append(s.Servers, addr), append(stores, tcp)
	}
	d.Services = []backend.Service{s}
	deploy(t, n, d)
	endpoint, _ := startProcess(t, d).Endpoint(kvWorkload)
	places := []*kvConn{dialNIC(t, n.Addr()), dialNIC(t, endpoint)}
	count := make([]int, len(stores))
	for i := range 300 {
		key := fmt.Sprint("key", i)
		if status, body := places[i%2].set(key, "of "+key); status != api.StatusOK {
			t.Fatalf("set %s: status %d %q", key, status, body)
		}
		if status, body := places[1-i%2].get(key); status != api.StatusOK || body != key+"=of "+key {
			t.Fatalf("get %s: status %d %q", key, status, body)
		}
		found := 0
		for j, tcp := range stores {
			if _, err := tcp.Get(key); err == nil {
				found++
				count[j]++
			}
		}
		if found != 1 {
			t.Errorf("%s is in %d of %d memcacheds", key, found, len(stores))
		}
	}
	if slices.Min(count) < 50 {
		t.Errorf("the memcacheds have %v keys", count)
	}
}

// A silent service ties up all ports: each call has its own, and clients whose calls get none are told.
func TestRawCallsBusy(t *testing.T) {
	// A call takes the first free one of 64 ports from a random one on. Until all are taken, 1,500 simulations needed 2,480 calls on
	// average, and 3,087 at most.
	const calls, ports = 5000, 2048
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, fixture(t, "caller", raw(time.Hour, 0, api.ServiceID{}, fake.addr()))) // no call gives its port back
	c := dialNIC(t, n.Addr())
	refused := make(chan bool)
	go func() {
		defer close(refused)
		for buf := make([]byte, 2048); ; refused <- true {
			size, err := c.conn.Read(buf)
			if err != nil || size < api.RPCHeaderLen || api.Code(buf[5]) != api.CodeBusy {
				return
			}
		}
	}()
	asked := make(chan uint16)
	go func() {
		for buf := make([]byte, 2048); ; {
			_, from, err := fake.conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return // the test is over
			}
			asked <- from.Port()
		}
	}()
	used, busy := map[uint16]bool{}, 0
	for range calls {
		c.send(methodCall, []byte("question"), 64)
		select {
		case port := <-asked:
			if used[port] {
				t.Fatalf("two calls have port %d", port)
			}
			used[port] = true
		case ok := <-refused:
			if !ok {
				t.Fatal("the NIC says something else")
			}
			busy++
		case <-time.After(patience):
			t.Fatal("neither the service is asked nor the client refused")
		}
	}
	if len(used) != ports {
		t.Errorf("%d of %d ports are in use", len(used), ports)
	}
	if got := counted(t, n, "busy"); got != uint64(busy) {
		t.Errorf("%d refusals were counted, want %d", got, busy)
	}
}
