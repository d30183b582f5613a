package backend

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Shares is the number of shares that the keys of a service's calls are divided into (LN_SHARES in bpf/layout.h).
const Shares = 512

// Shares says which server has each share of the keys. It is weighted rendezvous hashing (Thaler, Ravishankar, 1998; Schindelhauer,
// Schomaker, 2005): every server draws a number for every share, and the best one gets the share. So shares only move to a server
// that is added, and only from a server that is removed. Both targets get the same table.
func (s Service) Shares() (table [Shares]uint8) {
	for share := range table {
		best := math.Inf(-1)
		for i := range s.Servers {
			if score := s.score(i, share); score > best {
				best, table[share] = score, uint8(i)
			}
		}
	}
	return table
}

// score is -w/ln(u), where u is uniform on (0, 1) and w the server's weight: a server has the best score with a probability in
// proportion to its weight.
func (s Service) score(server, share int) float64 {
	weight := 1
	if len(s.Weights) > 0 {
		weight = s.Weights[server]
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint16([]byte(s.Servers[server].String()), uint16(share)))
	u := (float64(binary.BigEndian.Uint64(sum[:])>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}
