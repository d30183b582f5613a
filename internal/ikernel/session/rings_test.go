package session

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A steered server has an ikernel in front of its socket that hands messages over by rings.
type steered struct {
	t      testing.TB
	all    *lambdanic.Ikernels
	k      *lambdanic.Ikernel
	rings  []*lambdanic.Ring
	server *net.UDPConn
	dial   func() *net.UDPConn
	from   func(net.IP) *net.UDPConn // dials with an address
	sent   uint64
}

func steer(t testing.TB, ikernel string, o lambdanic.Rings, registers map[string]int64) *steered {
	t.Helper()
	s := &steered{t: t, all: open(t, serve(t))}
	ns := isolated.Namespace(t, fmt.Sprintf("lnring%d", os.Getpid()))
	in := func(f func() error) {
		t.Helper()
		if err := veth.In(ns, f); err != nil {
			t.Fatal(err)
		}
	}
	in(func() (err error) {
		s.server, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	t.Cleanup(func() { s.server.Close() })
	s.dial = func() *net.UDPConn { return s.from(nil) }
	s.from = func(ip net.IP) (conn *net.UDPConn) {
		in(func() (err error) {
			conn, err = net.DialUDP("udp", &net.UDPAddr{IP: ip}, s.server.LocalAddr().(*net.UDPAddr))
			return err
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	s.k = create(t, s.all, ikernel)
	if err := s.k.Write(registers); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.rings, err = s.k.OpenRings(o); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.rings {
		if err := r.SetReadDeadline(time.Now().Add(3 * patience)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.k.Attach(s.server); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *steered) send(conn *net.UDPConn, message []byte) {
	s.t.Helper()
	s.sent++
	if _, err := conn.Write(message); err != nil {
		s.t.Fatal(err)
	}
}

// settle waits until the ikernel has posted or refused all that is sent, and returns how many were posted and refused.
func (s *steered) settle() (posted, refused uint64) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		counts, err := s.k.RingCounts()
		if err != nil {
			s.t.Fatal(err)
		}
		posted, refused = 0, 0
		for _, c := range counts {
			posted, refused = posted+c.Posted, refused+c.Refused
		}
		if posted+refused == s.sent {
			return posted, refused
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d messages are posted and %d refused, of %d", posted, refused, s.sent)
		}
	}
}

// TestRingModel sends messages of random lengths and reads some, at random: a ring refuses those for which it has no room, and hands over all others, whole
// and in order, however it wraps.
func TestRingModel(t *testing.T) {
	const rounds = 300
	size := os.Getpagesize()
	s := steer(t, "steering", lambdanic.Rings{Count: 1, Size: size}, nil)
	ring, rnd := s.rings[0], rand.New(rand.NewPCG(1, uint64(size)))
	client := s.dial()
	from, to := client.LocalAddr().(*net.UDPAddr).AddrPort(), s.server.LocalAddr().(*net.UDPAddr).AddrPort()
	var unread [][]byte
	used, refused := 0, uint64(0)
	bytesOf := func(m []byte) int { return (8 + 48 + len(m) + 7) &^ 7 }
	send := func() {
		for range rnd.IntN(12) {
			m := make([]byte, rnd.IntN(1+rnd.IntN(size+100)))
			for i := range m {
				m[i] = byte(rnd.Uint32())
			}
			s.send(client, m)
			if used+bytesOf(m) >= size {
				refused++
				continue
			}
			used += bytesOf(m)
			unread = append(unread, m)
		}
	}
	read := func() {
		for range rnd.IntN(len(unread) + 1) {
			m, err := ring.Read()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Data, unread[0]) || m.From != from || m.To != to || m.Time <= 0 {
				t.Fatalf("got %d bytes from %s to %s at %s, want %d from %s to %s", len(m.Data), m.From, m.To, m.Time, len(unread[0]), from, to)
			}
			used -= bytesOf(unread[0])
			unread = unread[1:]
		}
		ring.Release()
	}
	isolated.Pin(t, 0)
	for range rounds {
		send()
		if _, got := s.settle(); got != refused {
			t.Fatalf("%d messages are refused, want %d", got, refused)
		}
		read()
	}
	if refused == 0 || s.sent == refused {
		t.Errorf("of %d messages %d were refused: the test shows nothing", s.sent, refused)
	}
}

// TestRingLong sends datagrams of up to as many bytes as one has by UDP.
func TestRingLong(t *testing.T) {
	s := steer(t, "steering", lambdanic.Rings{Count: 1, Size: 1 << 17}, nil)
	client, rnd := s.dial(), rand.New(rand.NewPCG(5, 6))
	lengths := []int{0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 65507}
	for range 200 {
		lengths = append(lengths, rnd.IntN(65508))
	}
	for _, n := range lengths {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(rnd.Uint32())
		}
		s.send(client, want)
		if m, err := s.rings[0].Read(); err != nil || !bytes.Equal(m.Data, want) {
			t.Fatalf("got %d bytes of %d, %v", len(m.Data), n, err)
		}
	}
}

// TestRingOverflow fills a ring. What it refuses goes to the socket, and nothing is lost.
func TestRingOverflow(t *testing.T) {
	const messages = 64
	s := steer(t, "steering", lambdanic.Rings{Count: 1, Size: os.Getpagesize()}, map[string]int64{"overflow": 1})
	client := s.dial()
	for i := range messages {
		s.send(client, bytes.Repeat([]byte{byte(i)}, 100))
	}
	posted, refused := s.settle()
	seen := map[byte]bool{}
	for range posted {
		m, err := s.rings[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Data[0]] = true
	}
	b := make([]byte, 200)
	for range refused {
		_ = s.server.SetReadDeadline(time.Now().Add(patience))
		if _, err := s.server.Read(b); err != nil {
			t.Fatal(err)
		}
		seen[b[0]] = true
	}
	if m, ok := s.rings[0].Poll(); ok {
		t.Errorf("the ring has %q too much", m.Data)
	}
	if len(seen) != messages || posted == 0 || refused == 0 {
		t.Errorf("%d of %d messages came: %d by the ring and %d by the socket", len(seen), messages, posted, refused)
	}
}

// TestRingWakes has a reader wait for messages, one by one and in bursts. Each wakes it.
func TestRingWakes(t *testing.T) {
	for _, c := range []struct{ messages, ahead int }{{3000, 1}, {20000, 2}, {20000, 100}} {
		t.Run(fmt.Sprintf("%d ahead", c.ahead), func(t *testing.T) {
			s := steer(t, "steering", lambdanic.Rings{Count: 1, Size: 1 << 16}, nil)
			client, may := s.dial(), make(chan bool, c.ahead)
			go func() {
				isolated.Pin(t, 1)
				for i := range c.messages {
					may <- true
					_, _ = client.Write(binary.BigEndian.AppendUint64(nil, uint64(i)))
				}
			}()
			for i := range c.messages {
				m, err := s.rings[0].Read()
				if err != nil {
					t.Fatalf("message %d: %v", i, err)
				}
				if got := binary.BigEndian.Uint64(m.Data); got != uint64(i) {
					t.Fatalf("got message %d, want %d", got, i)
				}
				<-may
			}
		})
	}
}

// TestRingCores sends from several cores by several sockets, each with a key of its own: all messages with a key come by one ring, in order.
func TestRingCores(t *testing.T) {
	const senders, messages, ahead = 8, 3000, 50
	for _, polled := range []bool{false, true} {
		t.Run(fmt.Sprintf("polled %v", polled), func(t *testing.T) {
			s := steer(t, "steering", lambdanic.Rings{Count: 3, Size: 1 << 16, Polled: polled}, map[string]int64{"offset": 2, "length": 4})
			var may [senders]chan bool
			for i := range may {
				may[i] = make(chan bool, ahead)
				client := s.dial()
				go func() {
					isolated.Pin(t, i)
					for n := range uint32(messages) {
						may[i] <- true
						m := binary.BigEndian.AppendUint32([]byte{0, 0, 'k', 'e', 'y', byte(i)}, n)
						_, _ = client.Write(m)
					}
				}()
			}
			var next [senders]uint32
			var by [senders]*lambdanic.Ring
			var mu sync.Mutex
			left := senders * messages
			take := func(r *lambdanic.Ring, m lambdanic.Message) {
				mu.Lock()
				defer mu.Unlock()
				i, n := m.Data[5], binary.BigEndian.Uint32(m.Data[6:])
				if n != next[i] || n > 0 && by[i] != r {
					t.Errorf("sender %d: got message %d, want %d", i, n, next[i])
				}
				next[i], by[i] = n+1, r
				if left--; left == 0 {
					for _, r := range s.rings {
						_ = r.SetReadDeadline(time.Unix(1, 0))
					}
				}
				<-may[i]
			}
			isDone := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return left == 0 || t.Failed()
			}
			var all sync.WaitGroup
			for _, r := range s.rings {
				all.Go(func() { drain(t, r, polled, take, isDone) })
			}
			all.Wait()
			if left != 0 {
				t.Errorf("%d messages are lost", left)
			}
		})
	}
}

// drain reads a ring until nothing more is to come.
func drain(t *testing.T, r *lambdanic.Ring, polled bool, take func(*lambdanic.Ring, lambdanic.Message), isDone func() bool) {
	for deadline := time.Now().Add(3 * patience); polled && !isDone(); {
		m, ok := r.Poll()
		switch {
		case ok:
			take(r, m)
		case time.Now().After(deadline):
			t.Error("messages are lost")
			return
		default:
			runtime.Gosched()
		}
	}
	for !polled {
		m, err := r.Read()
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			return
		}
		take(r, m)
	}
}

// TestRingAlerts has threshold send alerts.
func TestRingAlerts(t *testing.T) {
	s := steer(t, "threshold", lambdanic.Rings{Count: runtime.NumCPU(), Size: os.Getpagesize()}, map[string]int64{"limit": 10})
	client := s.dial()
	for _, v := range []int32{5, -7, 11, 10, 12} {
		s.send(client, binary.BigEndian.AppendUint32(nil, uint32(v)))
	}
	s.sent = 2 // those for which there are alerts
	s.settle()
	alerts := ""
	for len(s.rings) > 0 {
		m, ok := s.rings[0].Poll()
		if !ok {
			s.rings = s.rings[1:]
			continue
		}
		var a struct{ Value, Sum, Count int64 }
		if _, err := binary.Decode(m.Data, binary.NativeEndian, &a); err != nil {
			t.Fatal(err)
		}
		if m.From != client.LocalAddr().(*net.UDPAddr).AddrPort() {
			t.Errorf("the alert is for a message from %s", m.From)
		}
		alerts += fmt.Sprint(a)
	}
	if alerts != "{11 9 3}{12 31 5}" && alerts != "{12 31 5}{11 9 3}" { // by two CPUs
		t.Errorf("the alerts are %s", alerts)
	}
}

// TestRingAlertsOverflow has threshold send more alerts than a ring has room for. Of the others the messages come.
func TestRingAlertsOverflow(t *testing.T) {
	s := steer(t, "threshold", lambdanic.Rings{Count: 1, Size: os.Getpagesize()}, nil)
	client, room := s.dial(), (os.Getpagesize()-8)/(8+48+24)
	for range room + 9 {
		s.send(client, []byte{0, 0, 0, 1})
	}
	if posted, refused := s.settle(); posted != uint64(room) || refused != 9 {
		t.Errorf("%d alerts are posted and %d refused, want %d and 9", posted, refused, room)
	}
	for range 9 {
		_ = s.server.SetReadDeadline(time.Now().Add(patience))
		if n, err := s.server.Read(make([]byte, 10)); n != 4 || err != nil {
			t.Fatalf("the socket gets %d bytes, %v", n, err)
		}
	}
}

// TestRingEnds closes rings in each way that there is: a reader that waits is told so.
func TestRingEnds(t *testing.T) {
	for name, end := range map[string]func(*steered) error{
		"the ring":       func(s *steered) error { return s.rings[0].Close() },
		"the ikernel":    func(s *steered) error { return s.k.Destroy() },
		"the connection": func(s *steered) error { return s.all.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := steer(t, "steering", lambdanic.Rings{Count: 2, Size: 1 << 16}, nil)
			done := make(chan error)
			go func() {
				_, err := s.rings[0].Read()
				done <- err
			}()
			if err := end(s); err != nil {
				t.Error(err)
			}
			if err := <-done; !errors.Is(err, os.ErrClosed) {
				t.Errorf("got %v", err)
			}
			if _, ok := s.rings[0].Poll(); ok {
				t.Error("a ring that is closed has a message")
			}
			if err := s.rings[0].Close(); err != nil {
				t.Errorf("closed once more: %v", err)
			}
		})
	}
}

