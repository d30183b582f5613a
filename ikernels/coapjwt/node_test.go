package coapjwt

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/udp/coder"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/counters"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// patience is how long an answer may take.
const patience = 20 * time.Second

// A site is a server for Node.js in a network namespace, and its client in another one.
type site struct {
	*bench
	names  [2]string // of the namespaces: the server's, the client's
	server netip.AddrPort
	in     io.Writer
	out    *bufio.Scanner
	guard  *Guard
	next   uint16 // the next message's ID
}

// newSite starts a server that accepts these keys. "*" is all addresses, of IPv6 and IPv4.
func newSite(t *testing.T, listens string, keys int) *site {
	t.Helper()
	if out, err := exec.Command("make", "-C", "testdata/node").CombinedOutput(); err != nil {
		t.Fatalf("install the server: %v\n%s", err, out)
	}
	s := &site{bench: newBench(t, 0)}
	for i := range s.names {
		s.names[i] = fmt.Sprintf("lncj%d-%d", os.Getpid(), i)
	}
	s.connect(isolated.Namespace(t, s.names[0]), isolated.Namespace(t, s.names[1]))
	s.server = netip.AddrPortFrom(server, port)
	args := []string{"testdata/node/server.js", listens, fmt.Sprint(port)}
	for range keys {
		s.secrets = append(s.secrets, s.letters(40))
		args = append(args, string(s.secrets[len(s.secrets)-1]))
	}
	cmd := exec.Command("node", args...)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, veth.InNamed(s.names[0], cmd.Start)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.in, s.out = in, bufio.NewScanner(out)
	if !s.out.Scan() {
		t.Fatal("the server does not start")
	}
	return s
}

// connect connects the namespaces by a pair of interfaces.
func (s *site) connect(here, there netns.NsHandle) {
	s.t.Helper()
	side := func(ns netns.NsHandle, name string, addrs ...string) error {
		return veth.In(ns, func() error {
			l, err := netlink.LinkByName(name)
			for _, a := range addrs {
				addr, parse := netlink.ParseAddr(a)
				err = errors.Join(err, parse)
				if err == nil {
					addr.Flags = 2 // IFA_F_NODAD: nobody else is there
					err = netlink.AddrAdd(l, addr)
				}
			}
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(l)
		})
	}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: "to-client"})
	pair.PeerName, pair.PeerNamespace = "to-server", netlink.NsFd(there)
	if err := errors.Join(
		veth.In(here, func() error { return netlink.LinkAdd(pair) }),
		side(here, "to-client", server.String()+"/24", "2001:db8::1/64"),
		side(there, "to-server", client.String()+"/24", "2001:db8::2/64"),
	); err != nil {
		s.t.Fatal(err)
	}
}

// key is one of the server's keys.
func (s *site) key(i int, id string) api.IkernelKey {
	s.t.Helper()
	return api.IkernelKey{ID: id, File: keyFile(s.t, s.secrets[i])}
}

