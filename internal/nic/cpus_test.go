package nic

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// onCPU runs f on a thread that stays on one CPU, where BPF_PROG_TEST_RUN then runs the NIC program.
func onCPU(t testing.TB, cpu int, f func()) {
	runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
	if stay(t, cpu) {
		f()
	}
}

// stay has the thread, to which its goroutine is locked, stay on a CPU.
func stay(t testing.TB, cpu int) bool {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Errorf("pin to CPU %d: %v", cpu, err)
		return false
	}
	return true
}

// allowed are the CPUs on which this process may run.
func allowed(t testing.TB) (cpus []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// onOneCPU runs f on one CPU, and fails with it.
func onOneCPU(t testing.TB, f func(cpu int)) {
	t.Helper()
	cpu := allowed(t)[0]
	done := make(chan struct{})
	go func() {
		defer close(done)
		onCPU(t, cpu, func() { f(cpu) })
	}()
	<-done
}

// twoCPUs runs f on two CPUs at once.
func twoCPUs(t testing.TB, f func(cpu int)) {
	t.Helper()
	cpus := allowed(t)
	var group sync.WaitGroup
	for _, cpu := range cpus[:min(2, len(cpus))] {
		group.Go(func() { onCPU(t, cpu, func() { f(cpu) }) })
	}
	group.Wait()
}

// All packets of each message come in on two CPUs at once, in different orders: exactly one of them completes the message.
func TestTwoCPUsOneRun(t *testing.T) {
	for _, mode := range []struct {
		workload string
		method   uint32
	}{{"assemble", methodStamp}, {"stream", methodTake}} {
		t.Run(mode.workload, func(t *testing.T) {
			n := everyMode(t)
			r := seed.Rand(t)
			const messages, size = 400, 64
			for run := uint32(1); run <= messages; run++ {
				message := randomBytes(1000)
				list := fragments(mode.workload, mode.method, message, size)
				frames := make([][]byte, len(list))
				for i := range list {
					frames[i] = build(t, &list[i])
				}
				var answers atomic.Int32
				orders := r.Uint64()
				twoCPUs(t, func(cpu int) {
					for _, i := range rand.New(rand.NewPCG(orders, uint64(cpu))).Perm(len(frames)) {
						if verdict, out := inject(t, n, frames[i]); verdict == "reply" {
							h, p, err := packets.Answer(frames[i], out)
							if err != nil {
								t.Error(err)
							}
							if h.Type == api.TypeResponse {
								answers.Add(1)
								if c := binary.LittleEndian.Uint32(p[4:]); c != run {
									t.Errorf("message %d: the lambda has run %d times", run, c)
								}
							}
						}
					}
				})
				if answers.Load() == 0 {
					t.Fatalf("message %d has no answer", run)
				}
				if mode.workload == "assemble" {
					first, reply := call(t, n, list[0])
					if !bytes.Equal(pullAll(t, n, list[0], first, reply), stamped(message, 1, run)) {
						t.Fatalf("message %d: wrong reply", run)
					}
				}
				call(t, n, done(list[0]))
				if t.Failed() {
					return
				}
			}
			wantReleased(t, n, workloads[mode.workload])
		})
	}
}
