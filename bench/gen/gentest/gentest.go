// Package gentest gives tests answers under load.
package gentest

import (
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
)

// Answers offers a load to the far end of a pair until there were so many answers, each as long as the one request of the load.
func Answers(t *testing.T, p *link.Pair, l gen.Load, least uint64) {
	t.Helper()
	g, err := gen.New(p, gen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	answers := uint64(0)
	// On a busy machine, a load may send nothing, or its answers may be late.
	for deadline := time.Now().Add(time.Minute); answers < least && time.Now().Before(deadline); {
		r, err := g.Run(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if r.Failures+r.Errors+r.Others != 0 || r.Bytes != uint64(len(l.Requests[0].Payload))*r.Delivered {
			t.Fatalf("got %+v", r)
		}
		answers += r.Delivered
	}
	if answers < least {
		t.Errorf("%d answers in a minute, want %d", answers, least)
	}
}
