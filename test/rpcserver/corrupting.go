package rpcserver

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
)

// Corrupting starts a relay to the server that flips a bit in one of five headers.
func (s *Server) Corrupting() (*impair.Relay, error) {
	bad := impair.Faults{Seed: 4, Corrupt: 0.2, Span: api.RPCHeaderLen}
	return impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: s.Addr(), Up: bad, Down: bad})
}
