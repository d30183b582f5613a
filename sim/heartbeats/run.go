package heartbeats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/internal/orchestrator"
)

// migration is how many intervals one takes: 100 ms. The paper has tens to hundreds of milliseconds (section 5.6).
const migration = 2

// Outcome is what a fleet's heartbeats took on one core, from their bytes to decisions. Those of odd intervals are taken in at once, as a
// burst; of even ones, each is timed.
type Outcome struct {
	Fleet
	Bursts    []time.Duration         // for all heartbeats of an interval and the search for silent NICs, ascending
	Heartbeat *hdrhistogram.Histogram // ns for one, with one reading of the clock
	Decision  *hdrhistogram.Histogram // of these, those that brought a decision
	Clock     time.Duration           // what a reading of the clock takes
	Counters  orchestrator.Counters   // the same for each seed, as all below
	Reasons   map[string]int          // of the decisions
	Digest    uint64                  // of all decisions and silent NICs, in their order
}

// Burst is the median of Bursts.
func (o *Outcome) Burst() time.Duration { return o.Bursts[len(o.Bursts)/2] }

// Rate is how many heartbeats a core takes in in a second, by the median burst.
func (o *Outcome) Rate() float64 { return float64(o.AllNICs()) / o.Burst().Seconds() }

// run is a fleet under way.
type run struct {
	*source
	controller *orchestrator.Controller
	decisions  []orchestrator.Decision // of this interval
	moving     [migration][]orchestrator.Decision
	silent     []uint32
	decoded    [256]orchestrator.Heartbeat
	took       []int64 // ns, of the heartbeats of this interval
	decided    []int   // those that brought decisions
	outcome    *Outcome
}

// Run simulates a fleet.
func (f Fleet) Run(ctx context.Context) (*Outcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	r, err := newRun(f)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC() // now, and not while times are taken
	digest := fnv.New64a()
	for at := 1; at <= f.Intervals; at++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.interval(at); err != nil {
			return nil, err
		}
		if err := binary.Write(digest, binary.BigEndian, r.silent); err != nil {
			return nil, fmt.Errorf("digest: %w", err)
		}
		for _, d := range r.decisions {
			r.outcome.Reasons[d.Reason.String()]++
			if err := binary.Write(digest, binary.BigEndian, d); err != nil {
				return nil, fmt.Errorf("digest: %w", err)
			}
		}
	}
	o := r.outcome
	o.Counters, o.Digest = r.controller.Counters(), digest.Sum64()
	slices.Sort(o.Bursts)
	return o, nil
}

func newRun(f Fleet) (*run, error) {
	n := f.AllNICs()
	nics := make([]orchestrator.NIC, n)
	for i := range nics {
		nics[i] = orchestrator.NIC{Host: uint32(i / f.NICs), Services: f.Lambdas}
	}
	c, err := orchestrator.New(orchestrator.Default(), nics)
	if err != nil {
		return nil, err
	}
	r := &run{
		source: newSource(f), controller: c, silent: make([]uint32, 0, n), took: make([]int64, n), decided: make([]int, 0, n),
		outcome: &Outcome{
			Fleet: f, Reasons: map[string]int{}, Heartbeat: hdrhistogram.New(1, int64(time.Second), 3), Decision: hdrhistogram.New(1, int64(time.Second), 3), Clock: clock(),
		},
	}
	r.decisions = make([]orchestrator.Decision, 0, n)
	for i := range r.moving {
		r.moving[i] = make([]orchestrator.Decision, 0, n)
	}
	for i := range uint32(n) {
		for l := range f.Lambdas {
			cpu, mean := r.lambda(i, l)
			if err := c.Place(i, uint16(l), cpu, mean); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// clock is the least time between two readings.
func clock() time.Duration {
	const readings = 1000
	least := time.Duration(math.MaxInt64)
	for range 10 {
		began := time.Now()
		for range readings {
			_ = time.Since(began)
		}
		least = min(least, time.Since(began)/readings)
	}
	return least
}

func (r *run) interval(at int) error {
	heartbeats, err := r.source.interval(at)
	if err != nil {
		return err
	}
	now := time.Duration(at) * orchestrator.Interval
	ended := r.moving[at%migration]
	for _, d := range ended {
		if err := r.controller.Done(d, true, now); err != nil {
			return err
		}
		r.nics[d.NIC].moved = d.Service
	}
	r.decisions, r.silent = r.decisions[:0], r.silent[:0]
	if at%2 == 1 {
		err = r.burst(heartbeats, now)
	} else {
		err = r.each(heartbeats, now)
	}
	r.moving[at%migration] = append(ended[:0], r.decisions...)
	return err
}

var errEncoded = errors.New("a heartbeat was encoded that cannot be decoded")

// burst takes all heartbeats in at once.
func (r *run) burst(heartbeats []byte, now time.Duration) error {
	began := time.Now()
	for len(heartbeats) > 0 {
		n := min(len(heartbeats)/orchestrator.Size, len(r.decoded))
		for i := range n {
			var err error
			if r.decoded[i], err = orchestrator.Decode(heartbeats[i*orchestrator.Size:][:orchestrator.Size]); err != nil {
				return errEncoded
			}
		}
		r.decisions = r.controller.ObserveAll(r.decoded[:n], now, r.decisions)
		heartbeats = heartbeats[n*orchestrator.Size:]
	}
	r.silent = r.controller.Tick(now, r.silent)
	r.outcome.Bursts = append(r.outcome.Bursts, time.Since(began))
	return nil
}

// each takes heartbeats in and times each, with one reading of the clock between two.
func (r *run) each(heartbeats []byte, now time.Duration) error {
	n := len(heartbeats) / orchestrator.Size
	r.decided = r.decided[:0]
	began := time.Now()
	last := time.Duration(0)
	for i := range n {
		h, err := orchestrator.Decode(heartbeats[i*orchestrator.Size:][:orchestrator.Size])
		if err != nil {
			return errEncoded
		}
		if d, ok := r.controller.Observe(h, now); ok {
			r.decisions = append(r.decisions, d)
			r.decided = append(r.decided, i)
		}
		t := time.Since(began)
		r.took[i] = int64(t - last)
		last = t
	}
	r.silent = r.controller.Tick(now, r.silent)
	for _, ns := range r.took[:n] {
		record(r.outcome.Heartbeat, ns)
	}
	for _, i := range r.decided {
		record(r.outcome.Decision, r.took[i])
	}
	return nil
}

// record counts what is beyond the histogram as its end.
func record(h *hdrhistogram.Histogram, ns int64) {
	_ = h.RecordValue(min(ns, h.HighestTrackableValue())) // fails beyond the end alone
}
