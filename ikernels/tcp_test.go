package ikernels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/veth"
)

// listenTCP makes a server's socket of plain TCP.
func (s *site) listenTCP(address string) *net.TCPListener {
	s.t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	var l net.Listener
	s.in(func() (err error) {
		l, err = config.Listen(context.Background(), "tcp", address)
		return err
	})
	s.t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// greet connects a client, which gets a byte from the server first. So the server's kernel has seen that the client has its answer.
func (s *site) greet(l *net.TCPListener) (server, client *net.TCPConn, err error) {
	err = veth.InNamed(s.name, func() error {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), patience)
		if err == nil {
			client = conn.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if server, err = l.AcceptTCP(); err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	if s.each != nil {
		attach(s.t, s.each, server)
	}
	for _, c := range []*net.TCPConn{server, client} {
		_ = c.SetDeadline(time.Now().Add(5 * patience))
	}
	if _, err = server.Write([]byte{1}); err == nil {
		_, err = io.ReadFull(client, make([]byte, 1))
	}
	return server, client, err
}

// serve attaches a listening socket, or else has its connections attached, and says which.
func (s *site) serve(k *Ikernel, l *net.TCPListener) (listens bool) {
	s.t.Helper()
	s.each = nil
	err := with(s.t, l, k.Attach)
	if errors.Is(err, unix.EOPNOTSUPP) && strings.Contains(err.Error(), "attach each after it is accepted") {
		s.each = k
	} else if err != nil {
		s.t.Fatal(err)
	}
	return s.each == nil
}

func (s *site) connect(l *net.TCPListener) (server, client *net.TCPConn) {
	s.t.Helper()
	server, client, err := s.greet(l)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// A sensor sends numbered integers: eight bytes of the number, and four of the integer. Those above limit are alerts.
type sensor struct {
	rnd    *rand.Rand
	whole  bool // sends no parts of messages
	values []int32
	sum    int64
	alerts int
}

const (
	sensorSize  = 12
	sensorLimit = 1 << 30 // a quarter of all are above it
)

func newSensor(seed uint64) *sensor {
	return &sensor{rnd: rand.New(rand.NewPCG(seed, 3)), whole: seed%2 == 0}
}

// measure makes the next messages.
func (s *sensor) measure(n int) (b []byte) {
	for range n {
		value := int32(s.rnd.Uint32())
		b = binary.BigEndian.AppendUint64(b, uint64(len(s.values)))
		b = binary.BigEndian.AppendUint32(b, uint32(value))
		s.values = append(s.values, value)
		s.sum += int64(value)
		if value > sensorLimit {
			s.alerts++
		}
	}
	return b
}

// check checks what a server has read: whole messages as they were sent and in order, among them all alerts from one on. It says how many are missing.
func (s *sensor) check(got []byte) (missing int, err error) {
	next := 0
	for m := range slices.Chunk(got, sensorSize) {
		if len(m) < sensorSize {
			return 0, fmt.Errorf("got %d bytes, which are no messages", len(got))
		}
		number := int(binary.BigEndian.Uint64(m))
		if number < next || number >= len(s.values) || int32(binary.BigEndian.Uint32(m[8:])) != s.values[number] {
			return 0, fmt.Errorf("got message %d after %d", number, next-1)
		}
		for ; next < number; next++ {
			if s.values[next] > sensorLimit {
				return 0, fmt.Errorf("alert %d is missing", next)
			}
			missing++
		}
		next = number + 1
	}
	for ; next < len(s.values); next++ {
		if s.values[next] > sensorLimit {
			return 0, fmt.Errorf("alert %d is missing", next)
		}
		missing++
	}
	return missing, nil
}

// sensing makes an ikernel for sensors.
func (s *site) sensing() *Ikernel {
	s.t.Helper()
	k := s.create("threshold")
	if _, err := transact(k, nil, named{"limit": sensorLimit, "offset": sensorSize - 4}); err != nil {
		s.t.Fatal(err)
	}
	return k
}

// expectRegisters compares the registers with what all sensors have sent.
func expectRegisters(t *testing.T, k *Ikernel, sensors ...*sensor) {
	t.Helper()
	var sum int64
	var count, alerts int
	for _, s := range sensors {
		sum, count, alerts = sum+s.sum, count+len(s.values), alerts+s.alerts
	}
	want := named{"limit": sensorLimit, "offset": sensorSize - 4, "sum": uint64(sum), "count": uint64(count), "alerts": uint64(alerts)}
	if r := registers(t, k); fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("the registers are %v, want %v", r, want)
	}
}

// expectEnd has the client end the stream, and checks what the server reads until then.
func (s *sensor) expectEnd(t *testing.T, server, client *net.TCPConn) (missing int) {
	t.Helper()
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(server)
	if err != nil {
		t.Fatal(err)
	}
	if missing, err = s.check(got); err != nil {
		t.Error(err)
	}
	return missing
}

func sendTCP(t *testing.T, client *net.TCPConn, b []byte) {
	t.Helper()
	if _, err := client.Write(b); err != nil {
		t.Fatal(err)
	}
}

// TestStreamDrops sends segments of one message each. The socket gets the alerts alone.
func TestStreamDrops(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			s := newSite(t)
			k, from := s.sensing(), newSensor(1)
			server, client := s.connect(s.listenTCP(address))
			attach(t, k, server)
			for range 500 {
				sendTCP(t, client, from.measure(1))
				awaitCount(t, k, len(from.values)) // so that the next one does not join it
			}
			if missing := from.expectEnd(t, server, client); missing != len(from.values)-from.alerts {
				t.Errorf("%d of %d messages were dropped, want %d", missing, len(from.values), len(from.values)-from.alerts)
			}
			expectRegisters(t, k, from)
		})
	}
}

