package lambdanic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// In mode stream, the failure of any packet is the answer, and the server may forget the message.
func TestFailureOfOnePacket(t *testing.T) {
	const reason = "not a whole pixel"
	for _, fault := range []rpcserver.Faults{{}, {Seed: 3, Drop: 0.1, Reorder: 0.2, Duplicate: 0.1}} {
		s := serve(t, "127.0.0.1:0", fault)
		for _, workload := range []uint32{greyStream, keepStream} {
			for _, failing := range []int{0, 1, 2, 40} {
				for _, text := range []string{"", reason} {
					w := workloads(7)[workload]
					w.Fail = func(offset int, _ []byte) (string, api.Status) {
						if offset == failing*api.RPCFragment {
							return text, api.StatusBadRequest
						}
						return "", api.StatusOK
					}
					s.Set(workload, w)
					checkFailure(t, s, workload, (failing+2)*api.RPCFragment-3, text)
				}
			}
		}
		if fault.Drop == 0 && !rpcserver.Every(time.Millisecond, patience, func() bool { return s.Records() == 0 }) {
			t.Errorf("%d messages are kept", s.Records())
		}
	}
}

func checkFailure(t *testing.T, s *rpcserver.Server, workload uint32, size int, reason string) {
	t.Helper()
	for _, c := range callers(t, s.Addr().String()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := c.call(ctx, lambdanic.Request{Workload: workload, Body: text(size)})
		cancel()
		if err != nil || r.Status != api.StatusBadRequest || r.Length != len(reason) {
			t.Fatalf("%s: %d bytes to workload %d: status %d, %d bytes, %v", c.name, size, workload, r.Status, r.Length, err)
		}
		if c.name != "stream" && string(r.Body) != reason { // its writer may have part of a reply
			t.Errorf("%s: %q", c.name, r.Body)
		}
	}
}

// A server that answers every packet and yet brings no call on does not keep calls alive.
func TestNoProgress(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go acknowledgeAll(server)
	for _, size := range []int{10, 10_000} {
		for _, c := range callers(t, server.LocalAddr().String(), lambdanic.WithTimeout(100*time.Millisecond)) {
			ctx, cancel := context.WithCancelCause(t.Context())
			hung := time.AfterFunc(patience, func() { cancel(errors.New("the call does not end")) })
			if _, err := c.call(ctx, lambdanic.Request{Workload: 1, Body: text(size)}); !errors.Is(err, lambdanic.ErrDeadlineExceeded) {
				t.Errorf("%s: %d bytes: %v", c.name, size, err)
			}
			hung.Stop()
			cancel(nil)
		}
	}
}

// acknowledgeAll acknowledges every packet of every request, and answers none.
func acknowledgeAll(server *net.UDPConn) {
	buf := make([]byte, 2048)
	for {
		n, peer, err := server.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		h, _, err := api.ParsePacket(buf[:n])
		if err != nil || h.Type != api.TypeRequest {
			continue
		}
		h.Type, h.Length = api.TypeAck, 8
		_, _ = server.WriteToUDPAddrPort(binary.BigEndian.AppendUint64(h.Append(nil), 1<<min(h.Count, 63)-1), peer)
	}
}
