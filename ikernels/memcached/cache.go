package memcached

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// Options say which server a Cache is for. The zero value of an option is its default.
type Options struct {
	Server     netip.AddrPort // where the server is reached by TCP from its network namespace; it answers UDP at the same port
	Interfaces []string       // whose GETs are answered
	Mode       xdp.Mode       // default: xdp.ModeAuto
	Memory     int            // bytes for values, default 64 MiB; index, guards and frequencies take from three eighths to three quarters as much besides
	Log        *slog.Logger
}

// A Cache answers GETs for a running memcached.
type Cache struct {
	observer *Observer
	objects  GetObjects
	links    []link.Link
	index    []atomic.Uint64
	memory   []byte
	sketch   sketch
	worker   worker
	stop     context.CancelFunc
	done     chan struct{}
}

// Memory that a cache has at least and by default, in bytes.
const (
	memoryMin     = 8 * int(segmentSize)
	memoryDefault = 64 << 20
	itemUsual     = 128 // bytes that an item of 16-byte key and value takes; index and guards are made for these
)

// Attach puts a cache in front of a running memcached. Call it on a thread of the server's network namespace. It needs root.
func Attach(o Options) (_ *Cache, err error) {
	if o.Memory == 0 {
		o.Memory = memoryDefault
	}
	if o.Memory < memoryMin {
		return nil, fmt.Errorf("%d bytes of memory are too few for a cache: give it at least %d", o.Memory, memoryMin)
	}
	if o.Mode == "" {
		o.Mode = xdp.ModeAuto
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(o.Interfaces) == 0 {
		return nil, errors.New("no interface is named whose GETs a cache could answer")
	}
	c := &Cache{done: make(chan struct{}), worker: worker{namespace: netns.None()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := grace(); err != nil {
		return nil, err
	}
	items := powerOfTwo(o.Memory / itemUsual)
	if c.observer, err = observe(o.Server.Port(), uint32(2*items)); err != nil {
		return nil, err
	}
	observed := time.Now()
	if err := c.connect(o); err != nil {
		return nil, err
	}
	addrs, err := c.worker.probe.addresses(o.Server.Port())
	if err != nil {
		return nil, err
	}
	if err := c.load(o, items, addrs); err != nil {
		return nil, err
	}
	time.Sleep(time.Until(observed.Add(settling)))
	if err := c.start(); err != nil {
		return nil, err
	}
	for _, name := range o.Interfaces {
		if err := c.attach(name, o.Mode); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// settling is how long the observer watches before the first value is fetched. What the server had read before it was observed, it has executed
// by then; it takes microseconds.
const settling = 100 * time.Millisecond

// powerOfTwo is the least power of two that is not less than n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// load loads the NIC program and makes the memory that it shares with us.
func (c *Cache) load(o Options, items int, addrs []netip.Addr) error {
	spec, err := LoadGet()
	if err != nil {
		return err
	}
	buckets := max(1, 2*items/int(ways))
	lines := items * countersPerItem / int(lineSize)
	var words [GetMcGetLimitMC_ADDRESSES][2]uint64
	if len(addrs) > len(words) {
		return fmt.Errorf("memcached listens at %d addresses: a cache can be told of %d", len(addrs), len(words))
	}
	for i, a := range addrs {
		words[i] = xdp.Words(a)
	}
	spec.Maps["mc_index"].MaxEntries = uint32(buckets)
	spec.Maps["mc_segments"].MaxEntries = uint32(o.Memory) / segmentSize
	spec.Maps["mc_sketch"].MaxEntries = uint32(lines)
	spec.Maps["mc_guards"].MaxEntries = c.observer.objects.McGuards.MaxEntries()
	if err := setVariables(spec, map[string]any{
		"mc_secret": c.observer.secret, "mc_port": o.Server.Port(), "mc_bucket_mask": uint64(buckets) - 1, "mc_sketch_mask": uint64(lines) - 1,
		"mc_addresses": words, "mc_address_count": uint32(len(addrs)),
		"mc_guard_mask": uint64(len(c.observer.guards)) - uint64(ObserveMcGuardLimitMC_GUARD_KEYS) - 1,
	}); err != nil {
		return err
	}
	kernel.Fit(spec)
	shared := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"mc_guards": c.observer.objects.McGuards}}
	if err := spec.LoadAndAssign(&c.objects, &shared); err != nil {
		return kernel.Fails("does not load the cache of memcached", err)
	}
	if c.index, err = mapped.Array[atomic.Uint64](c.objects.McIndex); err != nil {
		return err
	}
	if c.memory, err = mapped.Array[byte](c.objects.McSegments); err != nil {
		return err
	}
	c.sketch, err = mapped.Array[uint64](c.objects.McSketch)
	return err
}

// connect connects the worker to the server.
func (c *Cache) connect(o Options) (err error) {
	w := &c.worker
	w.nic = &c.objects
	w.observer, w.server, w.log = c.observer, o.Server, o.Log
	if w.namespace, err = netns.Get(); err != nil {
		return fmt.Errorf("open the network namespace: %w", err)
	}
	return w.connect()
}

// start starts the worker.
func (c *Cache) start() (err error) {
	if c.worker.misses, err = ringbuf.NewReader(c.objects.McMisses); err != nil {
		return fmt.Errorf("read the misses: %w", err)
	}
	c.worker.begin(newStore(c.index, c.memory, c.sketch, c.worker.current))
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go func() {
		defer close(c.done)
		c.worker.run(ctx)
	}()
	return nil
}

func (c *Cache) attach(name string, mode xdp.Mode) error {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	l, _, err := xdp.Attach(c.objects.McAnswer, i.Index, mode)
	if err != nil {
		return fmt.Errorf("attach the cache of memcached to %s: %w", name, err)
	}
	c.links = append(c.links, l)
	return nil
}

// Close detaches the cache. From then on the server gets all requests, as before.
func (c *Cache) Close() error {
	var errs []error
	for _, l := range c.links {
		errs = append(errs, l.Close())
	}
	c.links = nil
	if c.stop != nil {
		c.stop()
		errs = append(errs, c.worker.misses.Close())
		<-c.done
		c.stop = nil
	}
	c.worker.disconnect()
	if c.worker.namespace.IsOpen() {
		errs = append(errs, c.worker.namespace.Close())
	}
	errs = append(errs, mapped.Unmap(c.index), mapped.Unmap(c.memory), mapped.Unmap(c.sketch), c.objects.Close())
	c.index, c.memory, c.sketch = nil, nil, nil
	if c.observer != nil {
		errs = append(errs, c.observer.Close())
		c.observer = nil
	}
	return errors.Join(errs...)
}

// Statistics say what a Cache has done.
type Statistics struct {
	Hits    uint64 // keys that the NIC program answered
	Misses  uint64 // keys that it left to the server, since it had no current value
	Cold    uint64 // of the misses: keys that are asked for too seldom to be worth their memory
	Beside  uint64 // keys that it left to the server, since others of the same GET were missing
	Large   uint64 // GETs that it left to the server, since the packet had no room for the reply
	Other   uint64 // datagrams to the server that are no GET, or one that is left to the server
	Unasked uint64 // keys that were not fetched, since the worker did not keep up
	Fetched uint64 // values that were fetched from the server
	Absent  uint64 // keys that the server did not have
	Unkept  uint64 // values that were fetched and not kept: too large, about to expire, or no memory was free
	Stale   uint64 // values that were not kept, since a client has marked them as stale for another one to renew
	Failed  uint64 // attempts to fetch that failed
	Writes  Counts
}

// Statistics returns what was done so far.
func (c *Cache) Statistics() (Statistics, error) {
	n, err := c.objects.counts()
	if err != nil {
		return Statistics{}, err
	}
	writes, err := c.observer.Counts()
	w := &c.worker
	return Statistics{
		Hits: n[GetMcGetCountMC_GET_HITS], Misses: n[GetMcGetCountMC_GET_MISSES], Cold: n[GetMcGetCountMC_GET_COLD], Beside: n[GetMcGetCountMC_GET_BESIDE],
		Large: n[GetMcGetCountMC_GET_LARGE], Other: n[GetMcGetCountMC_GET_OTHER], Unasked: n[GetMcGetCountMC_GET_UNASKED],
		Fetched: w.fetched.Load(), Absent: w.absent.Load(), Unkept: w.unkept.Load(), Stale: w.returned.Load(), Failed: w.failed.Load(), Writes: writes,
	}, err
}

// counts is what the NIC program has counted so far.
func (o *GetObjects) counts() (n [GetMcGetCountMC_GET_COUNT_MAX]uint64, err error) {
	var cpus []GetMcGetCounts
	if err := o.McGetCounters.Lookup(uint32(0), &cpus); err != nil {
		return n, fmt.Errorf("read the cache's counters: %w", err)
	}
	for _, cpu := range cpus {
		for i := range n {
			n[i] += cpu.Counts[i]
		}
	}
	return n, nil
}
