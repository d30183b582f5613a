package othello

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// scrambled is a network whose messages come in any order.
type scrambled struct {
	messages []letter
}

type letter struct {
	to int
	Message
}

func (s *scrambled) Send(to int, m Message) { s.messages = append(s.messages, letter{to, m}) }

// search delivers messages in random order, and some twice if it is told to, until the root's value is there and no message is left.
func (s *scrambled) search(t *testing.T, r *rand.Rand, hosts int, b Board, depth int, twice bool) (result Result) {
	t.Helper()
	list := make([]*Host, hosts)
	for i := range list {
		list[i] = NewHost(i, hosts, s)
	}
	answers := 0
	s.Send(r.IntN(hosts), Message{Kind: Map, Most: uint8(depth), Search: 7, Host: uint16(hosts), Board: b})
	for len(s.messages) > 0 {
		i, last := r.IntN(len(s.messages)), len(s.messages)-1
		m := s.messages[i]
		s.messages[i] = s.messages[last]
		s.messages = s.messages[:last]
		if m.to == hosts {
			answers++
			result = Result{Value: m.Value, Best: int(m.Best), Nodes: m.Nodes}
			continue
		}
		if err := list[m.to].Deliver(m.Message); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if twice && m.Kind == Reduce {
			if err := list[m.to].Deliver(m.Message); !errors.Is(err, ErrMessage) {
				t.Fatalf("%+v was taken twice", m)
			}
		}
	}
	for _, h := range list {
		if h.Waiting() != 0 {
			t.Fatalf("%d nodes wait", h.Waiting())
		}
	}
	if answers != 1 {
		t.Fatalf("%d answers", answers)
	}
	return result
}

// In whatever order messages come, the result is that of minimax: value, move and number of positions.
func TestHostsInAnyOrder(t *testing.T) {
	r := seeded(t)
	for i := range 300 {
		b, depth := played(r, r.IntN(64)), i%4
		got := new(scrambled).search(t, r, 1+r.IntN(9), b, depth, i%2 == 0)
		if want := Minimax(b, depth); got != want {
			t.Fatalf("%+v, depth %d: got %+v, want %+v", b, depth, got, want)
		}
	}
}

func TestClusters(t *testing.T) {
	for name, make := range map[string]func(int) (*Cluster, error){"queues": NewLocal, "UDP": NewUDP} {
		t.Run(name, func(t *testing.T) {
			for _, hosts := range []int{1, 2, 7} {
				c, err := make(hosts)
				if err != nil {
					t.Fatal(err)
				}
				checkCluster(t, c, 40)
				if c.Refused() != 0 {
					t.Errorf("%d hosts refused %d messages", hosts, c.Refused())
				}
				c.Close()
			}
			for _, hosts := range []int{-1, 0, MaxHosts + 1} {
				if _, err := make(hosts); err == nil {
					t.Errorf("there are %d hosts", hosts)
				}
			}
		})
	}
}

func checkCluster(t *testing.T, c *Cluster, searches int) {
	t.Helper()
	r := seeded(t)
	for i := range searches {
		b, depth := played(r, r.IntN(64)), i%4
		got, err := c.Search(t.Context(), b, depth)
		if want := Minimax(b, depth); err != nil || got != want {
			t.Fatalf("%+v, depth %d: got %+v (%v), want %+v", b, depth, got, err, want)
		}
	}
}

