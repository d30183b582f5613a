package roce

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api/roce"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/seed"
)

// A responder is the other end of a queue pair, as simple as it can be: memory, and the next PSN.
type responder struct {
	t    *testing.T
	conn *net.UDPConn
	addr netip.AddrPort
	link *impair.Link

	mu     sync.Mutex
	memory []byte
	psn    uint32
	at     int
	msn    uint32
	naked  bool
	imms   []uint32
	refuse roce.Syndrome // of the next WRITE
	mute   bool
}

var (
	here  = netip.MustParseAddr("127.4.79.1")
	there = netip.MustParseAddr("127.4.79.2")
)

const remoteVA = 0x10000

func newResponder(t *testing.T, psn uint32, size int, faults impair.Faults) *responder {
	t.Helper()
	e := Endpoint{addr: netip.AddrPortFrom(there, roce.Port)}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(e.addr))
	if err == nil {
		e.raw, err = conn.SyscallConn()
	}
	if err == nil {
		err = e.neverCut()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadBuffer(4 << 20)
	r := &responder{t: t, conn: conn, addr: e.addr, memory: make([]byte, size), psn: psn, link: impair.NewLink(faults, impair.ToClient)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
		r.link.Close()
	})
	return r
}

func (r *responder) serve() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		p, err := Parse(buf[:n])
		if err != nil || !checks(Path{From: from, To: r.addr}, buf[:n]) {
			continue // corrupted on its way
		}
		if syndrome, psn, ok := r.take(&p); ok {
			ack := Packet{Op: roce.OpAck, DestQP: 7, PSN: psn, Syndrome: syndrome, MSN: r.msn}
			r.link.Pass(Path{From: r.addr, To: from}.Seal(ack.Append(nil)), func(b []byte) { _, _ = r.conn.WriteToUDPAddrPort(b, from) })
		}
	}
}

// checks tries the identifications of a row of packets: a socket does not show them.
func checks(path Path, b []byte) bool {
	for ; path.ID < batchPackets; path.ID++ {
		if path.Check(b) {
			return true
		}
	}
	return false
}

// take says whether and what to answer.
func (r *responder) take(p *Packet) (roce.Syndrome, uint32, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mute {
		return 0, 0, false
	}
	switch diff := (p.PSN - r.psn) & roce.NumMask; {
	case diff >= roce.NumHalf:
		return roce.SyndromeAck, (r.psn - 1) & roce.NumMask, p.AckReq
	case diff > 0:
		naked := r.naked
		r.naked = true
		return roce.SyndromeSequence, r.psn, !naked && p.Service == roce.ServiceRC
	}
	if r.refuse != 0 {
		return r.refuse, p.PSN, true
	}
	r.naked = false
	r.psn = (r.psn + 1) & roce.NumMask
	if p.Op.HasRETH() {
		r.at = int(p.VA - remoteVA)
	}
	r.at += copy(r.memory[r.at:], p.Payload)
	if p.Op >= roce.OpWriteLast && p.Op <= roce.OpWriteOnlyImm {
		r.msn++
	}
	if p.Op.HasImm() {
		r.imms = append(r.imms, p.Imm)
	}
	return roce.SyndromeAck, p.PSN, p.AckReq && p.Service == roce.ServiceRC
}

func connect(t *testing.T, c Connection, faults impair.Faults) *QueuePair {
	t.Helper()
	e, err := Listen(here)
	if err != nil {
		t.Fatal(err)
	}
	link := impair.NewLink(faults, impair.ToServer)
	t.Cleanup(func() {
		e.Close()
		link.Close()
	})
	if faults != (impair.Faults{}) {
		e.Through = link.Pass
	}
	c.Remote, c.LocalQP, c.RemoteQP = there, 7, 9
	q, err := e.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Through a network that loses, repeats, reorders and corrupts, what was written is what is there, and every message with a number
// is told of once, in order. PSNs wrap on the way.
func TestWrite(t *testing.T) {
	faults := impair.Faults{Seed: 1, Drop: 0.02, Duplicate: 0.02, Reorder: 0.02, Corrupt: 0.01}
	for _, faults := range []impair.Faults{{}, faults} {
		r := seed.Rand(t)
		const psn = roce.NumMask - 100
		there := newResponder(t, psn, 1<<20, faults)
		q := connect(t, Connection{MTU: 1024, PSN: psn}, faults)
		want := make([]byte, len(there.memory))
		for i, n := range []int{0, 1, 3, 1023, 1024, 1025, 4096, 1<<20 - 5} {
			data, at := random(r, n), r.IntN(5)
			copy(want[at:], data)
			if err := q.WriteImm(t.Context(), Region{VA: remoteVA + uint64(at)}, data, uint32(i)); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			there.mu.Lock()
			same := bytes.Equal(there.memory, want)
			there.mu.Unlock()
			if !same {
				t.Fatalf("after %d bytes at %d the memory is wrong", n, at)
			}
		}
		there.mu.Lock()
		if !slices.Equal(there.imms, []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("told of %v", there.imms)
		}
		there.mu.Unlock()
		t.Logf("%+v", q.Stats())
		q.e.Close()
		there.conn.Close()
	}
}

func TestRefusals(t *testing.T) {
	there := newResponder(t, 0, 1024, impair.Faults{})
	q := connect(t, Connection{MTU: 256, Retries: 1}, impair.Faults{})
	if err := q.Write(t.Context(), Region{VA: remoteVA}, make([]byte, 600)); err != nil {
		t.Fatal(err)
	}
	there.mu.Lock()
	there.refuse = roce.SyndromeAccess
	there.mu.Unlock()
	var nak *NAKError
	if err := q.Write(t.Context(), Region{VA: remoteVA}, make([]byte, 600)); !errors.As(err, &nak) || nak.Syndrome != roce.SyndromeAccess {
		t.Errorf("refused: %v", err)
	}
	if err := q.Write(t.Context(), Region{VA: remoteVA}, nil); !errors.Is(err, ErrBroken) {
		t.Errorf("after that: %v", err)
	}
	there.mu.Lock()
	there.refuse, there.mute = 0, true
	there.mu.Unlock()
	q.Close()
	q, err := q.e.Connect(q.c)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Write(t.Context(), Region{VA: remoteVA}, nil); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("silence: %v", err)
	}
}

func TestConnections(t *testing.T) {
	e, err := Listen(here)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	good := Connection{Remote: there, LocalQP: 1, MTU: 256}
	if _, err := e.Connect(good); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]Connection{
		"number in use": good, "MTU": {Remote: there, LocalQP: 2, MTU: 1000}, "service": {Remote: there, LocalQP: 2, MTU: 256, Service: 0x40},
		"family": {Remote: netip.IPv6Loopback(), LocalQP: 2, MTU: 256},
	} {
		if _, err := e.Connect(c); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}
