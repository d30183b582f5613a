package queue

import (
	"runtime"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// Requests that waited in a queue are answered, on each CPU, and the time of the thread that answers is counted.
func TestQueueAnswers(t *testing.T) {
	p := linktest.New(t)
	for on := range runtime.NumCPU() {
		q, err := Attach(p, on)
		if err != nil {
			t.Fatal(err)
		}
		used, answered := use(t, p, q)
		if answered == 0 || used == 0 {
			t.Errorf("CPU %d: %d requests were answered in %v of the thread's time", on, answered, used)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Queues of two maps have a thread each on one CPU.
func TestQueuesShareCPU(t *testing.T) {
	var queues [2]*Queue
	for i := range queues {
		p := linktest.New(t)
		q, err := Attach(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		queues[i] = q
		if _, answered := use(t, p, q); answered == 0 {
			t.Errorf("queue %d: nothing was answered", i)
		}
	}
	if queues[0].Thread[0] == queues[1].Thread[0] {
		t.Errorf("both queues have the thread %v", queues[0].Thread)
	}
}

// use has some requests answered, and says how much of the thread's time that took.
func use(t *testing.T, p *link.Pair, q *Queue) (used time.Duration, answered uint64) {
	t.Helper()
	g, err := gen.New(p, gen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	before, err := q.Thread.Read()
	if err != nil {
		t.Fatal(err)
	}
	load := gen.Load{Requests: []gen.Request{{Payload: []byte("hello")}}, Rate: 300, Duration: 100 * time.Millisecond}
	// On a busy machine, a load may send nothing, or its answers may be late.
	for deadline := time.Now().Add(time.Minute); answered == 0 && time.Now().Before(deadline); {
		r, err := g.Run(t.Context(), load)
		if err != nil {
			t.Fatal(err)
		}
		if answered = r.Delivered; r.Failures+r.Errors+r.Others != 0 || r.Bytes != 5*answered {
			t.Fatalf("got %+v", r)
		}
	}
	after, err := q.Thread.Read()
	if err != nil {
		t.Fatal(err)
	}
	return after - before, answered
}
