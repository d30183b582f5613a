package metrics

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

const total = "gateway_function_invocation_total"

// known has functions that tests add and remove.
type known struct{ sync.Map }

func (k *known) exists(namespace, name string) bool {
	_, ok := k.Load(namespace + "/" + name)
	return ok
}

// Whatever is asked for, only functions that exist have series; when one goes, its series go too, and begin anew if it comes back.
func TestSeriesOfFunctions(t *testing.T) {
	var k known
	c := NewCalls(k.exists)
	want := func(n int) {
		t.Helper()
		if got := testutil.CollectAndCount(c, total); got != n {
			t.Errorf("%d series, want %d", got, n)
		}
		if got := testutil.CollectAndCount(c, "gateway_functions_seconds"); got != n {
			t.Errorf("%d histograms, want %d", got, n)
		}
		if kept := len(*c.series.Load()); kept != n {
			t.Errorf("%d are kept, want %d", kept, n)
		}
	}
	for i := range 1000 {
		c.Record("default", fmt.Sprint("no", i), http.StatusOK, time.Millisecond)
	}
	want(0)
	k.Store("default/echo", true)
	k.Store("tenant/echo", true)
	for range 3 {
		c.Record("default", "echo", http.StatusOK, time.Millisecond)
	}
	c.Record("default", "echo", http.StatusBadGateway, time.Millisecond)
	c.Record("tenant", "echo", http.StatusOK, time.Millisecond)
	want(3)
	if n := testutil.ToFloat64(c.total.WithLabelValues("echo.default", "200")); n != 3 {
		t.Errorf("counted %v calls, want 3", n)
	}
	k.Delete("default/echo")
	c.Record("default", "echo", http.StatusOK, time.Millisecond) // one that was under way
	want(1)
	k.Store("default/echo", true)
	c.Record("default", "echo", http.StatusOK, time.Millisecond)
	want(2)
	if n := testutil.ToFloat64(c.total.WithLabelValues("echo.default", "200")); n != 1 {
		t.Errorf("a new function of an old name counted %v calls, want 1", n)
	}
}

// What nobody scrapes does not grow with the functions that ever were.
func TestSeriesGoWithoutScrapes(t *testing.T) {
	var k known
	c := NewCalls(k.exists)
	for i := range 100 {
		name := fmt.Sprint("f", i)
		k.Store("default/"+name, true)
		c.Record("default", name, http.StatusOK, time.Millisecond)
		k.Delete("default/" + name)
	}
	if kept := len(*c.series.Load()); kept != 1 {
		t.Errorf("%d are kept", kept)
	}
}

// Calls, scrapes and changes of the functions go on at the same time, and no call is lost of a function that stays.
func TestSeriesInParallel(t *testing.T) {
	const threads, calls = 4, 500
	var k known
	k.Store("default/stays", true)
	c := NewCalls(k.exists)
	var callers, others sync.WaitGroup
	var done atomic.Bool
	for range threads {
		callers.Go(func() {
			for i := range calls {
				c.Record("default", "stays", 200+i%5, time.Millisecond)
				c.Record("default", "comes and goes", http.StatusOK, time.Millisecond)
			}
		})
	}
	others.Go(func() {
		for !done.Load() {
			k.Store("default/comes and goes", true)
			testutil.CollectAndCount(c)
			k.Delete("default/comes and goes")
		}
	})
	callers.Wait()
	done.Store(true)
	others.Wait()
	var sum float64
	for code := 200; code < 205; code++ {
		sum += testutil.ToFloat64(c.total.WithLabelValues("stays.default", fmt.Sprint(code)))
	}
	if sum != threads*calls || testutil.CollectAndCount(c, total) != 5 {
		t.Errorf("%v calls in %d series", sum, testutil.CollectAndCount(c, total))
	}
}

// A call costs no garbage.
func TestRecordAllocatesNothing(t *testing.T) {
	c := NewCalls(func(string, string) bool { return true })
	c.Record("default", "echo", http.StatusOK, time.Millisecond)
	if n := testing.AllocsPerRun(1000, func() { c.Record("default", "echo", http.StatusOK, 20*time.Microsecond) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	c := NewCalls(func(string, string) bool { return true })
	for b.Loop() {
		c.Record("default", "echo", http.StatusOK, 20*time.Microsecond)
	}
}
