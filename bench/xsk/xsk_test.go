package xsk

import (
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
)

// Requests that came by AF_XDP are answered, by a thread that waits and by one that spins.
func TestEchoAnswers(t *testing.T) {
	p := linktest.New(t)
	for _, spin := range []bool{false, true} {
		e, err := Attach(p, 0, spin)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gen.New(p, gen.Options{})
		if err != nil {
			t.Fatal(err)
		}
		load := gen.Load{Requests: []gen.Request{{Payload: []byte("hello")}}, Rate: 300, Duration: 100 * time.Millisecond}
		answered := uint64(0)
		// On a busy machine, a load may send nothing, or its answers may be late.
		for deadline := time.Now().Add(time.Minute); answered == 0 && time.Now().Before(deadline); {
			r, err := g.Run(t.Context(), load)
			if err != nil {
				t.Fatal(err)
			}
			if answered = r.Delivered; r.Failures+r.Errors+r.Others != 0 || r.Bytes != 5*answered {
				t.Fatalf("spinning %v: got %+v", spin, r)
			}
		}
		if answered == 0 {
			t.Errorf("spinning %v: nothing was answered", spin)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Thousands of requests use each frame of the memory again.
func TestEchoUsesFramesAgain(t *testing.T) {
	p := linktest.New(t)
	e, err := Attach(p, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gen.New(p, gen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	load := gen.Load{Requests: []gen.Request{{Payload: []byte("hello")}}, Rate: 10_000, Batch: 1}
	answered := uint64(0)
	for deadline := time.Now().Add(time.Minute); answered <= 2*ringLen && time.Now().Before(deadline); {
		r, err := g.Run(t.Context(), load)
		if err != nil {
			t.Fatal(err)
		}
		answered += r.Delivered
	}
	if answered <= 2*ringLen {
		t.Errorf("%d answers with %d frames", answered, ringLen)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
