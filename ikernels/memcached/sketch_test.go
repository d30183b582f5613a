package memcached

import (
	"container/list"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// count is what the NIC program does (mc_count_key in sketch.h).
func (s sketch) count(hash uint64) uint8 {
	least := s.frequency(hash)
	if least == uint8(GetMcSketchLimitMC_FREQUENCY_MAX) {
		return least
	}
	for word, shift := range s.counters(hash) {
		if uint8(*word>>shift) == least {
			*word += 1 << shift
		}
	}
	return least + 1
}

// A lru is a cache of the keys that were asked for last.
type lru struct {
	size  int
	order list.List
	keys  map[int]*list.Element
}

// get says whether a key was there, and puts it there.
func (l *lru) get(key int) bool {
	if e := l.keys[key]; e != nil {
		l.order.MoveToFront(e)
		return true
	}
	l.keys[key] = l.order.PushFront(key)
	if l.order.Len() > l.size {
		delete(l.keys, l.order.Remove(l.order.Back()).(int))
	}
	return false
}

// zipf has the sums of the first weights of a Zipf distribution.
func zipf(keys int, exponent float64) []float64 {
	sums := make([]float64, keys)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -exponent)
		sums[i] = sum
	}
	return sums
}

// A model is a cache whose GETs come one after the other.
type model struct {
	*store
	server  observed
	fetched int
}

func newModel(segments int) *model {
	items := segments * int(segmentSize) / itemUsual
	m := &model{store: emptyStore(2*items/int(ways), segments), server: observed{secret: 1}}
	m.sketch = make(sketch, items*countersPerItem/8)
	return m
}

// get says whether a key was there, and fetches it if it is worth it.
func (m *model) get(name string) bool {
	hash := m.server.hash([]byte(name))
	frequency := m.sketch.count(hash)
	if m.find(name, hash) != nil {
		return true
	}
	if uint32(frequency) <= m.threshold() {
		return false
	}
	m.put(value{key: []byte(name), data: make([]byte, 16)}, stamp{hash: hash, guard: 1})
	if m.fetched++; m.fetched%batch == 0 && m.clean() {
		m.reuse()
	}
	return false
}

// TestHitRate compares a cache that holds a sixteenth of the keys with one of those that were asked for last (LRU), and with one that knows
// which will be asked for most. After half of the time, other keys become the ones that are asked for most. In between, each key is asked for once.
func TestHitRate(t *testing.T) {
	const segments, keys, gets = 16, 16 * 16 * int(segmentSize) / itemUsual, 4 << 20
	sums := zipf(keys, 0.99)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key%013d", i)
	}
	r := rand.New(rand.NewPCG(19, 20))
	cache, recent := newModel(segments), &lru{size: keys / 16, keys: map[int]*list.Element{}}
	best := 100 * sums[keys/16-1] / sums[keys-1]
	for phase := range 2 {
		hits, recentHits, counted := 0, 0, 0
		for n := range gets {
			rank, _ := slices.BinarySearch(sums, r.Float64()*sums[keys-1])
			key := rank
			if phase > 0 {
				key = keys - 1 - rank
			}
			hit, recentHit := cache.get(names[key]), recent.get(key)
			if uint64(n+1)%cache.sketch.period() == 0 {
				cache.age()
			}
			if n < gets/2 {
				continue // it learns
			}
			counted++
			if hit {
				hits++
			}
			if recentHit {
				recentHits++
			}
		}
		rate, recentRate := 100*float64(hits)/float64(counted), 100*float64(recentHits)/float64(counted)
		t.Logf("phase %d: hits %.1f %%, LRU %.1f %%, at best %.1f %%", phase, rate, recentRate, best)
		if rate < recentRate+3 || rate > best {
			t.Errorf("phase %d: hits %.1f %%, want 3 %% more than LRU's %.1f %%, and at most %.1f %%", phase, rate, recentRate, best)
		}
		before := cache.fetched
		for key := range keys {
			cache.get(names[key])
			recent.get(key)
		}
		if fetched := cache.fetched - before; fetched > keys/10 {
			t.Errorf("phase %d: of %d keys that were asked for once, %d were fetched", phase, keys, fetched)
		}
	}
}

// TestFrequencies asks for keys, and compares what the NIC program has counted.
func TestFrequencies(t *testing.T) {
	s := newSite(t)
	s.attach()
	c := s.client()
	s.text(s.dial(), "set cached 0 0 1\r\nx\r\n", "STORED\r\n")
	want := map[string]int{"a": 1, "b": 2, "cached": 100, strings.Repeat("k", 250): 3, "often": 300}
	for key, n := range want {
		for range n {
			c.ask("get " + key + "\r\n")
		}
	}
	for key, n := range want {
		hash := s.cache.server.hash([]byte(key))
		if got := s.cache.sketch.frequency(hash); int(got) != min(n, 255) {
			t.Errorf("%s was asked for %d times: the frequency is %d", key, n, got)
		}
		if got := slices.Clone(s.cache.sketch).count(hash); int(got) != min(n+1, 255) {
			t.Errorf("%s is asked for once more: the frequency is %d", key, got)
		}
	}
	s.cache.sketch.age()
	for key, n := range want {
		if got := s.cache.sketch.frequency(s.cache.server.hash([]byte(key))); int(got) != min(n, 255)/2 {
			t.Errorf("%s was asked for %d times: later the frequency is %d", key, n, got)
		}
	}
}

// TestCold has the NIC program ask only for keys that are asked for more than three times.
func TestCold(t *testing.T) {
	s := newSite(t)
	s.attach()
	s.text(s.dial(), "set cold 0 0 1\r\nx\r\n", "STORED\r\n")
	if err := s.cache.objects.McThreshold.Set(uint32(3)); err != nil {
		t.Fatal(err)
	}
	c := s.client()
	for range 3 {
		c.ask("get cold\r\n")
	}
	time.Sleep(tick)
	if stats := s.statistics(); stats.Cold != 3 || stats.Misses != 3 || stats.Fetched+stats.Unasked > 0 {
		t.Errorf("asked for three times: %+v", stats)
	}
	s.hit(c, "get cold\r\n")
}

// TestAge has so many GETs that the worker halves the frequencies.
func TestAge(t *testing.T) {
	s := newSite(t)
	s.attach()
	c := s.client()
	for range 8 {
		c.ask("get key\r\n")
	}
	keys := int(GetMcGetLimitMC_GET_KEYS)
	request := "get" + strings.Repeat(" other", keys) + "\r\n"
	for s.statistics().Misses < s.cache.sketch.period() { // a datagram may be lost
		if _, err := c.conn.Write(append(frame(0), request...)); err != nil {
			t.Fatal(err)
		}
	}
	hash := s.cache.server.hash([]byte("key"))
	for begin := time.Now(); s.cache.sketch.frequency(hash) != 4; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("after %d GETs, the frequency is %d, want 4: %+v", s.cache.sketch.period(), s.cache.sketch.frequency(hash), s.statistics())
		}
	}
}
