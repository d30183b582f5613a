package memcached

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/internal/memcached"
)

// testGuards is how many guards the tests' few keys share.
const testGuards = 1 << 16

// startObserved starts a real memcached and observes it.
func startObserved(t *testing.T) (*memcached.Server, *observed) {
	t.Helper()
	s, err := memcached.Start(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	o, err := new(Observer).observe(s.Port, testGuards)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return s, o
}

// settled waits until no write is pending, and returns the guards of the keys and, last, that of all keys. Meanwhile it calls nudge.
func (s *observed) settled(t *testing.T, nudge func(), keys ...string) []uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var words []uint64
		pending := uint64(0)
		for _, key := range keys {
			word, _ := s.guard(s.guardOf(s.hash([]byte(key))))
			words = append(words, word)
		}
		word, _ := s.guard(allKeys)
		words = append(words, word)
		for _, w := range words {
			pending += w % uint64(ObserveMcGuardLimitMC_GUARD_PENDING)
		}
		if pending == 0 {
			return words
		}
		nudge()
		select {
		case <-ctx.Done():
			t.Fatalf("writes are pending: %#x of %q and all", words, keys)
		case <-time.After(time.Millisecond):
		}
	}
}

// states are what memcached itself says of the keys: cas changes with every change of a value, t with a change of the expiry.
func states(t *testing.T, oracle net.Conn) (said []string) {
	t.Helper()
	lines := bufio.NewReader(oracle)
	for _, key := range keys {
		if _, err := fmt.Fprintf(oracle, "mg %s c t f s\r\n", key); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(line)
		for i, w := range words {
			if left, err := strconv.Atoi(strings.TrimPrefix(w, "t")); err == nil && w[0] == 't' && left > 0 {
				words[i] = fmt.Sprint("t", (left+250)/500) // seconds pass
			}
		}
		said = append(said, strings.Join(words, " "))
	}
	return said
}

func dial(t *testing.T, port uint16) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// play sends a stream in pieces on a connection of its own, and returns when memcached has read and executed all.
func play(t *testing.T, r *rand.Rand, port uint16, stream []byte) {
	t.Helper()
	c := dial(t, port)
	go func() {
		for len(stream) > 0 {
			n := 1 + r.IntN(min(len(stream), 1+r.IntN(20000)))
			if _, err := c.Write(stream[:n]); err != nil {
				return // memcached may have ended the connection
			}
			stream = stream[n:]
		}
		_ = c.CloseWrite()
	}()
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// version is a datagram that changes nothing.
const version = "\x00\x01\x00\x00\x00\x01\x00\x00version\r\n"

// playDatagrams sends a stream by UDP, and waits for the answer to each datagram; to damaged ones there may be none.
func playDatagrams(t *testing.T, port uint16, s *stream) {
	t.Helper()
	c, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	patience := 20 * time.Second
	if s.damaged {
		patience = 2 * time.Millisecond
	}
	answer := make([]byte, 2000)
	for _, payload := range s.datagrams() {
		if _, err := c.Write(payload); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		for n := 0; !bytes.Contains(answer[:n], []byte("1.6.")); { // the version
			if n, err = c.Read(answer); err != nil && !s.damaged {
				t.Fatalf("no answer to %q: %v", payload, err)
			} else if err != nil {
				break
			}
		}
	}
}

// TestChangesAreSeen plays streams to a real memcached. Whenever memcached has changed a key, the key's guard or that of all keys must have
// changed; and where a stream is whole, no other guard. When they change is TestPending's.
func TestChangesAreSeen(t *testing.T) {
	t.Run("TCP", func(t *testing.T) {
		s, o := startObserved(t)
		compare(t, s.Port, o, 400, func(seed uint64, r *rand.Rand) *stream {
			stream := generate(r)
			if seed%3 == 0 {
				stream.damage(r)
			}
			play(t, r, s.Port, stream.bytes)
			return stream
		})
	})
	// memcached leaves some datagrams of the binary protocol unanswered, and takes several for one after a damaged one. Then it suffices
	// that no change is missed.
	for name, whole := range map[string]bool{"UDP": true, "damaged UDP": false} {
		t.Run(name, func(t *testing.T) {
			s, o := startObserved(t)
			compare(t, s.Port, o, 200, func(_ uint64, r *rand.Rand) *stream {
				stream := generate(r)
				for whole && (stream.isBinary() || len(stream.bytes) > 1300) {
					stream = generate(r)
				}
				stream.damaged = !whole
				if !whole && r.IntN(2) == 0 {
					stream.damage(r)
				}
				playDatagrams(t, s.Port, stream)
				return stream
			})
		})
	}
}

// compare plays streams, and compares what the observer says of the keys with what memcached says.
func compare(t *testing.T, port uint16, o *observed, streams uint64, play func(seed uint64, r *rand.Rand) *stream) {
	t.Helper()
	oracle := dial(t, port)
	udp, err := net.Dial("udp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	// A thread of memcached shows that it has executed commands without replies when it reads on.
	nudge := func() { _, _ = io.WriteString(udp, version) }
	changed, exact := 0, 0
	for seed := range streams {
		before, guards := states(t, oracle), o.settled(t, nudge, keys...)
		stream := play(seed, rand.New(rand.NewPCG(seed, 19)))
		after, now := states(t, oracle), o.settled(t, nudge, keys...)
		all := now[len(keys)] != guards[len(keys)]
		for i, key := range keys {
			seen := now[i] != guards[i] || all
			if before[i] != after[i] {
				changed++
				if !seen {
					t.Fatalf("stream %d: %q was %q and is %q, and no guard tells:\n%.300q", seed, key, before[i], after[i], stream.bytes)
				}
			}
			if stream.damaged {
				continue
			}
			exact++
			if seen != (stream.changes[key] || stream.all) {
				counts, _ := o.Counts()
				t.Fatalf("stream %d: the guard of %q tells %v, want %v (%+v):\n%.300q", seed, key, seen, stream.changes[key], counts, stream.bytes)
			}
		}
	}
	t.Logf("compared %d changes and %d guards", changed, exact)
	if changed < int(streams)/4 {
		t.Errorf("memcached changed %d keys only: too few to tell anything", changed)
	}
}
