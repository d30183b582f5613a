package xsk

import (
	"testing"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/gen/gentest"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// Requests that came by AF_XDP are answered, by a thread that waits and by one that spins. Each frame of the memory is used more than once.
func TestEchoAnswers(t *testing.T) {
	p := linktest.New(t)
	for _, spin := range []bool{false, true} {
		e, err := Attach(p, 0, spin)
		if err != nil {
			t.Fatal(err)
		}
		gentest.Answers(t, p, gen.Load{Requests: []gen.Request{{Payload: []byte("hello")}}, Rate: 10_000, Batch: 1}, 2*ringLen)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
