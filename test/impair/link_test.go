package impair

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

const packets = 50_000

// patience ends tests that hang: no test passes or fails by how long anything takes on a busy machine.
const patience = time.Minute

// An arrival is a packet from a link, and how many of its bits were wrong.
type arrival struct {
	number  int
	flipped int
	at      time.Duration // since it went in
}

// content is a packet's bytes, by its number.
func content(number int) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(number)), 16)
}

// through sends packets through a link and waits until none is left in it.
func through(t *testing.T, f Faults, n int) ([]arrival, Counts) {
	t.Helper()
	l := NewLink(f, ToServer)
	defer l.Close()
	var mu sync.Mutex
	var out []arrival
	for i := range n {
		want, sent := content(i), time.Now()
		l.Pass(want, func(p []byte) {
			a := arrival{number: i, at: time.Since(sent)}
			for j := range p {
				a.flipped += bits.OnesCount8(p[j] ^ want[j])
			}
			if len(p) != len(want) {
				t.Errorf("packet %d has %d bytes", i, len(p))
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, a)
		})
	}
	for end := time.Now().Add(patience); l.Counts().Waiting > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("packets stay in the link: %+v", l.Counts())
		}
	}
	l.Close() // nothing is being delivered any more
	return out, l.Counts()
}

// seen counts what the receiver sees for itself.
func seen(out []arrival, n int) Counts {
	c := Counts{Packets: uint64(n), Delivered: uint64(len(out))}
	copies, wrong := make([]uint64, n), make([]bool, n)
	for _, a := range out {
		copies[a.number]++
		wrong[a.number] = wrong[a.number] || a.flipped > 0
	}
	for i, k := range copies {
		switch {
		case k == 0:
			c.Dropped++
		case k > 1:
			c.Duplicated++
		}
		if wrong[i] {
			c.Corrupted++
		}
	}
	return c
}

// within fails unless k of n is within six standard deviations of a probability.
func within(t *testing.T, what string, k uint64, n int, p float64) {
	t.Helper()
	mean, sigma := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
	if math.Abs(float64(k)-mean) > 6*sigma {
		t.Errorf("%s: %d of %d, expected %.0f ± %.0f", what, k, n, mean, sigma)
	}
}

func TestRatesAndCounters(t *testing.T) {
	f := Faults{Seed: 1, Drop: 0.1, Duplicate: 0.05, Corrupt: 0.02}
	out, c := through(t, f, packets)
	if want := seen(out, packets); c != want {
		t.Errorf("counted %+v, the receiver saw %+v", c, want)
	}
	kept := packets - int(c.Dropped)
	within(t, "dropped", c.Dropped, packets, f.Drop)
	within(t, "duplicated", c.Duplicated, kept, f.Duplicate)
	within(t, "corrupted", c.Corrupted, kept, f.Corrupt)
	if !slices.IsSortedFunc(out, func(a, b arrival) int { return a.number - b.number }) {
		t.Error("packets were reordered, though nobody asked for it")
	}
	for _, a := range out {
		if a.flipped > 1 {
			t.Fatalf("packet %d has %d wrong bits", a.number, a.flipped)
		}
	}
}

func TestNoFaults(t *testing.T) {
	out, c := through(t, Faults{Seed: 1}, 1000)
	if want := (Counts{Packets: 1000, Delivered: 1000}); c != want || seen(out, 1000) != want {
		t.Errorf("counted %+v", c)
	}
}

