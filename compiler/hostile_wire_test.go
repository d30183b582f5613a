package compiler_test

import (
	"bytes"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A wire is a client's socket.
type wire struct {
	conn     *net.UDPConn
	workload uint32
	next     uint64
}

func (h *neighbourhood) dial(t *testing.T, workload uint32) *wire {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(h.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{conn: conn, workload: workload, next: 1 << 32}
}

func (w *wire) send(t *testing.T, body []byte) uint64 {
	t.Helper()
	w.next++
	header := api.Header{
		Type: api.TypeRequest, Length: uint16(len(body)), Workload: w.workload, Request: w.next, Count: 1, MessageLen: uint32(len(body)),
	}
	packet := append(append(header.Append(nil), body...), make([]byte, 256)...)
	if _, err := w.conn.Write(packet); err != nil {
		t.Fatal(err)
	}
	return w.next
}

// receive returns the answer to a request, and skips what came before.
func (w *wire) receive(t *testing.T, request uint64) (api.Header, []byte) {
	t.Helper()
	buf := make([]byte, 2048)
	if err := w.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := w.conn.Read(buf)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		if header, body, err := api.ParsePacket(buf[:n]); err == nil && header.Request == request {
			return header, body
		}
	}
}

// Attacks and requests to the neighbour also come mixed over the wire, and the neighbour's are answered.
func TestHostileOnTheWire(t *testing.T) {
	h := openNeighbourhood(t)
	for _, name := range []string{
		"loop_while_1", "linear_sweep", "kernel_address", "record_all_ones", "payload_overwrites_headers", "headers_base", "service_lies",
		"recursion_endless", "map_update_request",
	} {
		t.Run(name, func(t *testing.T) {
			a, err := readHostile(t, filepath.Join(hostileDir, name+".c")).build(t)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.put(t, a, hostileID); err != nil {
				t.Fatal(err)
			}
			attacker, client := h.dial(t, hostileID), h.dial(t, neighbourID)
			for k := range 20 {
				attacker.send(t, []byte{byte(1 + k), 2, 3})
				h.served++
				header, answer := client.receive(t, client.send(t, nil))
				if want := h.answer(); header.Type != api.TypeResponse || !bytes.Equal(answer, want) {
					t.Fatalf("the neighbour answers %+v %x, want %x", header, answer, want)
				}
			}
			if header, out := attacker.receive(t, attacker.send(t, []byte{0, 2, 3})); header.Type != api.TypeResponse || !bytes.Equal(out, []byte{0, 2, 3}) {
				t.Errorf("afterwards: %+v %x", header, out)
			}
			if err := h.Remove(t.Context(), hostileID); err != nil {
				t.Error(err)
			}
			h.checkNeighbour(t)
		})
	}
}
