package nanoservice

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/sim/random"
)

// Dispatch is how a host's NIC chooses the core for a message.
type Dispatch struct {
	Policy Policy
	N      int // JBSQ: how many messages a core may have
}

// Policy is a way to choose.
type Policy uint8

// The policies.
const (
	RSS        Policy = iota // by a hash of the flow, so that all messages of a flow go to one core
	Random                   // any core
	RoundRobin               // by turns
	JBSQ                     // join the bounded shortest queue (Kogias et al., R2P2, ATC 2019): the NIC keeps what no core has room for
	Central                  // the ideal: one queue, from which every idle core takes at once
)

var policies = []string{RSS: "rss", Random: "random", RoundRobin: "round-robin", JBSQ: "jbsq", Central: "central"}

// String is what ParseDispatch reads.
func (d Dispatch) String() string {
	if d.Policy == JBSQ {
		return fmt.Sprintf("jbsq:%d", d.N)
	}
	return policies[d.Policy]
}

// ParseDispatch reads a policy: rss, random, round-robin, central, or jbsq:N.
func ParseDispatch(s string) (d Dispatch, err error) {
	if n, ok := strings.CutPrefix(s, "jbsq:"); ok {
		d = Dispatch{Policy: JBSQ}
		if d.N, err = strconv.Atoi(n); err != nil || d.N < 1 || d.N > maxBound {
			return d, fmt.Errorf("dispatch %q: the bound is not between 1 and %d", s, maxBound)
		}
		return d, nil
	}
	for p, name := range policies {
		if s == name && Policy(p) != JBSQ {
			return Dispatch{Policy: Policy(p)}, nil
		}
	}
	return d, fmt.Errorf("dispatch %q: it has to be rss, random, round-robin, central or jbsq:N", s)
}

const maxBound = 1000

// atOnce is true where the choice does not depend on what the cores do.
func (d Dispatch) atOnce() bool { return d.Policy != JBSQ }

func (s *sim) choose(at int32, m message) int16 {
	n := s.cfg.Cores
	if n == 1 {
		return 0
	}
	switch s.cfg.Dispatch.Policy {
	case RSS:
		return int16(random.Mix(random.Golden+(uint64(uint32(m.flow))<<32|uint64(uint32(at)))) % uint64(n))
	case Random:
		return int16(s.r.IntN(n))
	case RoundRobin:
		h := &s.hosts[at]
		h.next = (h.next + 1) % n
		return int16(h.next)
	}
	return 0 // all cores have one queue
}