// awaitCount waits until the ikernel has got as many messages.
func awaitCount(t *testing.T, k *Ikernel, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); registers(t, k)["count"] != uint64(want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the registers are %v, want a count of %d", registers(t, k), want)
		}
	}
}

// TestStreamOffsets cuts messages into two segments, and into three, at every offset. Each message is counted once, and the socket gets those that were cut.
func TestStreamOffsets(t *testing.T) {
	s := newSite(t)
	k, from := s.sensing(), newSensor(2)
	server, client := s.connect(s.listenTCP("127.0.0.1:0"))
	attach(t, k, server)
	for a := range 2*sensorSize + 1 {
		for b := a; b <= 2*sensorSize; b++ {
			m := from.measure(2)
			for _, part := range [][]byte{m[:a], m[a:b], m[b:]} {
				sendTCP(t, client, part)
			}
		}
	}
	from.expectEnd(t, server, client)
	expectRegisters(t, k, from)
}

// TestStreamEnd has a stream end with its first segment: messages are counted from its first byte.
func TestStreamEnd(t *testing.T) {
	s := newSite(t)
	k, l, all := s.sensing(), s.listenTCP("127.0.0.1:0"), []*sensor(nil)
	for n := range 4 {
		from := newSensor(uint64(5 + n))
		all = append(all, from)
		server, client := s.connect(l)
		attach(t, k, server)
		if err := with(t, client, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 1) }); err != nil {
			t.Fatal(err)
		}
		sendTCP(t, client, from.measure(n+1))
		from.expectEnd(t, server, client)
	}
	expectRegisters(t, k, all...)
}

// TestStreamLate attaches a connection of which the application has read a part of a message. Its end is an unfinished one, which the application gets.
func TestStreamLate(t *testing.T) {
	s := newSite(t)
	k, l, all := s.sensing(), s.listenTCP("127.0.0.1:0"), uint64(0)
	for before := range sensorSize + 1 {
		from := newSensor(3)
		server, client := s.connect(l)
		sent := from.measure(3)
		sendTCP(t, client, sent[:before])
		got := make([]byte, before/2)
		if _, err := io.ReadFull(server, got); err != nil {
			t.Fatal(err)
		}
		attach(t, k, server)
		sendTCP(t, client, sent[before:])
		sendTCP(t, client, sent[:5])
		if err := client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(server)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rest...)
		if n := len(got) - 5; n < 0 || string(got[n:]) != string(sent[:5]) {
			t.Fatalf("after %d bytes, the stream ends with %q", before, got)
		} else if _, err := from.check(got[:n]); err != nil {
			t.Errorf("after %d bytes: %v", before, err)
		}
		want := uint64(3)
		if before/2 > 0 {
			want = 2 // the ikernel has not seen the beginning of the first one
		}
		all += want
		if count := registers(t, k)["count"]; count != all {
			t.Errorf("after %d bytes: %d messages are counted, want %d", before, count, all)
		}
	}
}

