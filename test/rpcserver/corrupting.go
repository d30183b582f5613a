package rpcserver

import (
	"net/netip"
	"sync/atomic"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
)

// Corrupting starts a relay to the server that flips a bit in one of five headers, and counts the packets to clients that are none of
// the protocol from then on.
func (s *Server) Corrupting() (*impair.Relay, *atomic.Uint64, error) {
	foreign := new(atomic.Uint64)
	bad := impair.Faults{Seed: 4, Corrupt: 0.2, Span: api.RPCHeaderLen}
	r, err := impair.Start(impair.Config{
		Listen: "127.0.0.1:0", Server: s.Addr(), Up: bad, Down: bad,
		Tap: func(to impair.Direction, _ netip.AddrPort, p []byte) {
			if h, _, _ := api.ParsePacket(p); to == impair.ToClient && (h.Magic != api.RPCMagic || h.Version != api.RPCVersion) {
				foreign.Add(1)
			}
		},
	})
	return r, foreign, err
}
