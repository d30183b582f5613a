package gen

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/testrun"
)

var errEndedEarly = errors.New("the program that generates ended before its time")

const maxBatch = 256 // TEST_XDP_MAX_BATCH of net/bpf/test_run.c

// liveRun is a program that runs under BPF_PROG_TEST_RUN on live frames, bound to one CPU, until it is stopped.
type liveRun struct {
	tid  int
	done chan error
}

// startLive runs prog with frames of longest+1 bytes (gen.bpf.c takes away what its frame does not fill) that seem to come from an interface.
func startLive(prog *ebpf.Program, cpu, longest, batch, ifindex int) *liveRun {
	r := &liveRun{done: make(chan error, 1)}
	tid := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, bound to its CPU, ends here
		tid <- unix.Gettid()
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			r.done <- fmt.Errorf("bind to CPU %d: %w", cpu, err)
			return
		}
		if err := blockPreemption(); err != nil {
			r.done <- err
			return
		}
		r.done <- runLive(prog, make([]byte, longest+1), batch, ifindex)
	}()
	r.tid = <-tid
	return r
}

// blockPreemption keeps the signal from this thread by which Go's runtime preempts goroutines (runtime/signal_unix.go). It may
// come just after the system call began, and would end the run.
func blockPreemption() error {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		return fmt.Errorf("block signal %v: %w", unix.SIGURG, err)
	}
	return nil
}

// stop interrupts the run and waits for its end. The signal is one that Go's runtime takes and ignores; it is sent again
// because the first may come before the system call began. A run that ended by itself has not offered its load.
func (r *liveRun) stop() error {
	select {
	case err := <-r.done:
		return cmp.Or(err, errEndedEarly)
	default:
	}
	for {
		select {
		case err := <-r.done:
			return err
		case <-time.After(time.Millisecond):
			_ = unix.Tgkill(unix.Getpid(), r.tid, unix.SIGWINCH)
		}
	}
}

// runLive generates until a signal ends the run. It is not begun again then, as it takes 20 ms to set up.
func runLive(prog *ebpf.Program, frame []byte, batch, ifindex int) error {
	ctx := struct{ data, dataEnd, dataMeta, ingress, rxQueue, egress uint32 }{
		dataEnd: uint32(len(frame)), ingress: uint32(ifindex),
	}
	run := testrun.Run{
		InLen: uint32(len(frame)), In: unsafe.Pointer(&frame[0]), Repeat: math.MaxUint32,
		ContextLen: uint32(unsafe.Sizeof(ctx)), Context: unsafe.Pointer(&ctx), Flags: testrun.LiveFrames, Batch: uint32(batch),
	}
	if err := run.Do(prog); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("generate live frames: %w", err)
	}
	return nil
}