// chat has a client send messages to a server, as converse does.
func (s *site) chat(l *net.TCPListener, from *sensor, messages int, between func()) (missing int, err error) {
	server, client, err := s.greet(l)
	if err != nil {
		return 0, err
	}
	return from.converse(server, client, messages, between)
}

// converse sends messages in pieces of any length, until the client ends its side. The server then answers how many bytes it got.
func (s *sensor) converse(server, client *net.TCPConn, messages int, between func()) (missing int, err error) {
	defer server.Close()
	defer client.Close()
	sent := make(chan error, 1)
	go func() { sent <- s.stream(client, messages, between) }()
	got, err := io.ReadAll(server)
	if err = errors.Join(err, <-sent); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprint(server, len(got)); err != nil {
		return 0, err
	}
	if err := server.CloseWrite(); err != nil {
		return 0, err
	}
	if told, err := io.ReadAll(client); err != nil || string(told) != fmt.Sprint(len(got)) {
		return 0, fmt.Errorf("the client gets %q, %w", told, err)
	}
	return s.check(got)
}

func (s *sensor) stream(client *net.TCPConn, messages int, between func()) error {
	for left := s.measure(messages); len(left) > 0; {
		n := 1 + s.rnd.IntN(min(len(left), 1<<s.rnd.IntN(13)))
		if s.whole {
			n = min(len(left), (n+sensorSize-1)/sensorSize*sensorSize)
		}
		if _, err := client.Write(left[:n]); err != nil {
			return err
		}
		left = left[n:]
		between()
	}
	return client.CloseWrite()
}

// TestStreamConnections has many connections come to a listening socket, with 100,000 messages in pieces of any length.
func TestStreamConnections(t *testing.T) {
	const connections, messages = 200, 500
	s := newSite(t)
	k, l := s.sensing(), s.listenTCP("127.0.0.1:0")
	listens := s.serve(k, l)
	sensors := make([]*sensor, connections)
	var all sync.WaitGroup
	var accept sync.Mutex
	turns := make(chan int, connections)
	for i := range connections {
		sensors[i] = newSensor(uint64(i))
		turns <- i
	}
	close(turns)
	var missing atomic.Int64
	for range 8 {
		all.Go(func() {
			for i := range turns {
				n, err := s.chatInTurn(&accept, l, sensors[i], messages)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
				}
				missing.Add(int64(n))
			}
		})
	}
	all.Wait()
	expectRegisters(t, k, sensors...)
	if missing.Load() == 0 {
		t.Error("no message was dropped")
	}
	t.Logf("%d of %d messages were dropped", missing.Load(), connections*messages)
	if listens {
		if err := with(t, l, k.Detach); err != nil {
			t.Fatal(err)
		}
	}
	s.each = nil
	if n, err := s.chat(l, newSensor(9), messages, func() {}); err != nil || n > 0 {
		t.Errorf("detached: %d messages are missing, %v", n, err)
	}
	expectRegisters(t, k, sensors...)
}

// chatInTurn is chat, where several connect to one listening socket at once.
func (s *site) chatInTurn(accept *sync.Mutex, l *net.TCPListener, from *sensor, messages int) (int, error) {
	accept.Lock()
	server, client, err := s.greet(l)
	accept.Unlock()
	if err != nil {
		return 0, err
	}
	return from.converse(server, client, messages, func() {})
}

