// Package testrun makes the system call BPF_PROG_TEST_RUN. ebpf.Program.Run repeats a run that a signal interrupts, and keeps the
// profiler's signals away for that, by two more system calls. Neither is wanted where a signal should end a run, or where a run is one
// request among many.
package testrun

import (
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// LiveFrames has an XDP program's verdicts carried out (linux/bpf.h, BPF_F_TEST_XDP_LIVE_FRAMES).
const LiveFrames = 1 << 1

// Run has the call's arguments and results: its portion of union bpf_attr (linux/bpf.h).
type Run struct {
	program    uint32
	Verdict    uint32 // what the program returned last
	InLen      uint32 // bytes of the packet
	OutLen     uint32 // bytes of room for the packet as the program left it; after the run, its length
	In, Out    unsafe.Pointer
	Repeat     uint32
	_          uint32 // ns of a run, on average
	ContextLen uint32 // bytes of the context, a struct xdp_md
	_          uint32
	Context    unsafe.Pointer
	_          unsafe.Pointer
	Flags      uint32
	_          uint32
	Batch      uint32 // frames at once, with LiveFrames
	_          uint32
}

// Do runs the program. The error is the kernel's own.
func (r *Run) Do(p *ebpf.Program) error {
	r.program = uint32(p.FD())
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	return done(p, errno)
}

// DoBriefly does the same without telling Go's scheduler. If told, the scheduler gives the thread's goroutines to another thread when
// the call takes some 20 µs, whether it runs long or waits for a CPU. On a busy server that costs more than the runs
// themselves. If not told, it cannot begin a garbage collection during the run, so use this for runs that end within the 10 ms that Go
// lets a goroutine compute.
func (r *Run) DoBriefly(p *ebpf.Program) error {
	r.program = uint32(p.FD())
	_, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	return done(p, errno)
}

func done(p *ebpf.Program, errno unix.Errno) error {
	runtime.KeepAlive(p) // its descriptor stays open until here
	if errno != 0 {
		return errno
	}
	return nil
}
