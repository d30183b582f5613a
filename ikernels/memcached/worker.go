package memcached

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/counters"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// A worker keeps the cache's values: it fetches from the server those that GETs missed.
//
// It reads a key's guards before it asks. So whatever changes the key while the server answers changes the guard, and the value is never
// answered with.
type worker struct {
	observed  *observed
	nic       *GetObjects
	store     *store
	misses    *ringbuf.Reader
	namespace netns.NsHandle // the server's network namespace
	port      uint16
	listens   []netip.Addr // at which the server listened when the cache was attached
	log       *slog.Logger

	probe   *probe
	flushed uint64        // word of the guard of all keys when the server was asked whether it will flush
	flush   uint64        // CLOCK_MONOTONIC, in ns, at which the server will forget all values; 0: it will not
	reused  chan []uint32 // brings segments after a grace period; nil: none are waited for

	counted  time.Time // when GETs were counted last
	aged     uint64    // how many there were when the last period ended
	admitted uint32    // the threshold that the NIC program knows

	keys    [][]byte
	stamps  []stamp
	gathers bool              // as the NIC program knows it: keys gather, and the worker comes for them by itself
	settles bool              // keys gather no more, but one may have come just before, without waking the worker
	stale   map[uint64]uint64 // keys, by hash, whose values were given back, and then the words of their guards

	fetched, absent, unkept, returned, failed atomic.Uint64

	ails atomic.Pointer[error] // why it fetched no values when it last tried; nil: it did
	lost atomic.Pointer[error] // why it has ended
}

const (
	batch     = 256                    // keys that are fetched together, at most
	gathering = 10 * time.Millisecond  // for which keys gather; the ring's poller cuts off parts of a millisecond
	tick      = 100 * time.Millisecond // from one count of GETs to the next, about
	staleMax  = 1024                   // keys whose stale values are remembered
	pause     = 200 * time.Millisecond // before a server that is gone is asked again
)

// begin readies a worker that has a connection.
func (w *worker) begin(s *store) {
	w.store = s
	w.flushed = ^uint64(0) // no guard's word
	w.stale = map[uint64]uint64{}
}

// run fetches until the ring of misses is closed, or the cache has to be attached anew.
func (w *worker) run(ctx context.Context) {
	for w.gather() && w.lost.Load() == nil {
		w.age()
		w.reclaim()
		w.admit()
		ails := w.ails.Load()
		if len(w.keys) == 0 && ails == nil {
			continue
		}
		if err := w.fetch(); err != nil {
			w.failed.Add(1)
			w.ails.Store(&err)
			if ails == nil || (*ails).Error() != err.Error() {
				w.log.Warn("memcached-cache fetches no values", "error", err)
			}
			w.disconnect()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		w.ails.Store(nil)
	}
	if w.reused != nil {
		<-w.reused
	}
}

// connect connects to the server, if need be.
func (w *worker) connect() error {
	if w.probe != nil {
		return nil
	}
	var listens []netip.Addr
	err := veth.In(w.namespace, func() (err error) {
		w.probe, listens, err = inspect(w.port)
		return err
	})
	if err != nil {
		return err
	}
	// The server may be another one than before.
	if !slices.Equal(listens, w.listens) {
		return w.end(fmt.Errorf("memcached listens at %v, and listened at %v when the cache was attached", listens, w.listens))
	}
	err = w.observed.tidy()
	if errors.Is(err, errStuck) {
		return w.end(err)
	}
	return err
}

// end ends the worker.
func (w *worker) end(why error) error {
	w.lost.Store(&why)
	return why
}

func (w *worker) disconnect() {
	if w.probe != nil {
		_ = w.probe.close()
		w.probe = nil
	}
}

// gather waits for misses, for a tick at most, and takes those that there are. It returns false when the ring is closed.
//
// What is asked for most it takes at once, since each moment costs hits, and so it does with what comes after a pause. The rest it lets gather, since
// the server answers many keys together for little more than one.
func (w *worker) gather() bool {
	var record ringbuf.Record
	w.keys, w.stamps = w.keys[:0], w.stamps[:0]
	wait := tick
	if w.gathers || w.settles {
		wait = gathering
	}
	w.misses.SetDeadline(time.Now().Add(wait))
	for len(w.keys) < batch {
		err := w.misses.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return false
		}
		w.keys = append(w.keys, append([]byte(nil), record.RawSample...))
		w.misses.SetDeadline(time.Now())
	}
	w.settles = w.letGather(len(w.keys) > 0)
	return true
}

// letGather has the NIC program wake the worker for any key, or for those only that are asked for most. It says whether keys gathered until now.
func (w *worker) letGather(on bool) (ended bool) {
	if on == w.gathers {
		return false
	}
	if err := w.nic.McGathers.Set(on); err != nil {
		w.log.Warn("memcached-cache fetches keys late or one by one", "error", err)
		return false
	}
	w.gathers = on
	return !on
}