// TestStreamUnderLoad attaches and detaches while messages come, and then ends the ikernel. The ikernel or the socket gets each of them, and the socket in order.
func TestStreamUnderLoad(t *testing.T) {
	for _, listening := range []bool{false, true} {
		t.Run(fmt.Sprintf("listening %v", listening), func(t *testing.T) {
			const messages = 20000
			s := newSite(t)
			k, l, from := s.sensing(), s.listenTCP("127.0.0.1:0"), newSensor(4)
			var socket syscall.Conn = l
			server, client, err := s.greet(l)
			if err != nil {
				t.Fatal(err)
			}
			if listening {
				server.Close()
				client.Close()
				if !s.serve(k, l) {
					t.Skip("the kernel lets no listening socket have an ikernel")
				}
				if server, client, err = s.greet(l); err != nil {
					t.Fatal(err)
				}
			} else {
				socket = server
				attach(t, k, server)
			}
			writes, attached := 0, true
			missing, err := from.converse(server, client, messages, func() {
				if writes++; writes%10 != 0 {
					return
				}
				change := k.Attach
				if attached {
					change = k.Detach
				}
				attached = !attached
				if err := with(t, socket, change); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Error(err)
			}
			r := registers(t, k)
			if r["count"] < uint64(missing) || r["count"] > messages || missing == 0 {
				t.Errorf("%d messages are missing, and the registers are %v", missing, r)
			}
		})
	}
}

// TestStreamCloses ends ikernels and sockets while messages come.
func TestStreamCloses(t *testing.T) {
	s := newSite(t)
	l := s.listenTCP("127.0.0.1:0")
	for round := range 5 {
		k := s.sensing()
		s.serve(k, l)
		from, writes := newSensor(uint64(round)), 0
		if _, err := s.chat(l, from, 500, func() {
			if writes++; writes == 3 {
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			}
		}); err != nil {
			t.Error(err)
		}
	}
	k := s.sensing()
	listens := s.serve(k, l)
	for range 20 { // the server, and then the client, goes in the middle
		server, client := s.connect(l)
		from := newSensor(5)
		sendTCP(t, client, from.measure(20)[:100])
		_ = server.SetLinger(0)
		server.Close()
		_, _ = client.Write(from.measure(20))
		server, client = s.connect(l)
		sendTCP(t, client, from.measure(20)[:100])
		_ = client.SetLinger(0)
		client.Close()
		if _, err := io.ReadAll(server); err == nil {
			t.Error("the server does not notice that the client is gone")
		}
		server.Close()
	}
	l.Close()
	other := s.listenTCP("127.0.0.1:0")
	if listens {
		attach(t, k, other)
	} else {
		s.connect(other)
	}
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if n := len(s.host.streams); n != 1 {
		t.Errorf("%d sockets have ikernels after the others have closed", n)
	}
}

// TestStreamForgotten closes a socket after its ikernel has ended, as the kernel may when an application is killed. Nobody asks the host for anything then.
func TestStreamForgotten(t *testing.T) {
	s := newSite(t)
	k := s.sensing()
	server, _ := s.connect(s.listenTCP("127.0.0.1:0"))
	attach(t, k, server)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	server.Close()
	known := func() int {
		s.host.mu.Lock()
		defer s.host.mu.Unlock()
		return len(s.host.streams)
	}
	for deadline := time.Now().Add(patience); known() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the host keeps a socket that is closed")
		}
	}
}

// TestStreamLoss loses packets, so that segments come again together with others. No byte reaches the socket twice.
func TestStreamLoss(t *testing.T) {
	s := newSite(t)
	if err := veth.InNamed(s.name, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: lo.Attrs().Index, Parent: netlink.HANDLE_ROOT}, netlink.NetemQdiscAttrs{Loss: 5}))
	}); err != nil {
		t.Skipf("loses no packets: %v: needs sch_netem", err)
	}
	k, l := s.sensing(), s.listenTCP("127.0.0.1:0")
	s.serve(k, l)
	from := newSensor(6)
	if _, err := s.chat(l, from, 3000, func() {}); err != nil {
		t.Error(err)
	}
	expectRegisters(t, k, from)
}

