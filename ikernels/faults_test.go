package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem faulty faulty testdata/faulty.bpf.c

func init() { programs["faulty"] = loadFaulty } // for these tests alone

// fault waits until the ikernel's fault is told.
func fault(t *testing.T, k *Ikernel) (code uint32, text string) {
	t.Helper()
	fd, err := k.OpenFault()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds())); n != 1 {
		t.Fatalf("no fault is told: %v", err)
	}
	b := make([]byte, 1000)
	for range 2 { // it stays
		n, _, err := unix.Recvfrom(fd, b, unix.MSG_PEEK)
		if err != nil || n < 4 {
			t.Fatalf("got %d bytes of a fault, %v", n, err)
		}
		code, text = binary.NativeEndian.Uint32(b), string(b[4:n])
	}
	return code, text
}

// refused has an ikernel that faulted do nothing more, but tell its registers.
func refused(t *testing.T, k *Ikernel, conn *net.UDPConn, text string) {
	t.Helper()
	for what, err := range map[string]error{"attach": with(t, conn, k.Attach), "detach": with(t, conn, k.Detach)} {
		var f *Fault
		if !errors.As(err, &f) || !errors.Is(err, unix.EIO) || err.Error() != text {
			t.Errorf("%s: got %v, want %q", what, err, text)
		}
	}
	if _, err := k.OpenRings(Rings{Count: 1, Size: uint32(os.Getpagesize())}); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v for rings", err)
	}
	if _, err := k.OpenNotes(); !errors.Is(err, unix.EIO) {
		t.Errorf("got %v for notes", err)
	}
	for _, p := range k.host.places {
		if p != nil && p.ikernel == k {
			t.Error("a socket is still attached")
		}
	}
}

// TestFault has an ikernel fault in each of its ways. The socket gets the message at which it does so and all that come after, and an ikernel beside it goes on.
func TestFault(t *testing.T) {
	for message, want := range map[string]struct {
		code uint32
		name string
	}{
		"f": {uint32(echoIkFaultCodeIK_FAULT_OWN), "told to"},
		"v": {uint32(echoIkFaultCodeIK_FAULT_UNKNOWN_VERDICT), "unknown verdict"},
	} {
		t.Run(want.name, func(t *testing.T) {
			s := newSite(t)
			called := make(chan *Fault, 2)
			s.host.OnFault(func(f *Fault, _ Owner) { called <- f })
			k, other := s.create("faulty"), s.create("faulty")
			server, beside := s.listen("127.0.0.1:0"), s.listen("127.0.0.1:0")
			attach(t, k, server)
			attach(t, other, beside)
			client, neighbour := s.dial(server.LocalAddr().String()), s.dial(beside.LocalAddr().String())
			send(t, client, "a")
			expect(t, "client", client, "a")
			for _, m := range []string{message, "f", "b"} {
				send(t, client, m)
				expect(t, "server", server, m)
			}
			code, text := fault(t, k)
			if full := fmt.Sprintf("ikernel faulty has faulted: %s (fault %d): destroy it, and create another", want.name, want.code); code != want.code || text != full {
				t.Errorf("got fault %d, %q, want %d, %q", code, text, want.code, full)
			}
			refused(t, k, server, text)
			if f := <-called; f.Error() != text || len(called) > 0 {
				t.Errorf("the daemon learns of %v, and of %d more", f, len(called))
			}
			if r, err := transact(k, nil, named{"messages": 7}); err != nil || r["messages"] != 2 {
				t.Errorf("the registers are %v, %v", r, err)
			}
			send(t, client, "c")
			expect(t, "server", server, "c")
			send(t, neighbour, "d")
			expect(t, "neighbour", neighbour, "d")
			again := s.create("echo")
			attach(t, again, server)
			send(t, client, "e")
			expect(t, "client", client, "e")
		})
	}
}

