package memcached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/mapped"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// Options say which server a Cache is for. The zero value of an option is its default.
type Options struct {
	demux.Server           // which answers by TCP and UDP
	Memory       int       // bytes for values, default 64 MiB; index, guards and frequencies take from 46 to 58 % as much besides
	Observer     *Observer // sees what the server does; default: one that has no other servers
}

// A Cache answers GETs for a running memcached.
type Cache struct {
	server     *observed
	objects    GetObjects
	attachment *demux.Attachment
	index      []atomic.Uint64
	memory     []byte
	sketch     sketch
	worker     worker
	stop       context.CancelFunc
	done       chan struct{}
}

// Memory that a cache has at least, at most and by default, in bytes.
const (
	memoryMin     = 8 * int(segmentSize)
	memoryMax     = 2 << 30 // positions are kept in 32 bits
	memoryDefault = 64 << 20
	itemUsual     = 96 // bytes that an item of 16-byte key and value takes; index, guards and frequencies are made for these
)

// Attach puts a cache in front of a running memcached. Call it on a thread of the server's network namespace. It needs root.
func Attach(o Options) (_ *Cache, err error) {
	o.Memory = cmp.Or(o.Memory, memoryDefault)
	if o.Memory < memoryMin || o.Memory > memoryMax {
		return nil, fmt.Errorf("a cache cannot have %v of memory: give it at least %v, and at most %v", api.Bytes(o.Memory), api.Bytes(memoryMin), api.Bytes(memoryMax))
	}
	if o.Observer == nil {
		o.Observer = new(Observer)
	}
	p, listens, err := inspect(o.Port)
	if err != nil {
		return nil, err
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	reached, err := o.Reach(listens)
	if err != nil {
		return nil, err
	}
	c := &Cache{done: make(chan struct{}), worker: worker{namespace: netns.None(), port: o.Port, listens: listens, log: o.Log}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.bring(o, reached); err != nil {
		return nil, err
	}
	return c, nil
}

// inspect connects to the server at a port of the thread's network namespace, and returns at which addresses it listens.
func inspect(port uint16) (p *probe, listens []netip.Addr, err error) {
	if p, err = locate(port); err != nil {
		return nil, nil, err
	}
	if listens, err = p.addresses(port); err != nil {
		return nil, nil, errors.Join(err, p.close())
	}
	return p, listens, nil
}

// bring brings up, in this order: the observation, which is to see the worker's connection begin; the worker; and the NIC program.
func (c *Cache) bring(o Options, reached []netip.Addr) (err error) {
	if err := xdp.Grace(); err != nil {
		return err
	}
	items := o.Memory / itemUsual
	if c.server, err = o.Observer.observe(o.Port, uint32(powerOfTwo(items*3/2))); err != nil {
		return err
	}
	observed := time.Now()
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.load(o, items, reached); err != nil {
		return err
	}
	time.Sleep(time.Until(observed.Add(settling)))
	if err := c.start(); err != nil {
		return err
	}
	c.attachment, err = o.Server.Attach(c.objects.McAnswer, c.objects.LnNext)
	return err
}

// settling is how long a server is observed before the first value is fetched. What the server had read before it was observed, it has executed
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
	if err := demux.SetServer(spec, addrs, o.Log); err != nil {
		return err
	}
	spec.Maps["mc_index"].MaxEntries = uint32(buckets)
	spec.Maps["mc_segments"].MaxEntries = uint32(o.Memory) / segmentSize
	spec.Maps["mc_sketch"].MaxEntries = uint32(lines)
	spec.Maps["mc_guards"].MaxEntries = c.server.guardMap.MaxEntries()
	if err := setVariables(spec, map[string]any{
		"mc_secret": c.server.secret, "mc_port": o.Port, "mc_buckets": uint64(buckets), "mc_sketch_lines": uint64(lines),
		"mc_guard_mask": uint64(len(c.server.guards)) - uint64(ObserveMcGuardLimitMC_GUARD_KEYS) - 1,
		"mc_wildcard":   [2]bool{slices.Contains(c.worker.listens, netip.IPv4Unspecified()), slices.Contains(c.worker.listens, netip.IPv6Unspecified())},
	}); err != nil {
		return err
	}
	kernel.Fit(spec)
	xdp.Untie(spec)
	shared := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"mc_guards": c.server.guardMap}}
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
func (c *Cache) connect() (err error) {
	w := &c.worker
	w.nic, w.observed = &c.objects, c.server
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

// Attachment says where GETs are answered.
func (c *Cache) Attachment() *demux.Attachment { return c.attachment }

// Lost says why the cache keeps nothing any more, and has to be attached anew; nil: it does not.
func (c *Cache) Lost() error {
	if why := c.worker.lost.Load(); why != nil {
		return *why
	}
	return nil
}

// Ails says why the cache fetched no values when it last tried; nil: it did.
func (c *Cache) Ails() error {
	if why := c.worker.ails.Load(); why != nil {
		return fmt.Errorf("no values are fetched: %w", *why)
	}
	return nil
}

// Close detaches the cache. From then on the server gets all requests, as before.
func (c *Cache) Close() error {
	var errs []error
	if c.attachment != nil {
		errs = append(errs, c.attachment.Close())
		c.attachment = nil
	}
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
	if c.server != nil {
		errs = append(errs, c.server.Close())
		c.server = nil
	}
	return errors.Join(errs...)
}
