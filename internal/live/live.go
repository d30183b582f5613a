// Package live runs XDP programs on frames that come from nowhere (BPF_PROG_TEST_RUN with live frames, Documentation/bpf/bpf_prog_run.rst): what they fill
// and return as XDP_TX goes out of an interface.
package live

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/testrun"
)

// MaxBatch is how many frames go out together at most: TEST_XDP_MAX_BATCH of net/bpf/test_run.c.
const MaxBatch = 256

// Frames are frames that a program gets.
type Frames struct {
	Program   *ebpf.Program
	Length    int    // of each. A page is recycled with the length and the bytes that its last user left: the program changes its length, and writes all of it
	Batch     int    // that go out together
	Interface int    // from which they seem to come, in the thread's network namespace
	Count     uint32 // With more than one, the kernel prepares for some 20 ms, and needs as long afterwards
}

// Do runs the program, until a signal ends the run or all frames are done.
func (f Frames) Do() error {
	frame := make([]byte, f.Length)
	ctx := struct{ data, dataEnd, dataMeta, ingress, rxQueue, egress uint32 }{
		dataEnd: uint32(len(frame)), ingress: uint32(f.Interface),
	}
	run := testrun.Run{
		InLen: uint32(len(frame)), In: unsafe.Pointer(&frame[0]), Repeat: f.Count,
		ContextLen: uint32(unsafe.Sizeof(ctx)), Context: unsafe.Pointer(&ctx), Flags: testrun.LiveFrames, Batch: uint32(f.Batch),
	}
	if err := run.Do(f.Program); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("generate live frames: %w", err)
	}
	return nil
}

// A Thread is one of the operating system, on which programs run.
type Thread struct {
	TID  int
	Done chan error // has what the thread's function returned
}

// Go runs f on a thread of its own, which ends with f.
func Go(f func() error) *Thread {
	t := &Thread{Done: make(chan error, 1)}
	tid := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, which f may have changed, ends here
		tid <- unix.Gettid()
		if err := blockPreemption(); err != nil {
			t.Done <- err
			return
		}
		t.Done <- f()
	}()
	t.TID = <-tid
	return t
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

// Interrupt ends the run that the thread is in. It does nothing if that has not begun, and so is to be repeated. The signal is one that Go's runtime takes and
// ignores.
func (t *Thread) Interrupt() { _ = unix.Tgkill(unix.Getpid(), t.TID, unix.SIGWINCH) }

// Stop interrupts the thread's runs until its function has returned.
func (t *Thread) Stop() error {
	for {
		select {
		case err := <-t.Done:
			return err
		case <-time.After(time.Millisecond):
			t.Interrupt()
		}
	}
}
