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
	outer := rusage(t)
	before, err := self.Read()
	if err != nil {
		t.Fatal(err)
	}
	start := rusage(t)
	used := time.Duration(0)
	for used < 100*time.Millisecond {
		used = rusage(t) - start
	}
	after, err := self.Read()
	if err != nil {
		t.Fatal(err)
	}
	// Of a thread that runs, one account may be a tick behind the other.
	outer = rusage(t) - outer
	if got := after - before; got < used/2 || got > outer*2 {
		t.Errorf("got %v of CPU time, rusage says from %v to %v", got, used, outer)
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
	read := func() time.Duration {
		d, err := napi.Read()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var least time.Duration // that the load took of the threads' time, and most
	var answered uint64
	most := read()
	each, err := cpu.PerRequest(napi, func() (uint64, error) {
		least = read()
		defer func() { least = read() - least }()
		// On a busy machine, the threads may not have their turn while a load lasts.
		for deadline := time.Now().Add(time.Minute); answered == 0 && time.Now().Before(deadline); {
			r, err := g.Run(context.Background(), gen.Load{Requests: []gen.Request{{}}, Rate: 10_000, Duration: 200 * time.Millisecond})
			if err != nil {
				return 0, err
			}
			answered = r.Delivered
		}
		return answered, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	most = read() - most
	if n := time.Duration(answered); each <= 0 || each < least/n || each > most/n {
		t.Errorf("one echo took %v of a receive thread's time, %d took from %v to %v", each, answered, least, most)
	}
}
