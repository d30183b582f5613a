package orchestrator

import (
	"errors"
	"time"
)

// naive decides as the package comment says, by scans over maps and lists.
type naive struct {
	config   Config
	now      time.Duration
	nics     map[uint32]*naiveNIC
	ticked   int64
	counters Counters
}

type naiveNIC struct {
	host     uint32
	services []naiveService
	heard    time.Duration
	sequence int64 // without wrap-around; -1: any
	starved  []bool
	moving   int // -1: none
	coolTill time.Duration
	silent   bool
}

type naiveService struct {
	cpu, average int
	gone         bool
}

func newNaive(config Config, nics []NIC) *naive {
	n := &naive{config: config, nics: map[uint32]*naiveNIC{}}
	for i, nic := range nics {
		n.nics[uint32(i)] = &naiveNIC{host: nic.Host, services: make([]naiveService, nic.Services), sequence: -1, moving: -1}
	}
	return n
}

func (n *naive) observe(h Heartbeat, now time.Duration) (d Decision, ok bool) {
	nic := n.nics[h.NIC]
	if nic == nil {
		n.counters.UnknownNICs++
		return d, false
	}
	if nic.sequence >= 0 {
		// The sequence number nearest to the last one.
		next := nic.sequence &^ 0xffff
		for _, candidate := range []int64{next - 0x10000, next, next + 0x10000} {
			if s := candidate + int64(h.Sequence); s-nic.sequence >= -0x8000 && s-nic.sequence < 0x8000 {
				next = s
				break
			}
		}
		switch {
		case next == nic.sequence:
			n.counters.Duplicates++
			return d, false
		case next < nic.sequence:
			n.counters.Late++
			return d, false
		}
		n.counters.Missing += uint64(next - nic.sequence - 1)
		nic.sequence = next
	} else {
		nic.sequence = int64(h.Sequence) + 0x10000
	}
	n.now = max(n.now, now)
	nic.heard = n.now
	n.counters.Heartbeats++
	if nic.silent {
		nic.silent = false
		n.counters.Back++
	}
	reason := Reason(0)
	if n.slow(nic, h) {
		reason = Overload
	}
	nic.starved = append(nic.starved, h.Queue >= n.config.Queue && h.Link <= n.config.Link)
	row := 0
	for i := len(nic.starved) - 1; i >= 0 && nic.starved[i]; i-- {
		row++
	}
	if row >= int(n.config.Row) {
		n.counters.Starved++
		reason = Starvation
	}
	if reason == 0 {
		return d, false
	}
	return n.decide(nic, h.NIC, reason)
}

func (n *naive) slow(nic *naiveNIC, h Heartbeat) bool {
	if h.Service == NoService {
		return false
	}
	if int(h.Service) >= len(nic.services) {
		n.counters.UnknownServices++
		return false
	}
	s := &nic.services[h.Service]
	if s.gone {
		n.counters.Migrated++
		return false
	}
	s.cpu = int(h.CPU)
	if h.Time == 0 {
		return false
	}
	before := s.average
	if before == 0 {
		s.average = 8 * int(h.Time)
		return false
	}
	s.average = before - before/8 + int(h.Time)
	if 8*int(h.Time)*100 > before*(100+int(n.config.Slower)) {
		n.counters.Overloaded++
		return true
	}
	return false
}

func (n *naive) decide(nic *naiveNIC, number uint32, reason Reason) (d Decision, ok bool) {
	if nic.moving >= 0 || n.now < nic.coolTill {
		n.counters.Held++
		return d, false
	}
	best := -1
	for i, s := range nic.services {
		if s.cpu > 0 && (best < 0 || s.cpu > nic.services[best].cpu) {
			best = i
		}
	}
	if best < 0 {
		n.counters.NoCandidates++
		return d, false
	}
	nic.moving = best
	n.counters.Decisions++
	return Decision{NIC: number, Host: nic.host, Service: uint16(best), Reason: reason}, true
}

func (n *naive) done(d Decision, succeeded bool, now time.Duration) error {
	nic := n.nics[d.NIC]
	if nic == nil || nic.moving != int(d.Service) {
		return errors.New("no such migration")
	}
	n.now = max(n.now, now)
	nic.moving, nic.starved, nic.coolTill = -1, nil, n.now+n.config.CoolDown
	if succeeded {
		nic.services[d.Service] = naiveService{gone: true}
	}
	return nil
}

func (n *naive) place(nic uint32, service, cpu uint16, mean uint32) error {
	s := n.nics[nic]
	if s == nil || int(service) >= len(s.services) || s.moving == int(service) || cpu > AllCPU || mean > MaxTime {
		return errors.New("no such place")
	}
	s.services[service] = naiveService{cpu: int(cpu), average: 8 * int(mean)}
	return nil
}

// tick goes through the intervals since the last tick, up to the present.
func (n *naive) tick(now time.Duration) (silent []uint32) {
	n.now = max(n.now, now)
	n.ticked = max(n.ticked, int64(n.now/Interval))
	for i := range uint32(len(n.nics)) {
		nic := n.nics[i]
		if !nic.silent && time.Duration(n.ticked)*Interval-nic.heard >= time.Duration(n.config.Silent)*Interval {
			nic.silent, nic.sequence, nic.starved = true, -1, nil
			n.counters.Silent++
			silent = append(silent, i)
		}
	}
	return silent
}