// age ages the store whenever a period has passed.
func (w *worker) age() {
	if time.Since(w.counted) < tick {
		return
	}
	w.counted = time.Now()
	n, err := counters.Sum(w.nic.McGetCounters)
	if err != nil {
		w.log.Warn("memcached-cache does not know how many GETs there were", "error", err)
		return
	}
	gets := n[GetMcGetCountMC_GET_HITS] + n[GetMcGetCountMC_GET_MISSES] + n[GetMcGetCountMC_GET_BESIDE]
	periods := (gets - w.aged) / w.store.sketch.period()
	w.aged += periods * w.store.sketch.period()
	for range min(periods, 8) { // of a byte nothing is left then
		w.store.age()
	}
}

// admit has the NIC program ask only for keys that are worth their memory.
func (w *worker) admit() {
	threshold := w.store.threshold()
	if threshold == w.admitted {
		return
	}
	if err := w.nic.McThreshold.Set(threshold); err != nil {
		w.log.Warn("memcached-cache fetches too many or too few keys", "error", err)
		return
	}
	w.admitted = threshold
}

// reclaim has segments emptied, and takes those back that no program reads any more.
func (w *worker) reclaim() {
	select {
	case segments := <-w.reused:
		w.store.free = append(w.store.free, segments...)
		w.reused = nil
	default:
	}
	if w.reused != nil || !w.store.clean() {
		return
	}
	segments, reused := w.store.emptied, make(chan []uint32, 1)
	w.store.emptied, w.reused = nil, reused
	go func() {
		if err := xdp.Grace(); err != nil {
			w.log.Error("memcached-cache loses memory", "error", err)
			segments = nil
		}
		reused <- segments
	}()
}

// fetch asks the server for the keys at hand, and keeps their values.
func (w *worker) fetch() error {
	if err := w.connect(); err != nil {
		return err
	}
	all, free := w.observed.guard(allKeys)
	if !free {
		return nil // those who miss the keys next will ask
	}
	asked := w.keys[:0]
	for _, key := range w.keys {
		hash := w.observed.hash(key)
		guard, free := w.observed.guard(w.observed.guardOf(hash))
		if left, ok := w.stale[hash]; free && !(ok && left == guard) {
			asked = append(asked, key)
			w.stamps = append(w.stamps, stamp{hash: hash, guard: guard, all: all})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if err := w.expectFlush(all); err != nil {
		return err
	}
	won := map[int]answer{}
	now := monotonic()
	if err := w.probe.get(asked, func(i int, a *answer) {
		if a.won {
			won[i] = *a
		} else {
			w.keep(a, w.stamps[i], now)
		}
	}); err != nil {
		return err
	}
	for i, a := range won {
		if err := w.giveBack(&a, w.stamps[i]); err != nil {
			return err
		}
	}
	return nil
}

// giveBack gives a stale value back, and leaves it alone until another client writes it. This is a write itself.
func (w *worker) giveBack(a *answer, s stamp) error {
	if err := w.probe.giveBack(a); err != nil {
		return err
	}
	w.returned.Add(1)
	if len(w.stale) >= staleMax {
		clear(w.stale)
	}
	w.stale[s.hash] = s.guard + 2*uint64(ObserveMcGuardLimitMC_GUARD_PENDING)
	return nil
}

// keep puts an answer into the store. It was asked for at the time now.
func (w *worker) keep(a *answer, s stamp, now uint64) {
	if !a.found {
		w.absent.Add(1)
		return
	}
	s.expires = w.flush
	if a.left >= 0 {
		// The last of these seconds has begun already.
		if end := now + uint64(max(0, a.left-1))*uint64(time.Second); w.flush == 0 || end < w.flush {
			s.expires = end
		}
	}
	if s.expires != 0 && s.expires <= now || !w.store.put(a.value, s) {
		w.unkept.Add(1)
		return
	}
	w.fetched.Add(1)
}

// expectFlush asks the server whether it will forget all values later, if a client can have said so since it was last asked.
func (w *worker) expectFlush(all uint64) error {
	now := monotonic()
	if all == w.flushed && (w.flush == 0 || now < w.flush) {
		return nil
	}
	left, err := w.probe.flushIn()
	if err != nil {
		return err
	}
	w.flushed, w.flush = all, 0
	if left > 0 {
		w.flush = now + uint64(left-1)*uint64(time.Second)
	}
	return nil
}

// current says whether an item may be answered with (mc_is_current in cache.h).
func (w *worker) current(i *GetMcItem) bool {
	guard, _ := w.observed.guard(w.observed.guardOf(i.Hash))
	all, _ := w.observed.guard(allKeys)
	return i.Guard == guard && i.All == all && (i.Expires == 0 || monotonic()>>expiresShift < uint64(i.Expires))
}

// monotonic is the time of CLOCK_MONOTONIC, in ns.
func monotonic() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails for unknown clocks only
	return uint64(t.Nano())
}