// attach puts a guard in front of the server.
func (s *site) attach(mode xdp.Mode, keys ...api.IkernelKey) {
	s.t.Helper()
	if err := veth.InNamed(s.names[0], func() (err error) {
		s.guard, err = Attach(Options{Server: demux.Server{Port: port, Mode: mode}, Keys: keys})
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.detach)
}

func (s *site) detach() {
	if s.guard == nil {
		return
	}
	if err := s.guard.Close(); err != nil {
		s.t.Error(err)
	}
	s.guard = nil
}

// dial makes a client's socket.
func (s *site) dial() *net.UDPConn {
	s.t.Helper()
	var conn net.Conn
	if err := veth.InNamed(s.names[1], func() (err error) {
		conn, err = net.Dial("udp", s.server.String())
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// request is one that the server tells from all others.
func (s *site) request(payload []byte) []byte {
	s.t.Helper()
	s.next++
	return encode(s.t, message.Message{
		Type: message.Confirmable, Code: codes.POST, MessageID: int32(s.next), Token: []byte{byte(s.next >> 8), byte(s.next)}, Payload: payload,
	})
}

func (s *site) send(conn *net.UDPConn, message []byte) {
	s.t.Helper()
	if _, err := conn.Write(message); err != nil {
		s.t.Fatal(err)
	}
}

// receive waits for a response.
func (s *site) receive(conn *net.UDPConn) message.Message {
	s.t.Helper()
	buffer := make([]byte, 2048)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	n, err := conn.Read(buffer)
	if err != nil {
		s.t.Fatal(err)
	}
	m := message.Message{Options: make(message.Options, 0, 16)}
	if _, err := coder.DefaultCoder.Decode(buffer[:n], &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// asks has a request with a token be answered with its body, or with another code.
func (s *site) asks(conn *net.UDPConn, token string, want codes.Code) {
	s.t.Helper()
	body := fmt.Sprintf("body %d", s.next)
	s.send(conn, s.request(encodeCBOR(s.t, map[string]any{"token": token, "body": body})))
	m := s.receive(conn)
	var got string
	if m.Code != want || m.MessageID != int32(s.next) {
		s.t.Fatalf("message %d is answered %v with code %v and %q, want %v", s.next, m.MessageID, m.Code, m.Payload, want)
	}
	if want == codes.Changed && (cbor.Unmarshal(m.Payload, &got) != nil || got != body) {
		s.t.Fatalf("%q is answered with %q", body, m.Payload)
	}
}

// counts are the server's.
func (s *site) serverCounts() (c struct{ Datagrams, Requests, Accepted, Expired, Refused uint64 }) {
	s.t.Helper()
	_, err := io.WriteString(s.in, "\n")
	if err != nil || !s.out.Scan() || json.Unmarshal(s.out.Bytes(), &c) != nil {
		s.t.Fatalf("the server does not say what it has counted: %v %q", err, s.out.Bytes())
	}
	return c
}

// awaitDropped waits until the guard has dropped so many messages.
func (s *site) awaitDropped(want uint64) {
	s.t.Helper()
	got := uint64(0)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		counts, err := counters.Sum(s.guard.objects.CjCounters)
		if err != nil {
			s.t.Fatal(err)
		}
		got = 0
		for i, n := range counts {
			if v := GuardCjVerdict(i); v != GuardCjVerdictCJ_PASSED && v != GuardCjVerdictCJ_OTHER {
				got += n
			}
		}
		if got >= want {
			break
		}
	}
	if got != want {
		s.t.Fatalf("%d messages were dropped, want %d", got, want)
	}
}

// lasting signs a token that does not expire.
func (s *site) lasting(key int) string {
	s.t.Helper()
	return sign(s.t, s.secrets[key], jwt.MapClaims{"sub": "sensor", "exp": time.Now().Add(time.Hour).Unix()})
}

// TestNode has valid requests be answered, and invalid ones never reach the server.
func TestNode(t *testing.T) {
	for name, c := range map[string]struct {
		listens, asked string
		mode           xdp.Mode
	}{
		"IPv4, native":          {server.String(), server.String(), xdp.ModeNative},
		"IPv6, generic":         {"2001:db8::1", "2001:db8::1", xdp.ModeGeneric},
		"all, asked by IPv4":    {"::", server.String(), xdp.ModeAuto},
		"all, asked by IPv6":    {"::", "2001:db8::1", xdp.ModeAuto},
		"all of IPv4 addresses": {"0.0.0.0", server.String(), xdp.ModeAuto},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.listens, 2)
			s.server = netip.AddrPortFrom(netip.MustParseAddr(c.asked), port)
			s.attach(c.mode, s.key(0, ""), s.key(1, "second"))
			conn := s.dial()
			const each = 50
			invalid := s.invalid()
			for i := range each {
				s.asks(conn, s.lasting(i%2), codes.Changed)
				for _, message := range invalid {
					s.send(conn, message)
				}
			}
			s.awaitDropped(uint64(each * len(invalid)))
			s.send(conn, []byte{0x40, 0, 0x99, 0x99}) // a ping, which passes; this server takes it for a request
			if got := s.receive(conn); got.MessageID != 0x9999 {
				t.Errorf("a ping is answered by %v", got)
			}
			expired := sign(t, s.secrets[0], jwt.MapClaims{"exp": 1})
			s.asks(conn, expired, codes.Unauthorized)
			if got := s.serverCounts(); got.Datagrams != each+2 || got.Accepted != each || got.Expired != 1 || got.Refused != 0 {
				t.Errorf("the server has counted %+v, want %d that it accepts, a ping and one that has expired", got, each)
			}
			passed := s.guard.countOf(t, GuardCjVerdictCJ_PASSED)
			if passed != each+1 {
				t.Errorf("%d requests passed, want %d", passed, each+1)
			}
		})
	}
}

func (g *Guard) countOf(t *testing.T, v GuardCjVerdict) uint64 {
	t.Helper()
	counts, err := counters.Sum(g.objects.CjCounters)
	if err != nil {
		t.Fatal(err)
	}
	return counts[v]
}

// invalid are requests of which the server must see none.
func (s *site) invalid() [][]byte {
	s.t.Helper()
	good := s.lasting(0)
	parts := strings.Split(good, ".")
	var all [][]byte
	for _, token := range []string{
		sign(s.t, s.letters(40), claims),
		good[:len(good)-1],
		good + "=",
		parts[0] + "." + strings.Split(s.lasting(1), ".")[1] + "x." + parts[2],
		encoding64.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		signRaw(s.secrets[0], `{"alg":"HS512"}`, `{}`),
		signRaw(s.secrets[0], `{"alg":"HS256","alg":"HS256"}`, `{}`),
		"",
	} {
		all = append(all, s.request(pair(s.t, token)))
	}
	all = append(all, s.request(nil), s.request([]byte("{}")), s.request(encodeCBOR(s.t, map[string]any{"body": 1})), []byte{0x4f, 2}, []byte{0})
	return all
}

// TestWhileRunning attaches and detaches a guard again and again, while requests are answered one by one: none is lost.
func TestWhileRunning(t *testing.T) {
	s := newSite(t, "::", 1)
	done := make(chan struct{})
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		conn := s.dial()
		for {
			select {
			case <-done:
				return
			default:
				s.asks(conn, s.lasting(0), codes.Changed)
				asked++
			}
		}
	})
	key := s.key(0, "")
	for range 30 {
		s.attach(xdp.ModeGeneric, key)
		for s.guard.countOf(t, GuardCjVerdictCJ_PASSED) < 3 && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		s.detach()
	}
	close(done)
	asking.Wait()
	if got := s.serverCounts(); got.Accepted != uint64(asked) || asked < 90 {
		t.Errorf("the server has accepted %d of %d requests", got.Accepted, asked)
	}
}