// TestStreamBlocks has a server whose connections block. It gets all messages, whether it waits before the first one comes or accepts after that.
func TestStreamBlocks(t *testing.T) {
	for _, first := range []string{"accepts", "sends"} {
		t.Run(first+" first", func(t *testing.T) {
			s := newSite(t)
			k, from := s.sensing(), newSensor(7)
			listener, address := s.listenBlocking()
			if err := k.Attach(listener); errors.Is(err, unix.EOPNOTSUPP) {
				return // as this kernel lets no listening socket have an ikernel
			} else if err != nil {
				t.Fatal(err)
			}
			var client net.Conn
			s.in(func() (err error) {
				client, err = net.Dial("tcp", address)
				return err
			})
			defer client.Close()
			message := from.measure(1)
			if first == "sends" {
				sendTCP(t, client.(*net.TCPConn), message)
			}
			server, _, err := unix.Accept(listener)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(server)
			var got []byte
			done := make(chan error)
			go func() { done <- readBlocking(server, &got) }()
			if first == "accepts" {
				sendTCP(t, client.(*net.TCPConn), message)
			}
			for range 300 {
				sendTCP(t, client.(*net.TCPConn), from.measure(1))
			}
			if err := client.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if missing, err := from.check(got); err != nil || missing > 0 {
				t.Errorf("%d messages are missing, %v", missing, err)
			}
			if first == "sends" {
				expectRegisters(t, k, from)
			}
		})
	}
}

// listenBlocking makes a socket that listens at 127.0.0.1, and blocks as its connections do.
func (s *site) listenBlocking() (fd int, address string) {
	s.t.Helper()
	s.in(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		s.t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		if err := unix.Listen(fd, 8); err != nil {
			return err
		}
		own, err := unix.Getsockname(fd)
		if err == nil {
			address = addrPort(own).String()
		}
		return err
	})
	return fd, address
}

// readBlocking reads until the stream ends.
func readBlocking(fd int, to *[]byte) error {
	b := make([]byte, 1000)
	for {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		*to = append(*to, b[:n]...)
	}
}

// TestStreamOverlap sends bytes again, together with those that follow, as TCP may after a loss. The ikernel and the socket get them once.
func TestStreamOverlap(t *testing.T) {
	s := newSite(t)
	k := s.create("threshold")
	if _, err := transact(k, nil, named{"limit": 1 << 63, "offset": sensorSize - 4}); err != nil {
		t.Fatal(err)
	}
	server, client := s.connect(s.listenTCP("127.0.0.1:0"))
	attach(t, k, server)
	from := newSensor(8)
	sent := from.measure(1000)
	first := 3*sensorSize + 5
	sendTCP(t, client, sent[:first])
	awaitCount(t, k, 3)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(server, got[:first]); err != nil {
		t.Fatal(err)
	}
	s.in(func() error { return again(client, 7, sent[first-7:]) })
	if _, err := io.ReadFull(server, got[first:]); err != nil {
		t.Fatal(err)
	}
	if missing, err := from.check(got); err != nil || missing > 0 {
		t.Errorf("%d messages are missing, %v", missing, err)
	}
	if r := registers(t, k); r["count"] != 1000 || r["sum"] != uint64(from.sum) {
		t.Errorf("the registers are %v", r)
	}
}

// again sends a segment that begins some bytes before the end of what the client has sent.
func again(client *net.TCPConn, before int, segment []byte) error {
	raw, err := client.SyscallConn()
	if err != nil {
		return err
	}
	var seq, ack int
	var failed error
	if err := raw.Control(func(fd uintptr) {
		seq, ack, failed = sequence(int(fd))
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	own, peer := client.LocalAddr().(*net.TCPAddr), client.RemoteAddr().(*net.TCPAddr)
	tcp := binary.BigEndian.AppendUint16(nil, uint16(own.Port))
	tcp = binary.BigEndian.AppendUint16(tcp, uint16(peer.Port))
	tcp = binary.BigEndian.AppendUint32(tcp, uint32(seq-before))
	tcp = binary.BigEndian.AppendUint32(tcp, uint32(ack))
	tcp = append(tcp, 5<<4, 0x18, 0xff, 0xff, 0, 0, 0, 0) // PSH and ACK
	tcp = append(tcp, segment...)
	pseudo := append(slices.Concat(own.IP.To4(), peer.IP.To4(), []byte{0, unix.IPPROTO_TCP}), byte(len(tcp)>>8), byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], checksum(append(pseudo, tcp...)))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, tcp, 0, &unix.SockaddrInet4{Addr: [4]byte(peer.IP.To4())})
}

