package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
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