// A held-back packet comes behind exactly as many others as it should, not counting held-back ones.
func TestReorder(t *testing.T) {
	for _, behind := range []int{1, 5} {
		f := Faults{Seed: 2, Reorder: 0.05, Behind: behind, Hold: time.Hour}
		l := NewLink(f, ToServer)
		var order []int
		for i := range packets {
			l.Pass(nil, func([]byte) { order = append(order, i) })
		}
		c := l.Counts()
		l.Close()
		within(t, "reordered", c.Reordered, packets, f.Reorder)
		var fates []Fate
		for fate := range f.Fates(ToServer) {
			if fates = append(fates, fate); len(fates) == packets {
				break
			}
		}
		highest, moved := -1, uint64(0) // the highest number of those that were not held back
		for _, i := range order {
			if !fates[i].Reorder {
				if i < highest {
					t.Fatalf("packet %d came late, and was not held back", i)
				}
				highest = i
				continue
			}
			moved++
			late := 0
			for j := i + 1; j <= highest; j++ {
				if !fates[j].Reorder {
					late++
				}
			}
			if late != behind {
				t.Fatalf("packet %d came behind %d later ones, want %d", i, late, behind)
			}
		}
		if moved+uint64(c.Waiting) != c.Reordered {
			t.Errorf("%d came late and %d wait, of %d", moved, c.Waiting, c.Reordered)
		}
	}
}

// A held-back packet does not wait forever for others.
func TestLastPacketIsReleased(t *testing.T) {
	out, c := through(t, Faults{Seed: 2, Reorder: 1, Hold: time.Millisecond}, 3)
	if len(out) != 3 || c.Reordered != 3 || c.Delivered != 3 || out[0].at < time.Millisecond {
		t.Errorf("%+v, counted %+v", out, c)
	}
}

func TestDelay(t *testing.T) {
	const delay, jitter, n = 5 * time.Millisecond, 5 * time.Millisecond, 500
	out, c := through(t, Faults{Seed: 3, Delay: delay}, n)
	if c.Delayed != n || !slices.IsSortedFunc(out, func(a, b arrival) int { return a.number - b.number }) {
		t.Errorf("a plain delay changed the order, or was counted wrongly: %+v", c)
	}
	jittered, _ := through(t, Faults{Seed: 3, Delay: delay, Jitter: jitter}, n)
	if slices.IsSortedFunc(jittered, func(a, b arrival) int { return a.number - b.number }) {
		t.Error("jitter changed no order")
	}
	for _, a := range append(out, jittered...) {
		if a.at < delay {
			t.Fatalf("packet %d took %v", a.number, a.at)
		}
	}
}

// The same seed does the same to the same packets; another one, or the other direction, does not. A rate does not move what
// another rate hits.
func TestSeedDecides(t *testing.T) {
	fates := func(f Faults, d Direction) (all []Fate) {
		for fate := range f.Fates(d) {
			if all = append(all, fate); len(all) == 1000 {
				return all
			}
		}
		return nil
	}
	f := Faults{Seed: 7, Drop: 0.3, Duplicate: 0.3, Corrupt: 0.3, Reorder: 0.3, Jitter: time.Second}
	first := fates(f, ToServer)
	if !reflect.DeepEqual(first, fates(f, ToServer)) {
		t.Error("the same seed decides differently")
	}
	if reflect.DeepEqual(first, fates(f, ToClient)) {
		t.Error("both directions are decided alike")
	}
	other := f
	other.Seed++
	if reflect.DeepEqual(first, fates(other, ToServer)) {
		t.Error("another seed decides alike")
	}
	other = f
	other.Corrupt = 0
	for i, fate := range fates(other, ToServer) {
		fate.Corrupt = first[i].Corrupt
		if fate != first[i] {
			t.Fatalf("packet %d: without corruption %+v, with it %+v", i, fate, first[i])
		}
	}
	a, _ := through(t, f, 1000)
	b, _ := through(t, f, 1000)
	numbers := func(out []arrival) (n []int) {
		for _, x := range out {
			n = append(n, x.number, x.flipped)
		}
		slices.Sort(n)
		return n
	}
	if !slices.Equal(numbers(a), numbers(b)) {
		t.Error("the same seed did not do the same to the same packets")
	}
}

func TestSpan(t *testing.T) {
	l := NewLink(Faults{Seed: 5, Corrupt: 1, Span: 4}, ToServer)
	defer l.Close()
	for range 1000 {
		l.Pass(make([]byte, 100), func(p []byte) {
			if bytes.Equal(p[:4], make([]byte, 4)) || !bytes.Equal(p[4:], make([]byte, 96)) {
				t.Fatalf("% x", p)
			}
		})
	}
}
