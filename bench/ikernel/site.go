// Package ikernel measures memcached-cache: a memcached alone, and the same process with the cache attached.
package ikernel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	cache "github.com/lambdanic/lambdanic/ikernels/memcached"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// receiveBuffer is what memcached's UDP sockets may hold, in bytes. By default it is 52 packets that take a page each.
const receiveBuffer = 4 << 20

// port is where each memcached is, in a namespace of its own.
const port = 11211

// A site is a memcached behind a pair, with its values.
type site struct {
	pair   *link.Pair
	server *memcached.Server
}

// newSite starts a memcached that has values for the keys of the numbers below some number.
func newSite(ctx context.Context, p *link.Pair, threads, keys int) (*site, error) {
	s := &site{pair: p}
	err := p.In(func() (err error) {
		s.server, err = memcached.StartAt(ctx, port, []netip.Addr{p.Peer.Addr}, "-t", strconv.Itoa(threads), "-m", "1024")
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.server.ReceiveBuffer(receiveBuffer), s.fill(keys)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *site) stop() error { return s.server.Stop() }

// fill stores values that never expire, and returns when the server has nothing to do any more.
func (s *site) fill(keys int) error {
	conn, err := net.Dial("tcp", netip.AddrPortFrom(s.pair.Peer.Addr, s.server.Port).String())
	if err != nil {
		return fmt.Errorf("connect to memcached: %w", err)
	}
	defer conn.Close()
	w := bufio.NewWriterSize(conn, 1<<16)
	for n := range keys {
		key, value := gen.Item(uint32(n))
		fmt.Fprintf(w, "set %s 0 0 %d noreply\r\n%s\r\n", key, len(value), value)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("fill memcached: %w", err)
	}
	for replies, begin := bufio.NewReader(conn), time.Now(); ; time.Sleep(10 * time.Millisecond) {
		stats, err := statistics(conn, replies)
		switch {
		case err != nil:
			return fmt.Errorf("fill memcached: %w", err)
		case stats["curr_items"] != strconv.Itoa(keys):
			return fmt.Errorf("memcached has %s items of %d", stats["curr_items"], keys)
		case hasRoom(stats["hash_power_level"], keys) && stats["hash_is_expanding"] == "0":
			return nil
		case time.Since(begin) > patience:
			return errors.New("memcached does not end to enlarge its hash table")
		}
	}
}

// hasRoom says whether memcached leaves a hash table of this size, a power of two, as it is: it enlarges one with 1.5 times as many keys.
func hasRoom(level string, keys int) bool {
	n, err := strconv.Atoi(level)
	return err == nil && keys <= 3<<n/2
}

// statistics asks memcached for its statistics.
func statistics(w io.Writer, replies *bufio.Reader) (map[string]string, error) {
	if _, err := io.WriteString(w, "stats\r\n"); err != nil {
		return nil, err
	}
	stats := map[string]string{}
	for {
		line, err := replies.ReadString('\n')
		if err != nil {
			return nil, err
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			return stats, nil
		}
		stats[words[1]] = words[2]
	}
}

// sites are those of one or several tenants.
type sites []*site

// A side is the sites while something is measured: alone, or with their caches.
type side struct{ *gen.Generator }

// memoryMin is the least memory of a cache, in bytes.
const memoryMin = 2 << 20

// alone calls f while each memcached is alone.
func (all sites) alone(steps []gen.Step, f func(*side) error) (err error) {
	for _, s := range all {
		pass, err1 := s.pair.PassPeer()
		if err1 != nil {
			return err1
		}
		defer func() { err = errors.Join(err, pass.Close()) }()
	}
	return all.generating(steps, f)
}

// cached calls f while each memcached has a cache, with so many bytes of memory. Where there are limits, each cache is of a namespace of its own: 1, 2 and so on.
func (all sites) cached(memory int, l *limits.Limits, steps []gen.Step, f func(*side) error) (err error) {
	var observer cache.Observer
	for i, s := range all {
		var c *cache.Cache
		to := demux.Server{Port: s.server.Port, Mode: xdp.ModeNative}
		if l != nil {
			to.Meter = demux.NewMeter(uint32(i+1), l)
			defer func() { err = errors.Join(err, to.Meter.Close()) }()
		}
		if err := s.pair.In(func() error {
			c, err = cache.Attach(cache.Options{Server: to, Memory: memory, Observer: &observer})
			return err
		}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	return all.generating(steps, f)
}

func (all sites) generating(steps []gen.Step, f func(*side) error) error {
	o := gen.Options{Trace: steps}
	for _, s := range all[1:] {
		o.Others = append(o.Others, s.pair)
	}
	g, err := gen.New(all[0].pair, o)
	if err != nil {
		return err
	}
	return errors.Join(f(&side{g}), g.Close())
}

// offer offers a load to the servers.
func (s *side) offer(ctx context.Context, l gen.Load) (gen.Result, error) {
	l.Port = port
	return s.Run(ctx, l)
}

const (
	warmRate     = 1_000_000
	warmDuration = 250 * time.Millisecond
	patience     = time.Minute
)

// warm has the cache fetch what is asked for.
func (s *side) warm(ctx context.Context, t trace) error {
	sent := 0
	for begin := time.Now(); ; {
		l := gen.Load{Rate: warmRate, Duration: warmDuration}
		if t.warm == 0 {
			l.Rate /= 10 // which memcached answers
		}
		r, err := s.offer(ctx, l)
		if err != nil {
			return err
		}
		sent += int(r.Sent)
		if t.warm > 0 && sent >= t.warm || t.warm == 0 && r.Sent > 0 && r.Cached == r.Sent {
			return nil
		}
		if t.warm == 0 && time.Since(begin) > patience {
			return fmt.Errorf("the cache does not become warm: %d of %d GETs are hits", r.Cached, r.Sent)
		}
	}
}
