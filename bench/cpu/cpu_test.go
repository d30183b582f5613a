package cpu_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/echo"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// rusage is the kernel's other account of the same time.
func rusage(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestProcessAgreesWithRusage(t *testing.T) {
	self := cpu.Process(os.Getpid())
	before, err := self.Read()
	if err != nil {
		t.Fatal(err)
	}
	start := rusage(t)
	for rusage(t)-start < 100*time.Millisecond {
	}
	after, err := self.Read()
	if err != nil {
		t.Fatal(err)
	}
	used := rusage(t) - start
	if got := after - before; got < used/2 || got > used*2 {
		t.Errorf("got %v of CPU time, rusage says %v", got, used)
	}
}

func TestDeadProcess(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if d, err := cpu.Process(cmd.Process.Pid).Read(); err == nil {
		t.Errorf("a process that ended has used %v; want an error", d)
	}
}

func TestEchoCostsTime(t *testing.T) {
	p := linktest.New(t)
	if _, err := cpu.NAPI(p.Peer.Name); err == nil {
		t.Error("found receive threads of a pair that has none")
	}
	a, err := echo.Attach(p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	g, err := gen.New(p, gen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := p.SetThreaded(true); err != nil {
		t.Fatal(err)
	}
	napi, err := cpu.NAPI(p.Peer.Name)
	if err != nil {
		t.Fatal(err)
	}
	const rate, duration = 10_000, 200 * time.Millisecond
	each, err := cpu.PerRequest(napi, func() (uint64, error) {
		r, err := g.Run(context.Background(), gen.Load{Requests: []gen.Request{{}}, Rate: rate, Duration: duration})
		return r.Delivered, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if each <= 0 || each > time.Second/rate*2 {
		t.Errorf("one echo took %v of a receive thread's time at %d/s", each, rate)
	}
}