// TestFaultUnnoticed has an ikernel fault whose event is lost. The application learns of it when it next asks.
func TestFaultUnnoticed(t *testing.T) {
	s := newSite(t)
	k, server := s.create("faulty"), s.listen("127.0.0.1:0")
	attach(t, k, server)
	if err := s.host.events.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.host.watched
	send(t, s.dial(server.LocalAddr().String()), "f")
	expect(t, "server", server, "f")
	if code, text := fault(t, k); code != uint32(echoIkFaultCodeIK_FAULT_OWN) {
		t.Errorf("got fault %d, %q", code, text)
	}
}

// TestFaultNone ends an ikernel without a fault: who waits for one learns that.
func TestFaultNone(t *testing.T) {
	k := newSite(t).create("echo")
	fd, err := k.OpenFault()
	if err != nil {
		t.Fatal(err)
	}
	own, err := dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(own)
	b := make([]byte, 10)
	if _, _, err := unix.Recvfrom(own, b, unix.MSG_PEEK); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("got %v", err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := unix.Recvfrom(own, b, unix.MSG_PEEK); n != 0 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
	if _, err := k.OpenFault(); !errors.Is(err, errDestroyed) {
		t.Errorf("got %v for an ikernel that is destroyed", err)
	}
}

// A load is datagrams that a socket gets without end, so that it never has more than it can keep.
type load struct {
	t        *testing.T
	k        *Ikernel
	client   *net.UDPConn
	sent     uint32
	received atomic.Uint32 // by the socket
}

// posted counts the messages in the ring.
func (l *load) posted() uint32 {
	counts, err := l.k.RingCounts()
	if err != nil {
		l.t.Error(err)
		return 0
	}
	return uint32(counts[0].Posted)
}

func (l *load) send(messages int) {
	const ahead = 100
	for range messages {
		for l.sent > ahead && l.sent-ahead > l.received.Load()+l.posted() && !l.t.Failed() {
			runtime.Gosched()
		}
		_, _ = l.client.Write(binary.NativeEndian.AppendUint32(nil, l.sent))
		l.sent++
	}
}

// receive takes messages from the socket until it has no more, and has each come once.
func (l *load) receive(server *net.UDPConn) {
	seen := map[uint32]bool{}
	for b := make([]byte, 10); ; l.received.Add(1) {
		n, err := server.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		i := binary.NativeEndian.Uint32(b)
		if err != nil || n != 4 || seen[i] {
			l.t.Errorf("got %d bytes, message %d, %v", n, i, err)
			return
		}
		seen[i] = true
	}
}

// TestFaultUnderLoad takes a ring from an ikernel that posts to it all the time. What is not in the ring is at the socket, each message once.
func TestFaultUnderLoad(t *testing.T) {
	const each = 1000 // messages before and after the fault
	s := newSite(t)
	k, server := s.create("steering"), s.listen("127.0.0.1:0")
	if _, err := k.OpenRings(Rings{Count: 1, Size: 1 << 24, Polled: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := transact(k, nil, named{"overflow": 1}); err != nil {
		t.Fatal(err)
	}
	attach(t, k, server)
	l := &load{t: t, k: k, client: s.dial(server.LocalAddr().String())}
	l.send(each)
	var all sync.WaitGroup
	all.Go(func() { l.receive(server) })
	faulted, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-faulted:
				l.send(each)
				return
			default:
				l.send(1)
			}
		}
	}()
	if err := k.coll.Maps["ik_rings"].Delete(uint32(0)); err != nil {
		t.Fatal(err)
	}
	if _, text := fault(t, k); !strings.Contains(text, "ring not found") {
		t.Errorf("the fault is %q", text)
	}
	close(faulted)
	<-done
	for deadline := time.Now().Add(patience); l.posted()+l.received.Load() < l.sent && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	_ = server.SetReadDeadline(time.Unix(1, 0))
	all.Wait()
	posted, received := l.posted(), l.received.Load()
	t.Logf("%d messages are in the ring, and %d came to the socket", posted, received)
	if posted == 0 || received < each || posted+received != l.sent {
		t.Errorf("%d messages are in the ring and %d came to the socket, of %d", posted, received, l.sent)
	}
}
