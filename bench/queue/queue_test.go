package queue

import (
	"runtime"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/gen/gentest"
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
		if used := use(t, p, q); used == 0 {
			t.Errorf("CPU %d: requests were answered in none of the thread's time", on)
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
		use(t, p, q)
	}
	if queues[0].PID == queues[1].PID {
		t.Errorf("both queues have the thread %d", queues[0].PID)
	}
}

// use has some requests answered, and says how much of the thread's time that took.
func use(t *testing.T, p *link.Pair, q *Queue) time.Duration {
	t.Helper()
	before, err := cpu.Process(q.PID).Read()
	if err != nil {
		t.Fatal(err)
	}
	gentest.Answers(t, p, gen.Load{Requests: []gen.Request{{Payload: []byte("hello")}}, Rate: 300, Duration: 100 * time.Millisecond}, 1)
	after, err := cpu.Process(q.PID).Read()
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}