// TestRingDeadline waits for a message that does not come.
func TestRingDeadline(t *testing.T) {
	s := steer(t, "steering", lambdanic.Rings{Count: 1, Size: 1 << 16}, nil)
	if err := s.rings[0].SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.rings[0].Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestRefusesRings asks for rings that cannot be. Then there are those that can.
func TestRefusesRings(t *testing.T) {
	a := open(t, serve(t))
	k, page := create(t, a, "steering"), os.Getpagesize()
	for want, r := range map[string]lambdanic.Rings{
		"0 rings: ask for 1 to 128":      {Size: page},
		"129 rings: ask for 1 to 128":    {Count: 129, Size: page},
		"rings of -4096 bytes cannot be": {Count: 1, Size: -4096},
		"rings of 0 bytes: ask for a":    {Count: 1},
		"rings of 8 bytes: ask for a":    {Count: 1, Size: 8},
		"rings of 12288 bytes: ask for":  {Count: 1, Size: 12288},
		"rings of 134217728 bytes: ask":  {Count: 1, Size: 1 << 27},
		"ask for 1073741824 bytes":       {Count: 128, Size: 1 << 26},
	} {
		if _, err := k.OpenRings(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := create(t, a, "echo").OpenRings(lambdanic.Rings{Count: 1, Size: page}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("got %v for an ikernel without rings", err)
	}
	rings, err := k.OpenRings(lambdanic.Rings{Count: 128, Size: page, Polled: true})
	if err != nil || len(rings) != 128 {
		t.Fatalf("got %d rings, %v", len(rings), err)
	}
	if _, err := rings[0].Read(); err == nil || !strings.Contains(err.Error(), "polled") {
		t.Errorf("got %v for one who waits for a ring that is polled", err)
	}
	if _, err := k.OpenRings(lambdanic.Rings{Count: 1, Size: page}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v for more rings", err)
	}
	if counts, err := k.RingCounts(); err != nil || len(counts) != 128 {
		t.Errorf("got %d counts, %v", len(counts), err)
	}
}

// TestRingDeath kills an application of another user, which needs no privilege to use its rings. Nothing of them stays.
func TestRingDeath(t *testing.T) {
	if path := os.Getenv("LN_TEST_RINGS"); path != "" {
		openAsChild(path)
		return
	}
	path := serve(t)
	if err := errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestRingDeath$")
	child.Env = append(os.Environ(), "LN_TEST_RINGS="+path)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = child.Process.Kill()
	_ = child.Wait()
	ids := strings.Fields(line)
	if len(ids) != 2 {
		t.Fatalf("the application says %q", line)
	}
	for _, field := range ids {
		id, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		awaitNoMap(t, ebpf.MapID(id))
	}
}

// openAsChild opens two rings, prints the numbers of their maps, and waits for its death.
func openAsChild(path string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	a, err := lambdanic.OpenIkernels(path)
	fail(err)
	k, err := a.Create("steering")
	fail(err)
	rings, err := k.OpenRings(lambdanic.Rings{Count: 2, Size: os.Getpagesize()})
	fail(err)
	files, err := filepath.Glob("/proc/self/fdinfo/*")
	fail(err)
	for _, file := range files {
		info, _ := os.ReadFile(file)
		if _, id, ok := strings.Cut(string(info), "map_id:\t"); ok {
			id, _, _ = strings.Cut(id, "\n")
			fmt.Print(id, " ")
		}
	}
	fmt.Println()
	_, err = rings[0].Read()
	fail(err)
}

// awaitNoMap waits until there is no map of a number.
func awaitNoMap(t *testing.T, id ebpf.MapID) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = m.Close()
		if time.Now().After(deadline) {
			t.Fatalf("map %d stays", id)
		}
	}
}
