package gen

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/echo"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

func newGenerator(t *testing.T, p *link.Pair, o Options) *Generator {
	t.Helper()
	g, err := New(p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// newEchoed makes a generator whose requests are echoed. It counts by workload.
func newEchoed(t *testing.T) *Generator {
	t.Helper()
	p := linktest.New(t)
	a, err := echo.Attach(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return newGenerator(t, p, Options{ByWorkload: true})
}

// few is a load of fewer frames than any queue on their way holds, so that no frame is lost however busy the machine. A socket's buffer
// has room for some 45, of a page each.
var few = Load{Rate: 300, Duration: 100 * time.Millisecond}

// run applies a load, again where the machine was too busy to send anything, and waits for late replies.
func run(t *testing.T, g *Generator, l Load) Result {
	t.Helper()
	was := quiet
	quiet = time.Minute
	defer func() { quiet = was }()
	for {
		r, err := g.Run(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent > 0 {
			return r
		}
	}
}

func TestEchoAnswersAreCounted(t *testing.T) {
	g := newEchoed(t)
	load := few
	load.Requests = []Request{
		{Header: api.Header{Workload: 7}, Payload: []byte("seven")},
		{Header: api.Header{Workload: 8}, Payload: []byte("eight!!")},
	}
	r := run(t, g, load)
	if r.Delivered != r.Sent || r.Failures+r.Errors+r.Others != 0 {
		t.Errorf("echo of every request: got %+v", r)
	}
	seven, err := g.Workload(7)
	if err != nil {
		t.Fatal(err)
	}
	eight, err := g.Workload(8)
	if err != nil {
		t.Fatal(err)
	}
	if seven+eight != r.Delivered || seven-eight > 1 || r.Bytes != 5*seven+7*eight {
		t.Errorf("two workloads in turn: %d and %d of %+v", seven, eight, r)
	}
}

// A load under way changes to other requests, if there are as many of them.
func TestChange(t *testing.T) {
	g := newEchoed(t)
	load := few
	load.Requests = []Request{{Header: api.Header{Workload: 7}}, {Header: api.Header{Workload: 7}}}
	run(t, g, load)
	next := load
	next.Requests = []Request{{Header: api.Header{Workload: 8}}, {Header: api.Header{Workload: 9}}}
	ctx, cancel := context.WithCancel(t.Context())
	var changes errgroup.Group
	changes.Go(func() error { // all the time, as no test knows when a run begins
		for ctx.Err() == nil {
			if err := g.Change(next); err != nil {
				return err
			}
		}
		return nil
	})
	for n := uint64(0); n == 0; {
		run(t, g, load)
		var err error
		if n, err = g.Workload(9); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := changes.Wait(); err != nil {
		t.Error(err)
	}
	next.Requests = next.Requests[:1]
	if err := g.Change(next); err == nil || !strings.Contains(err.Error(), "as many requests") {
		t.Errorf("a change to fewer requests: %v", err)
	}
}

// The kernel's own UDP sockets judge the frames: they check every header and checksum.
func TestSocketsAcceptFrames(t *testing.T) {
	p := linktest.New(t)
	pass, err := p.PassPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	g := newGenerator(t, p, Options{})
	var conn net.PacketConn
	if err := p.In(func() (err error) {
		conn, err = net.ListenPacket("udp4", net.JoinHostPort(p.Peer.Addr.String(), "4370"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seen := map[uint64]string{}
	served := make(chan error, 1)
	go func() { served <- serve(conn, seen) }()
	load := few
	load.Room, load.Requests = 33, []Request{{Payload: []byte("odd")}, {Payload: []byte("even")}, {Payload: []byte("wrong")}}
	r := run(t, g, load)
	conn.Close()
	<-served
	if uint64(len(seen)) != r.Sent {
		t.Errorf("%d frames sent, %d different requests arrived at the socket", r.Sent, len(seen))
	}
	want := map[string]uint64{}
	for _, payload := range seen {
		want[payload]++
	}
	for payload, got := range map[string]uint64{"odd": r.Delivered, "even": r.Errors, "wrong": r.Others} {
		if got != want[payload] {
			t.Errorf("answers to %q: counted %d, sent %d", payload, got, want[payload])
		}
	}
}

// So do they with datagrams of any protocol, at several ports.
func TestSocketsAcceptDatagrams(t *testing.T) {
	p := linktest.New(t)
	pass, err := p.PassPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	g := newGenerator(t, p, Options{})
	load := few
	for i, payload := range []string{"odd", "even", "", strings.Repeat("long", 50)} {
		d := Datagram{Port: uint16(5683 + i), Payload: []byte(payload)}
		load.Others = append(load.Others, d)
		var conn net.PacketConn
		if err := p.In(func() (err error) {
			conn, err = net.ListenPacket("udp4", netip.AddrPortFrom(p.Peer.Addr, d.Port).String())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go answer(conn, payload)
	}
	if r := run(t, g, load); r.Others != r.Sent || r.Delivered+r.Failures+r.Errors != 0 {
		t.Errorf("datagrams that are all answered: %+v", r)
	}
}

// answer answers what is as it should be.
func answer(conn net.PacketConn, right string) {
	b := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		if string(b[:n]) == right {
			_, _ = conn.WriteTo([]byte("yes"), from)
		}
	}
}

// A change may bring longer datagrams where there is room.
func TestRoomForChange(t *testing.T) {
	g := newGenerator(t, linktest.New(t), Options{})
	load := few
	load.Others = []Datagram{{Port: 5683, Payload: []byte("short")}}
	for room, ok := range map[int]bool{0: false, 200: true} {
		load.Room = room
		if _, err := g.Run(t.Context(), load); err != nil {
			t.Fatal(err)
		}
		next := Load{Others: []Datagram{{Port: 5684, Payload: make([]byte, 200)}}, Room: room}
		if err := g.Change(next); (err == nil) != ok {
			t.Errorf("a change to longer ones with room for %d bytes: %v", room, err)
		}
	}
	for _, d := range [][]Datagram{nil, {{Payload: make([]byte, 1473)}}} {
		if _, err := g.Run(t.Context(), Load{Others: d}); err == nil {
			t.Errorf("a load of %d datagrams is offered", len(d))
		}
	}
}

// serve answers by what it is asked: with a response, an error, or bytes that are not λ-RPC.
func serve(conn net.PacketConn, seen map[uint64]string) error {
	b := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		h, payload, err := api.ParsePacket(b[:n])
		if err != nil || n != api.RPCHeaderLen+33 {
			continue
		}
		seen[h.Request] = string(payload)
		var answer []byte
		switch string(payload) {
		case "odd":
			h.Type = api.TypeResponse
			answer = append(h.Append(nil), payload...)
		case "even":
			h.Type, h.Length = api.TypeError, 0
			answer = h.Append(nil)
		case "wrong":
			answer = []byte("what?")
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			return err
		}
	}
}

// Go's runtime preempts goroutines by signals, also those that enter the system call which generates.
func TestPreemptionDoesNotEndALoad(t *testing.T) {
	p := linktest.New(t)
	a, err := echo.Attach(p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	g := newGenerator(t, p, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	signalled := make(chan error, 1)
	go func() { signalled <- preemptAll(ctx) }()
	_, err = g.Run(context.Background(), Load{Requests: []Request{{}}, Rate: 10_000})
	cancel()
	if err := errors.Join(err, <-signalled); err != nil { // a run that a signal ends is an error
		t.Fatal(err)
	}
}

// preemptAll sends every thread of this process the runtime's signal, again and again.
func preemptAll(ctx context.Context) error {
	for ctx.Err() == nil {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			tid, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			_ = unix.Tgkill(unix.Getpid(), tid, unix.SIGURG) // it may have ended
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}
