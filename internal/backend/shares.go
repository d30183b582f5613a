package backend

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Shares is the number of parts that the keys of a service's calls fall into (LN_SHARES in bpf/layout.h).
const Shares = 512

// Shares says which server has each part of the keys. It is weighted rendezvous hashing (Thaler, Ravishankar, 1998; Schindelhauer,
// Schomaker, 2005): every server draws a number for every part, and the best has it. So when a server comes, all that moves
// moves to it, and when one goes, all that moves was its own. Both targets are given the same table.
func (s Service) Shares() (table [Shares]uint8) {
	for part := range table {
		best := math.Inf(-1)
		for i := range s.Servers {
			if score := s.score(i, part); score > best {
				best, table[part] = score, uint8(i)
			}
		}
	}
	return table
}

// score is -w/ln(u), where u is uniform on (0, 1) and w the server's weight: the best of several is a server's with a
// probability in proportion to its weight.
func (s Service) score(server, part int) float64 {
	weight := 1
	if len(s.Weights) > 0 {
		weight = s.Weights[server]
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint16([]byte(s.Servers[server].String()), uint16(part)))
	u := (float64(binary.BigEndian.Uint64(sum[:])>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}
