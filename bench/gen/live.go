package gen

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/live"
)

var errEndedEarly = errors.New("the program that generates ended before its time")

// liveRun is a program that runs on live frames, bound to one CPU, until it is stopped.
type liveRun struct{ *live.Thread }

// startLive runs prog with frames of longest+1 bytes (gen.bpf.c takes away what its frame does not fill) that seem to come from an interface.
func startLive(prog *ebpf.Program, cpu, longest, batch, ifindex int) liveRun {
	return liveRun{live.Go(func() error {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("bind to CPU %d: %w", cpu, err)
		}
		// Once: it takes 20 ms to set up.
		return live.Frames{Program: prog, Length: longest + 1, Batch: batch, Interface: ifindex, Count: math.MaxUint32}.Do()
	})}
}

// stop ends the run. One that ended by itself has not offered its load.
func (r liveRun) stop() error {
	select {
	case err := <-r.Done:
		return cmp.Or(err, errEndedEarly)
	default:
		return r.Stop()
	}
}