// TestRotation changes the keys while requests are answered: what is signed by a key that stays is never dropped, and what is signed by a removed
// one is dropped from then on.
func TestRotation(t *testing.T) {
	const keys = 5
	s := newSite(t, "::", keys)
	s.attach(xdp.ModeAuto, s.key(0, "key-0"))
	conn := s.dial()
	dropped := uint64(0)
	for i := 1; i < keys; i++ {
		former, added := s.key(i-1, fmt.Sprintf("key-%d", i-1)), s.key(i, fmt.Sprintf("key-%d", i))
		s.send(conn, s.request(pair(t, s.lasting(i))))
		dropped++
		s.awaitDropped(dropped)
		stop := make(chan struct{})
		var changing sync.WaitGroup
		changing.Go(func() { // both orders, so that the former key is now first and now second
			for both := []api.IkernelKey{former, added}; ; slices.Reverse(both) {
				s.setGuardKeys(both...)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		for range 50 {
			s.asks(conn, s.lasting(i-1), codes.Changed)
		}
		close(stop)
		changing.Wait()
		s.asks(conn, s.lasting(i), codes.Changed)
		s.setGuardKeys(added)
		s.send(conn, s.request(pair(t, s.lasting(i-1))))
		dropped++
		s.awaitDropped(dropped)
		s.asks(conn, s.lasting(i), codes.Changed)
	}
	if got := s.serverCounts(); got.Datagrams != got.Accepted || got.Accepted != (keys-1)*52 {
		t.Errorf("the server has counted %+v", got)
	}
}

func (s *site) setGuardKeys(keys ...api.IkernelKey) {
	s.t.Helper()
	if _, err := s.guard.SetKeys(keys); err != nil {
		s.t.Error(err)
	}
}

// TestNoServer has nothing be attached where no server listens.
func TestNoServer(t *testing.T) {
	b := newBench(t, 0)
	name := fmt.Sprintf("lncj%d", os.Getpid())
	isolated.Namespace(t, name)
	err := veth.InNamed(name, func() error {
		_, err := Attach(Options{Server: demux.Server{Port: port}, Keys: []api.IkernelKey{b.newKey("")}})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "no server listens by UDP at port 5683") {
		t.Errorf("got %v", err)
	}
}
