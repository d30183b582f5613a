package memcached

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/mapped"
)

// observed is one server that an Observer observes: where it is, its guards, and what was counted of it.
type observed struct {
	observer *Observer
	secret   uint64
	key      ObserveMcServerKey
	number   uint64 // of struct mc_server
	known    bool   // to the programs
	guardMap *ebpf.Map
	guards   []atomic.Uint64
}

// allKeys is the guard of the writes that may change any key.
const allKeys = uint32(ObserveMcGuardLimitMC_GUARD_ALL)

// Counts say what was seen of a server.
type Counts struct {
	Changes    uint64            // commands that change one key
	ChangesAll uint64            // what may change any key: flush_all, and all that is read on a lost connection
	Found      uint64            // lost connections whose commands' boundaries became known again
	Lost       map[string]uint64 // connections whose commands' boundaries became unknown, by why
}

// Close ends the observation.
func (s *observed) Close() error {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	return s.observer.remove(s)
}

// errStuck says that some guards stay closed: a server has read writes by UDP, and ended before it executed them.
var errStuck = errors.New("memcached ended before it had executed what it read")

// tidy forgets the threads of servers that have ended.
func (s *observed) tidy() error {
	stuck, err := s.forget()
	maps.DeleteFunc(stuck, func(_ ObserveMcDatagramKey, c ObserveMcConnection) bool { return !isPending(&c) })
	for range stuckTries {
		if err != nil || len(stuck) == 0 {
			return err
		}
		time.Sleep(stuckPatience / stuckTries)
		var now map[ObserveMcDatagramKey]ObserveMcConnection
		now, err = s.forget()
		maps.DeleteFunc(stuck, func(k ObserveMcDatagramKey, c ObserveMcConnection) bool { return now[k] != c })
	}
	if err != nil || len(stuck) == 0 {
		return err
	}
	return errStuck
}

// A thread that has executed nothing of what it read for so long never will.
const (
	stuckPatience = time.Second
	stuckTries    = 20
)

func (s *observed) forget() (map[ObserveMcDatagramKey]ObserveMcConnection, error) {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	return s.observer.forget(&s.key, hasExecuted)
}

// makeGuards makes so many guards of keys, and that of all.
func (s *observed) makeGuards(n uint32) (err error) {
	spec, err := LoadObserve()
	if err != nil {
		return err
	}
	of := spec.Maps["mc_guards_of"].InnerMap
	of.MaxEntries = uint32(ObserveMcGuardLimitMC_GUARD_KEYS) + n
	if s.guardMap, err = ebpf.NewMap(of); err != nil {
		return kernel.Fails("has no map for guards", err)
	}
	s.guards, err = mapped.Array[atomic.Uint64](s.guardMap)
	return err
}

func (s *observed) freeGuards() error {
	err := mapped.Unmap(s.guards)
	s.guards = nil
	if s.guardMap != nil {
		err = errors.Join(err, s.guardMap.Close())
	}
	return err
}

// guardOf is the number of a key's guard (mc_guard_of in guard.h).
func (s *observed) guardOf(hash uint64) uint32 {
	keys := uint32(ObserveMcGuardLimitMC_GUARD_KEYS)
	return keys + uint32(hash&uint64(uint32(len(s.guards))-keys-1))
}

// guard is a guard's word, and whether no write is pending.
func (s *observed) guard(index uint32) (word uint64, free bool) {
	word = s.guards[index].Load()
	return word, word%uint64(ObserveMcGuardLimitMC_GUARD_PENDING) == 0
}

// hash is a key's hash (hash.h).
func (s *observed) hash(key []byte) uint64 {
	h := s.secret
	for _, c := range key {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Counts returns what was seen so far.
func (s *observed) Counts() (Counts, error) {
	var n ObserveMcPlace
	if err := s.observer.objects.McPlaces.Lookup(uint32(s.number%uint64(ObserveMcServerLimitMC_SERVERS)), &n); err != nil {
		return Counts{}, fmt.Errorf("read the observer's counters: %w", err)
	}
	c := Counts{
		Changes: n.Counts[ObserveMcCountMC_COUNT_CHANGES], ChangesAll: n.Counts[ObserveMcCountMC_COUNT_CHANGES_ALL],
		Found: n.Counts[ObserveMcCountMC_COUNT_FOUND], Lost: map[string]uint64{},
	}
	for why, lost := range n.Losses {
		c.Lost[lossNames[why]] = lost
	}
	return c, nil
}

// Losses is how many connections were lost, for any reason.
func (c Counts) Losses() (n uint64) {
	for _, lost := range c.Lost {
		n += lost
	}
	return n
}

// lossNames say why a connection was lost (enum mc_loss).
var lossNames = [ObserveMcLossMC_LOSS_MAX]string{"joined", "command", "response", "passed", "bytes"}
