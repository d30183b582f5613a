package fuzz

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// service is a memcached, on the host's end of the link, that loses its mind over keys which begin with "mutated".
type service struct {
	conn *net.UDPConn
	r    *rand.Rand
	said sync.Map // to the question for a key, the same each time
}

// reply is a datagram from the service, without the request ID that begins it.
type reply struct {
	total uint16 // datagrams that the service says there are
	text  string
}

const frameHeader = 8 // memcached's doc/protocol.txt, "UDP protocol"

func listen(t *testing.T, n *nic.NIC) *service {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: n.HostAddr().AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &service{conn: conn, r: seed.Rand(t)}
	go s.serve()
	return s
}

func (s *service) addr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// serve answers until its socket is closed.
func (s *service) serve() {
	buf := make([]byte, 2048)
	for {
		size, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		key, ok := strings.CutPrefix(string(buf[min(size, frameHeader):size]), "get ")
		if !ok {
			continue
		}
		key = strings.TrimSuffix(key, "\r\n")
		if _, err := s.conn.WriteToUDPAddrPort(append(buf[:2:2], s.answer(key)...), from); err != nil {
			return
		}
	}
}

// answer is the datagram behind the request ID, which stays: that of another request would be another's answer.
func (s *service) answer(key string) []byte {
	value := "value of " + key
	b := fmt.Appendf([]byte{0, 0, 0, 1, 0, 0}, "VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value)
	if !strings.HasPrefix(key, "mutated") {
		return b
	}
	if before, ok := s.said.Load(key); ok {
		return before.([]byte)
	}
	b = packets.Mutate(s.r, b)
	b = b[:min(len(b), 1400)] // in one frame
	s.said.Store(key, b)
	return b
}

func askService(t *testing.T, conn *net.UDPConn, i int) {
	key := fmt.Sprint("key", i)
	ask(t, conn, packets.RPC{Workload: "kv", Payload: key, Room: 400}, key+"=value of "+key)
}

// askMutated wants some answer, and in one that claims success no byte that the service did not say.
func (s *service) askMutated(t *testing.T, conn *net.UDPConn, i int) {
	key := fmt.Sprint("mutated", i)
	h, p, ok := exchange(t, conn, packets.RPC{Workload: "kv", Payload: key, Room: api.RPCMaxPayload})
	if !ok {
		return
	}
	b, _ := s.said.Load(key)
	said := reply{binary.BigEndian.Uint16(b.([]byte)[2:]), string(b.([]byte)[6:])}
	if h.Type != api.TypeResponse && h.Type != api.TypeError || h.Type == api.TypeResponse && said.total != 1 ||
		h.Type == api.TypeResponse && api.Status(h.Code) == api.StatusOK && !said.backs(string(p)) {
		t.Errorf("the service said %+q (of %d datagrams), got %+v %q", said.text, said.total, h, p)
	}
}

// backs says whether the service did say this: in one line, or as a value with its key. Line ends are taken on trust.
func (r reply) backs(answer string) bool {
	if strings.HasPrefix(r.text, "STORED\r\n") {
		return strings.HasPrefix(r.text, answer)
	}
	values := r.text[:max(0, len(r.text)-len("\r\nEND\r\n"))]
	for i := range answer {
		if answer[i] == '=' && strings.HasPrefix(values, "VALUE "+answer[:i]) && strings.HasSuffix(values, answer[i+1:]) {
			return true
		}
	}
	return false
}
