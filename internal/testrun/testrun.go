// Package testrun makes the system call BPF_PROG_TEST_RUN. ebpf.Program.Run begins a run again that a signal interrupts, and keeps the
// profiler's signals away for that, by two more system calls. Neither is wanted where a signal is to end a run, or where a run is one
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

// Run is what the call takes and gives: the part of union bpf_attr that is its own (linux/bpf.h).
type Run struct {
	program    uint32
	Verdict    uint32 // what the program returned last
	InLen      uint32 // bytes of the packet
	OutLen     uint32 // bytes of room for the packet as the program left it; then, how long that is
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

// DoBriefly does the same without telling Go's scheduler. A scheduler that is told gives the thread's goroutines to another thread when
// the call takes some 20 µs, be it for a long run or for the wait for a CPU, and on a busy server that costs more than the runs
// themselves. One that is not told cannot begin a garbage collection during the run, so use this for runs that end within the 10 ms that Go
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
