package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/test/isolated"
)

// keepPassed gives the socket's buffer room for all that tests send.
func (s *coalesced) keepPassed() {
	s.t.Helper()
	raw, err := s.server.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<27)
	})
	if err := errors.Join(err, failed); err != nil {
		s.t.Fatal(err)
	}
}

// passed yields the messages that the socket gets.
func (s *coalesced) passed(n int64) iter.Seq[string] {
	return func(yield func(string) bool) {
		b := make([]byte, 100)
		for range n {
			_ = s.server.SetReadDeadline(time.Now().Add(patience))
			got, err := s.server.Read(b)
			if err != nil {
				s.t.Fatal(err)
			}
			if !yield(string(b[:got])) {
				return
			}
		}
	}
}

// storm sends messages from a CPU for each plan at once, and hands over what batches have meanwhile. With asks, it asks for batches all the time. It returns when
// all has been handed over, and last what passed.
func (s *coalesced) storm(plans [][]string, asks bool, take func(key, value string), takePassed func(key, value string)) {
	s.t.Helper()
	s.keepPassed()
	var all sync.WaitGroup
	total := int64(0)
	for i, plan := range plans {
		client := s.dial()
		total += int64(len(plan))
		all.Go(func() {
			isolated.Pin(s.t, i)
			for _, m := range plan {
				_, _ = client.Write([]byte(m))
			}
		})
	}
	sent := make(chan bool)
	go func() { all.Wait(); close(sent) }()
	updates := uint64(0)
	for done := false; !done; {
		select {
		case <-sent:
			s.awaitAll(total)
			s.flush()
		default:
			if asks {
				s.flush()
			}
		}
		r := s.registers() // what it says is posted is in the ring, or has been read
		for entries, n, ok := s.poll(); ok; entries, n, ok = s.poll() {
			updates += n
			for _, e := range entries {
				take(e.key, e.value)
			}
		}
		done = r["updates"]+r["passed"] == total && r["updates"]-r["coalesced"] == r["posted"]
	}
	r := s.registers()
	for m := range s.passed(r["passed"]) {
		takePassed(m[:s.key], m[s.key:])
	}
	if updates != uint64(r["updates"]) || r["malformed"] != 0 {
		s.t.Errorf("the batches are of %d updates: %v", updates, r)
	}
}

// TestCoalesceCores sends numbered updates from several CPUs at once, while batches are read and asked for: of each key the value never goes back, and the last
// one is that which was sent last. Each sender has keys of its own, as nobody can say which of two that are sent at once comes first.
func TestCoalesceCores(t *testing.T) {
	const senders, messages, keys = 2, 20000, 150
	for _, interval := range []int64{0, 200} {
		t.Run(fmt.Sprintf("every %d us", interval), func(t *testing.T) {
			s := coalesce(t, 1<<16, map[string]int64{"key": 2, "value": 8, "entries": 200, "interval": interval})
			want, got := map[string]string{}, map[string]string{}
			plans := make([][]string, senders)
			for i := range plans {
				rnd := rand.New(rand.NewPCG(uint64(i), 7))
				for n := range uint64(messages) {
					key := string([]byte{byte(i), byte(rnd.IntN(keys))})
					plans[i] = append(plans[i], key+number(n))
					want[key] = number(n)
				}
			}
			s.storm(plans, true, func(key, value string) {
				if got[key] >= value {
					t.Fatalf("key %x is %x, and was %x", key, value, got[key])
				}
				got[key] = value
			}, func(key, value string) { got[key] = max(got[key], value) })
			if !maps.Equal(got, want) {
				t.Errorf("got %x, want %x", got, want)
			}
		})
	}
}

// TestCoalesceSums adds from several CPUs at once: no number is lost, and none counts twice.
func TestCoalesceSums(t *testing.T) {
	const senders, messages, keys = 2, 20000, 40
	s := coalesce(t, 1<<20, map[string]int64{"key": 1, "operation": coalesceSum, "entries": 30})
	want, got := map[string]uint64{}, map[string]uint64{}
	plans := make([][]string, senders)
	for i := range plans {
		rnd := rand.New(rand.NewPCG(uint64(i), 8))
		for range messages {
			key, n := string([]byte{byte(rnd.IntN(keys))}), rnd.Uint64()
			plans[i] = append(plans[i], key+number(n))
			want[key] += n
		}
	}
	add := func(key, value string) { got[key] += binary.BigEndian.Uint64([]byte(value)) }
	s.storm(plans, false, add, add)
	if !maps.Equal(got, want) {
		t.Errorf("the sums are %v, want %v: %v", got, want, s.registers())
	}
}
