package gen

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/link/linktest"
	"github.com/lambdanic/lambdanic/internal/memcached"
)

// A real memcached judges the requests: the kernel checks every header and checksum before it gets them, and it stores what they SET.
func TestMemcachedAnswers(t *testing.T) {
	p := linktest.New(t)
	pass, err := p.PassPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	var server *memcached.Server
	if err := p.In(func() (err error) {
		server, err = memcached.Start(context.Background(), []netip.Addr{p.Peer.Addr})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	const there, wrong, written, absent = 0x0123_4567, 1, 0x7edc_ba98, 0
	key, value := Item(there)
	if key != "ikernel:hgfedcba" {
		t.Errorf("key %#x is %q", there, key)
	}
	if err := server.Client.Set(&memcache.Item{Key: key, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	key, _ = Item(wrong)
	if err := server.Client.Set(&memcache.Item{Key: key, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
	g := newGenerator(t, p, Options{Trace: []Step{there, wrong, Step(written).Set(), written, there, absent, there, there}})
	load := few
	load.Port, load.Stamp = server.Port, true
	r := run(t, g, load)
	each := r.Sent / 8 // other steps were sent once more, or less
	if r.Delivered+r.Failures != r.Sent || r.Failures/2 < each-1 || r.Failures/2 > each+1 || r.Stored < each || r.Stored > each+1 || r.Cached+r.Errors+r.Others > 0 {
		t.Errorf("a right value for most steps, a wrong one and none for two: %+v", r)
	}
	key, value = Item(written)
	if item, err := server.Client.Get(key); err != nil || string(item.Value) != value {
		t.Errorf("what was SET is %v (%v), want %q", item, err, value)
	}
	var timed [Kinds]uint64
	for kind := range timed {
		for ns, n := range r.Latencies[kind].All() {
			if timed[kind] += n; ns < 500 || time.Duration(ns) > 10*time.Second {
				t.Errorf("a reply took %v", time.Duration(ns))
			}
		}
	}
	if timed[Cached] != 0 || timed[Stored] != r.Stored || timed[Served] != r.Delivered-r.Stored {
		t.Errorf("the latencies of %v replies: %+v", timed, r)
	}
	// The trace goes on where it ended.
	if before := g.steps[0]; uint64(before) != r.Sent {
		t.Errorf("%d requests end at step %d", r.Sent, before)
	}
}

// A bucket begins where the one before ends, and its middle is less than 1 % from both ends.
func TestBuckets(t *testing.T) {
	for bucket := 1; bucket < int(bpfLnGenLimitLN_GEN_BUCKETS); bucket++ {
		before, at := middleOf(bucket-1), middleOf(bucket)
		if at <= before || bucket > 128 && float64(at-before) > 0.02*float64(at) {
			t.Errorf("bucket %d is around %d ns, and the one before around %d", bucket, at, before)
		}
	}
	if got := middleOf(64*10 + 3); got != (64+3)<<9+1<<8 {
		t.Errorf("the bucket of latencies from 67 << 9 on is around %d", got)
	}
}

func TestTraceHasPowerOfTwo(t *testing.T) {
	p := linktest.New(t)
	for _, steps := range []int{1, 3} {
		if _, err := New(p, Options{Trace: make([]Step, steps)}); err == nil {
			t.Errorf("a trace of %d steps is accepted", steps)
		}
	}
}

// Two servers at the same port are asked in turn, and what each answers is counted for it.
func TestTenants(t *testing.T) {
	const key = 7
	pairs := []*link.Pair{linktest.New(t), linktest.New(t)}
	var port uint16
	for i, p := range pairs {
		pass, err := p.PassPeer()
		if err != nil {
			t.Fatal(err)
		}
		defer pass.Close()
		if err := p.In(func() error {
			s, err := memcached.StartAt(context.Background(), 11211, []netip.Addr{p.Peer.Addr})
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = s.Stop() })
			port = s.Port
			name, value := Item(key)
			return s.Client.Set(&memcache.Item{Key: name, Value: []byte(value)[i:]}) // the second's is wrong
		}); err != nil {
			t.Fatal(err)
		}
	}
	g := newGenerator(t, pairs[0], Options{Trace: []Step{key, key}, Others: pairs[1:]})
	load := few
	load.Port = port
	r := run(t, g, load)
	if r.Delivered != r.Sent-r.Sent/2 || r.Failures != r.Sent/2 || r.Tenants[0] != r.Delivered || r.Tenants[1] != 0 {
		t.Errorf("right values of the first server, and wrong ones of the second: %+v", r)
	}
}
