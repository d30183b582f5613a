package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/link"
)

// ClientCPU is the CPU that a client keeps to while latencies are measured. The server has one of its own, as it would on another
// machine: on one CPU, a mere thread switch wakes a sleeping server, unlike for requests from a network.
const ClientCPU = 0

// ServerCPU is the CPU that the server keeps to.
func ServerCPU() int { return runtime.NumCPU() - 1 }

// OnCPU runs f on a thread that keeps to one CPU.
func OnCPU(cpu int, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the CPUs of this thread: %w", err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	if err := pin(0, cpu); err != nil {
		return err
	}
	return f()
}

func pin(tid int, cpus ...int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("keep thread %d to CPUs %v: %w", tid, cpus, err)
	}
	return nil
}

// PinProcess keeps all threads of a process to some CPUs.
func PinProcess(pid int, cpus ...int) error {
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return fmt.Errorf("list the threads of process %d: %w", pid, err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		if err := pin(tid, cpus...); err != nil {
			return err
		}
	}
	return nil
}

// GeneratorCPUs are the sets of CPUs from which load is offered: one, which leaves the others to the server, and all.
func GeneratorCPUs() [][]int {
	sets := [][]int{{0}}
	if n := runtime.NumCPU(); n > 1 {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		sets = append(sets, all)
	}
	return sets
}

// ReceiveOn has each end of a pair receive in threads on one CPU, before whatever else runs there, as soft interrupts would: so what comes
// from other CPUs takes the time of this one. Of two ends on one CPU, one that is never done starves the other. stop ends it. Both ends must
// have an XDP program.
func ReceiveOn(p *link.Pair, host, peer int) (stop func() error, err error) {
	if err := p.SetThreaded(true); err != nil {
		return nil, err
	}
	stop = func() error { return p.SetThreaded(false) }
	on := func(cpu int) func(tid int) error {
		return func(tid int) error {
			if err := PutFirst(tid); err != nil {
				return err
			}
			return pin(tid, cpu)
		}
	}
	if err := errors.Join(eachReceiver(p.Host, on(host)), eachReceiver(p.Peer, on(peer))); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// PutFirst has a thread run before whatever else runs on its CPU.
func PutFirst(tid int) error {
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(tid, &first, 0); err != nil {
		return fmt.Errorf("put thread %d before others: %w", tid, err)
	}
	return nil
}

// eachReceiver calls f on each thread in which an end of a pair receives.
func eachReceiver(end link.End, f func(tid int) error) error {
	threads, err := cpu.NAPIThreads(end.Name)
	if err != nil {
		return err
	}
	for _, tid := range threads {
		if err := f(tid); err != nil {
			return err
		}
	}
	return nil
}
