// Package cpu measures how much CPU time answering takes. docs/measuring.md says what each of its clocks covers.
package cpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
)

// Clock reads the CPU time that something has used so far.
type Clock interface {
	Read() (time.Duration, error)
}

// Sum is the time of several clocks together.
type Sum []Clock

// Read adds the clocks up.
func (s Sum) Read() (total time.Duration, err error) {
	for _, c := range s {
		d, err := c.Read()
		if err != nil {
			return 0, err
		}
		total += d
	}
	return total, nil
}

// PerRequest runs f, which says how many requests were answered, and returns what one of them cost on the clock.
func PerRequest(c Clock, f func() (requests uint64, err error)) (time.Duration, error) {
	before, err := c.Read()
	if err != nil {
		return 0, err
	}
	n, err := f()
	if err != nil {
		return 0, err
	}
	after, err := c.Read()
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, errors.New("no request was answered: there is no time per request")
	}
	return (after - before) / time.Duration(n), nil
}

// Process is the time of all threads of a process, in user space and in the kernel. It is the scheduler's own account, in
// nanoseconds; soft interrupts that run in the process's threads, as when it sends, are included.
type Process int

// Read sums over the threads that live now, so the process's threads must not come and go.
func (p Process) Read() (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", int(p)))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, path := range tasks {
		d, err := schedstat(path)
		if err != nil {
			return 0, err
		}
		total += d
	}
	if len(tasks) == 0 {
		return 0, fmt.Errorf("process %d: %w", int(p), os.ErrProcessDone)
	}
	return total, nil
}

// Thread is the time of one thread of this process, as Process counts it.
type Thread int

// Read returns the time of the thread, which must still be there.
func (t Thread) Read() (time.Duration, error) {
	return schedstat(fmt.Sprintf("/proc/self/task/%d/schedstat", int(t)))
}

// NAPI is the time of the kernel threads in which an interface of a threaded pair (link.Pair.SetThreaded) receives: the
// driver, the XDP program, or the network stack up to the socket's queue.
func NAPI(iface string) (Sum, error) {
	pids, err := NAPIThreads(iface)
	return times(pids), err
}

// NAPIThreads returns the process IDs of the threads whose time NAPI reads, at least one.
func NAPIThreads(iface string) (pids []int, err error) {
	pids, err = kernelThreads("napi/" + iface + "-")
	if err == nil && len(pids) == 0 {
		err = fmt.Errorf("interface %s does not receive in threads: make its pair threaded", iface)
	}
	return pids, err
}

// SoftInterrupts is the time of the threads that soft interrupts run in which are too many for those that they came upon.
func SoftInterrupts() (Sum, error) {
	pids, err := kernelThreads("ksoftirqd/")
	return times(pids), err
}

// QueueThread returns the process ID of the kernel thread that empties the queue of a cpumap, by the map's ID, for a CPU.
func QueueThread(id ebpf.MapID, cpu int) (pid int, err error) {
	name := fmt.Sprintf("cpumap/%d/map:%d", cpu, id)
	pids, err := kernelThreads(name + "\n")
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("find the thread %s: there are %d", name, len(pids))
	}
	return pids[0], nil
}

func times(pids []int) (threads Sum) {
	for _, pid := range pids {
		threads = append(threads, Process(pid))
	}
	return threads
}

// kernelThreads returns the process IDs of those whose line in /proc/PID/comm begins so.
func kernelThreads(prefix string) (pids []int, err error) {
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	for _, path := range comms {
		name, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if !strings.HasPrefix(string(name), prefix) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		if !exiting(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// exiting says whether a process is ending, as a pair's threads are for a moment after it stopped being threaded. The flag
// is PF_EXITING of linux/sched.h, in the ninth field of /proc/PID/stat (proc_pid_stat(5)).
func exiting(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 7 {
		return true
	}
	flags, err := strconv.ParseUint(fields[6], 10, 32)
	return err != nil || flags&0x4 != 0
}

// schedstat reads the time on a CPU out of /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst).
func schedstat(path string) (time.Duration, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return time.Duration(ns), nil
}