// sequence tells the numbers of the bytes that a connection will send and get next.
func sequence(fd int) (send, receive int, err error) {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		return 0, 0, err
	}
	var numbers [2]int
	for i, queue := range []int{2, 1} { // TCP_SEND_QUEUE, TCP_RECV_QUEUE
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR_QUEUE, queue); err != nil {
			return 0, 0, err
		}
		if numbers[i], err = unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ); err != nil {
			return 0, 0, err
		}
	}
	return numbers[0], numbers[1], unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, -1) // without a probe
}

// checksum is that of the Internet (RFC 1071).
func checksum(b []byte) uint16 {
	var sum uint32
	for pair := range slices.Chunk(b, 2) {
		sum += uint32(pair[0]) << 8
		if len(pair) > 1 {
			sum += uint32(pair[1])
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// TestStreamFault has an ikernel fault in the middle of a segment that it drops: the socket gets all of it, and all that comes after.
func TestStreamFault(t *testing.T) {
	s := newSite(t)
	k := s.create("faulty")
	server, client := s.connect(s.listenTCP("127.0.0.1:0"))
	attach(t, k, server)
	if list, err := k.host.List(); err != nil || len(list) != 1 || len(list[0].Sockets) != 1 || list[0].Sockets[0].Protocol != "tcp" {
		t.Errorf("got %+v, %v: want one TCP socket", list, err)
	}
	expect := func(sent string) {
		t.Helper()
		sendTCP(t, client, []byte(sent))
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(server, got); err != nil || string(got) != sent {
			t.Fatalf("got %q, %v, want %q", got, err, sent)
		}
	}
	sendTCP(t, client, []byte("xxx"))
	expect("-")
	expect("xxfxx")
	if code, text := fault(t, k); code != uint32(echoIkFaultCodeIK_FAULT_OWN) || !strings.Contains(text, "told to") {
		t.Errorf("got fault %d: %s", code, text)
	}
	expect("xxx")
	if err := with(t, server, k.Attach); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v for a new attachment, want %v", err, unix.EIO)
	}
	if list, err := k.host.List(); err != nil || len(list[0].Sockets) != 0 || list[0].Fault == nil {
		t.Errorf("got %+v, %v: want no socket, and the fault", list, err)
	}
}

// TestStreamRefuses asks for what cannot be.
func TestStreamRefuses(t *testing.T) {
	s := newSite(t)
	k, l := s.sensing(), s.listenTCP("127.0.0.1:0")
	server, _ := s.connect(l)
	fresh, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fresh)
	multipath, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if err == nil {
		defer unix.Close(multipath)
	}
	for _, c := range []struct {
		want  string
		is    error
		skip  bool
		doing func() error
	}{
		{"takes datagrams only", unix.EOPNOTSUPP, false, func() error { return with(t, l, s.create("echo").Attach) }},
		{"is not connected", nil, false, func() error { return k.Attach(fresh) }},
		{"Multipath", unix.EOPNOTSUPP, err != nil, func() error { return k.Attach(multipath) }},
		{"not attached to this ikernel", nil, false, func() error { return with(t, server, k.Detach) }},
		{"the socket blocks", unix.EOPNOTSUPP, false, func() error {
			return with(t, server, func(fd int) error {
				if err := unix.SetNonblock(fd, false); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = unix.SetNonblock(fd, true) }()
				return k.Attach(fd)
			})
		}},
		{"has an ikernel", nil, false, func() error {
			attach(t, k, server)
			return with(t, server, k.Attach)
		}},
		{"has a filter", unix.EOPNOTSUPP, false, func() error {
			return with(t, l, func(fd int) error {
				all := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 16}}
				if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &all[0]}); err != nil {
					t.Fatal(err)
				}
				return k.Attach(fd)
			})
		}},
	} {
		if c.skip {
			continue
		}
		if err := c.doing(); err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
