package cpu

import (
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Program is the run time of a BPF program with what it calls, as the kernel counts it (bpf_prog_info.run_time_ns). The
// clock that counts it costs every run two readings, of which one falls into the time: about 20 ns.
type Program struct {
	prog  *ebpf.Program
	stats io.Closer
}

// NewProgram begins to count. Close ends it: counting slows down every BPF program of the machine.
func NewProgram(prog *ebpf.Program) (*Program, error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("count the run time of BPF programs: %w", err)
	}
	return &Program{prog, stats}, nil
}

// Close stops counting.
func (p *Program) Close() error { return p.stats.Close() }

// Read returns the time of all runs so far.
func (p *Program) Read() (time.Duration, error) {
	s, err := p.prog.Stats()
	if err != nil {
		return 0, fmt.Errorf("read the run time of %s: %w", p.prog, err)
	}
	return s.Runtime, nil
}

// PerRun measures f by one program's own run count.
func (p *Program) PerRun(f func() error) (time.Duration, error) {
	var before uint64
	return PerRequest(p, func() (uint64, error) {
		s, err := p.prog.Stats()
		if err != nil {
			return 0, err
		}
		before = s.RunCount
		if err := f(); err != nil {
			return 0, err
		}
		s, err = p.prog.Stats()
		return s.RunCount - before, err
	})
}