// Datagrams are lost and doubled, acknowledgements among them.
func TestUDPWithLosses(t *testing.T) {
	var packets atomic.Uint64
	c, err := newUDP(3, func(write func([]byte, netip.AddrPort)) func([]byte, netip.AddrPort) {
		return func(packet []byte, to netip.AddrPort) {
			switch n := packets.Add(1); {
			case n%31 == 0:
			case n%5 == 0:
				write(packet, to)
				write(packet, to)
			default:
				write(packet, to)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkCluster(t, c, 8)
	if packets.Load() < 31 {
		t.Errorf("only %d packets, none was lost", packets.Load())
	}
}

// A stranger's datagrams and broken ones are counted, and change no result.
func TestUDPRefuses(t *testing.T) {
	var first atomic.Bool
	c, err := newUDP(2, func(write func([]byte, netip.AddrPort)) func([]byte, netip.AddrPort) {
		return func(packet []byte, to netip.AddrPort) {
			if first.CompareAndSwap(false, true) {
				stranger, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
				if err != nil {
					t.Error(err)
					return
				}
				defer stranger.Close()
				_, _ = stranger.Write(packet)
				for _, broken := range [][]byte{
					nil, packet[:headSize], packet[:headSize-1], packet[:len(packet)-1], append(packet[:len(packet):len(packet)], 0),
					appendHead(nil, acknowledged, 99)[:5], appendHead(nil, 3, 1), append([]byte{1}, packet[1:]...),
				} {
					write(broken, to)
				}
			}
			write(packet, to)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkCluster(t, c, 4)
	if got := c.Refused(); got != 9 {
		t.Errorf("%d datagrams were refused, not 9", got)
	}
}

func TestHostRefuses(t *testing.T) {
	network := new(scrambled)
	h := NewHost(0, 2, network)
	if err := h.Deliver(Message{Kind: Map, Most: 2, Search: 1, Host: 2, Board: Start}); err != nil {
		t.Fatal(err)
	}
	good := Message{Kind: Reduce, Child: 1, Best: None, Search: 1, Host: 0, Node: 0, Nodes: 1}
	for what, change := range map[string]func(*Message){
		"no child":       func(m *Message) { m.Child = 4 },
		"no node":        func(m *Message) { m.Node = 1 },
		"another search": func(m *Message) { m.Search = 2 },
		"another host":   func(m *Message) { m.Host = 1 },
		"no value":       func(m *Message) { m.Value = 20000 },
		"no kind":        func(m *Message) { m.Kind = 0 },
		"nobody waits":   func(m *Message) { *m = Message{Kind: Map, Host: 3} },
	} {
		m := good
		change(&m)
		if err := h.Deliver(m); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := h.Deliver(good); err != nil || h.Waiting() != 1 || len(network.messages) != 4 {
		t.Errorf("%v, %d wait, %d messages", err, h.Waiting(), len(network.messages))
	}
}

func TestClusterSearchEnds(t *testing.T) {
	c, err := NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if r, err := c.Search(ctx, Start, 30); !errors.Is(err, why) || r.Best != None {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := c.Search(t.Context(), Board{Own: 1, Opp: 1}, 1); !errors.Is(err, ErrMessage) {
		t.Errorf("two discs on a square: %v", err)
	}
}

func BenchmarkCluster(b *testing.B) {
	for name, make := range map[string]func(int) (*Cluster, error){"queues": NewLocal, "UDP": NewUDP} {
		b.Run(name, func(b *testing.B) {
			c, err := make(8)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			nodes := uint64(0)
			for range b.N {
				r, err := c.Search(b.Context(), Start, 5)
				if err != nil {
					b.Fatal(err)
				}
				nodes += r.Nodes
			}
			b.ReportMetric(float64(nodes)/b.Elapsed().Seconds()/1e6, "Mpositions/s")
		})
	}
}

// Whatever a peer sends, what is delivered is sound, and comes with an acknowledgement.
func FuzzDatagram(f *testing.F) {
	f.Add(aReduce.Append(aMap.Append(appendHead(nil, data, 1))))
	f.Add(appendHead(nil, acknowledged, 1))
	f.Add(appendHead(nil, data, 2))
	f.Fuzz(func(t *testing.T, packet []byte) {
		replies := 0
		e := &endpoint{box: newMailbox(), refused: func() {}, write: func([]byte, netip.AddrPort) { replies++ }}
		e.know(make([]netip.AddrPort, 2))
		taken := e.accept(1, packet)
		if len(e.box.messages) > 0 && (!taken || replies != 1) {
			t.Errorf("%x: %d messages, taken: %t, %d replies", packet, len(e.box.messages), taken, replies)
		}
		for _, m := range e.box.messages {
			if err := m.check(); err != nil {
				t.Errorf("%x: %v", packet, err)
			}
		}
	})
}
