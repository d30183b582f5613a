package memcached

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/internal/memcached"
)

// server starts a real memcached and observes it.
func observed(t *testing.T) (*memcached.Server, *Observer) {
	t.Helper()
	s, err := memcached.Start(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	o, err := Observe(s.Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return s, o
}

// hash is a key's hash (hash.h).
func (o *Observer) hash(key string) uint64 {
	h := o.secret
	for _, c := range []byte(key) {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (o *Observer) guard(t *testing.T, index uint32) uint64 {
	t.Helper()
	var word uint64
	if err := o.objects.McGuards.Lookup(index, &word); err != nil {
		t.Fatal(err)
	}
	return word
}

// settled waits until no write is pending, and returns the guards of the keys and, last, that of all keys.
func (o *Observer) settled(t *testing.T, keys ...string) []uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var words []uint64
		pending := uint64(0)
		for _, key := range keys {
			words = append(words, o.guard(t, uint32(o.hash(key)%uint64(ObserveMcGuardLimitMC_GUARDS))))
		}
		words = append(words, o.guard(t, uint32(ObserveMcGuardLimitMC_GUARD_ALL)))
		for _, w := range words {
			pending += w % uint64(ObserveMcGuardLimitMC_GUARD_PENDING)
		}
		if pending == 0 {
			return words
		}
		select {
		case <-ctx.Done():
			t.Fatalf("writes are pending: %#x of %q and all", words, keys)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestX(t *testing.T) {
	s, o := observed(t)
	for range 3 {
		t.Logf("%#x", o.settled(t, "a"))
		if err := s.Client.Add(item("a")); err != nil {
			t.Log(err)
		}
		_, _ = s.Client.Get("a")
		t.Logf("%#x", o.settled(t, "a"))
		c, err := o.Counts()
		t.Logf("%+v %v", c, err)
	}
}
func item(k string) *memcache.Item { return &memcache.Item{Key: k, Value: []byte("hello")} }
