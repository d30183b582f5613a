// Package gen is the open-loop load generator: it offers requests by λ-RPC, or to memcached, or any datagrams, to the far end of a pair at a given rate,
// whatever becomes of them, and counts the replies that arrive. Frames come from BPF_PROG_TEST_RUN, so that neither a socket nor a
// thread of the generator bounds what it can offer.
package gen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/cpu"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/internal/live"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// ids is how many request IDs one CPU has to itself.
const ids = 1 << 40

// Load is what to offer.
type Load struct {
	Requests []Request     // of λ-RPC, sent in turn
	Others   []Datagram    // of another protocol, sent in turn where there are no Requests; of their replies, all are Result.Others
	Room     int           // payload bytes that each packet of λ-RPC is padded to, so that the reply may be as long; Others keep room for it
	Port     uint16        // of Requests, or of memcached; 0 means λ-RPC's
	Rate     float64       // requests per second; 0 means as fast as it goes
	Duration time.Duration // 0 means 300 ms
	CPUs     []int         // that generate; empty means CPU 0
	Batch    int           // frames that go out together, at most 256; 0 means 64
	Replies  int           // packets that answer each request; 0 means 1
	Stamp    bool          // measures latencies, of memcached alone
	Servers  int           // of memcached, how many are asked; 0 means all
}

// Result is what became of a load, counted where frames leave and where replies arrive.
type Result struct {
	Sent      uint64   // frames handed to the interface
	Expected  uint64   // responses to all sent requests
	Skipped   uint64   // frames that were due and that the generator was too slow to send
	Delivered uint64   // responses with status ok; of memcached, right ones
	Cached    uint64   // of these: values that the NIC answered for memcached
	Stored    uint64   // of these: memcached's replies to SETs
	Failures  uint64   // responses with another status; of memcached, wrong ones
	Errors    uint64   // error packets
	Others    uint64   // anything else that came to the clients' ports
	Bytes     uint64   // of message in the delivered responses
	Tenants   []uint64 // right replies of each memcached
	Elapsed   time.Duration
	// CPU is the time of the threads that generated. Where the pair does not receive in threads of its own, the soft
	// interrupts in which the far end answers and this one counts are part of it.
	CPU time.Duration
	// Latencies are from when a request was made to when its reply was counted, by the reply's kind; nil without Load.Stamp.
	Latencies *[Kinds]Latencies
}

// OfferedRate is what was sent per second.
func (r Result) OfferedRate() float64 { return perSecond(r.Sent, r.Elapsed) }

// Rate is what was delivered per second.
func (r Result) Rate() float64 { return perSecond(r.Delivered, r.Elapsed) }

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Loss is the share of the expected responses that did not come, or were not good.
func (r Result) Loss() float64 {
	if r.Expected == 0 {
		return 0
	}
	return 1 - float64(r.Delivered)/float64(r.Expected)
}

// Options of a generator.
type Options struct {
	// ByWorkload counts delivered responses for each workload too, which costs the counting some nanoseconds.
	ByWorkload bool
	// Trace makes it a generator for memcached. Its steps are requested in turn, and again from the first. Their number is a power of two from 2 on.
	Trace []Step
	// Others lead to other servers of memcached than the one behind the first pair. All are at the same port, and are asked in turn.
	Others []*link.Pair
}

// Generator holds the programs on its pairs. It is for one run at a time.
type Generator struct {
	pairs    []*link.Pair
	bpf      bpfObjects
	counters []link.Attachment                // of each pair
	trace    int                              // steps; 0: λ-RPC
	steps    [bpfLnGenLimitLN_GEN_CPUS]uint32 // the next step of each CPU
}

// New loads the generator and attaches its counter to this namespace's end of each pair.
func New(p *link.Pair, o Options) (*Generator, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	if o.ByWorkload {
		if err := spec.Variables[bpfVarByWorkload].Set(uint32(1)); err != nil {
			return nil, err
		}
	}
	xdp.Untie(spec) // as the program that it replaces
	g := &Generator{pairs: append([]*link.Pair{p}, o.Others...), trace: len(o.Trace)}
	if err := errors.Join(makeRoom(spec, len(o.Trace)), g.setTenants(spec)); err != nil {
		return nil, err
	}
	if err := spec.LoadAndAssign(&g.bpf, nil); err != nil {
		return nil, fmt.Errorf("load the load generator: %w", err)
	}
	count := g.bpf.Count
	if len(o.Trace) > 0 {
		count = g.bpf.CountMemcached
		err = g.follow(o.Trace)
	}
	for _, p := range g.pairs {
		if err != nil {
			break
		}
		var a link.Attachment
		if a, err = p.AttachHost(count); err == nil {
			g.counters = append(g.counters, a)
		}
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Close detaches and unloads the generator.
func (g *Generator) Close() error {
	var errs []error
	for _, a := range g.counters {
		errs = append(errs, a.Close())
	}
	return errors.Join(append(errs, g.bpf.Close())...)
}

// Run offers the load and waits until its replies have arrived.
func (g *Generator) Run(ctx context.Context, l Load) (Result, error) {
	l = g.withDefaults(l)
	longest, err := g.prepare(l)
	if err != nil {
		return Result{}, err
	}
	before, err := g.counts()
	if err != nil {
		return Result{}, err
	}
	used, err := g.send(ctx, l, longest)
	if err != nil {
		return Result{}, err
	}
	r, err := g.drain(ctx, before, l.Replies)
	r.Elapsed, r.CPU = l.Duration, used
	if err == nil && l.Stamp {
		r.Latencies, err = g.latencies()
	}
	return r, err
}

func (g *Generator) withDefaults(l Load) Load {
	if l.Port == 0 {
		l.Port = api.RPCPort
	}
	if l.Duration == 0 {
		l.Duration = 300 * time.Millisecond
	}
	if len(l.CPUs) == 0 {
		l.CPUs = []int{0}
	}
	if l.Batch == 0 {
		l.Batch = 64
	}
	if l.Servers == 0 {
		l.Servers = len(g.pairs)
	}
	l.Batch, l.Replies = min(l.Batch, live.MaxBatch), max(l.Replies, 1)
	return l
}

// Change replaces the requests or datagrams of a load that is under way, and how many servers are asked. There must be as many as before, of the same length
// or Room. A frame that is sent meanwhile may have parts of both.
func (g *Generator) Change(l Load) error {
	l = g.withDefaults(l)
	b, _, _, err := g.templates(l)
	if err != nil {
		return err
	}
	var end uint32
	if err := g.bpf.TemplateEnd.Get(&end); err != nil {
		return err
	}
	if len(b) != int(end) {
		return fmt.Errorf("the load's frames take %d bytes, and those of the load under way %d: give as many requests of the same length", len(b), end)
	}
	return errors.Join(g.setTemplates(b), g.bpf.Tenants.Set(uint32(l.Servers)))
}

// templates lays out the frames of a load.
func (g *Generator) templates(l Load) (b []byte, longest, stride int, err error) {
	all := l.Others
	switch {
	case g.trace > 0:
		all = to(l.Port, memcachedPackets())
	case len(l.Requests) > 0:
		if all, err = datagrams(l.Requests, l.Port, l.Room); err != nil {
			return nil, 0, 0, err
		}
	}
	var frames [][]byte
	for _, p := range g.pairs {
		for _, d := range all {
			frames = append(frames, frame(p, d))
		}
	}
	return templates(frames, payloadAt+l.Room)
}

func (g *Generator) setTemplates(b []byte) error {
	memory := make([]byte, g.bpf.Templates.Size())
	copy(memory, b)
	return g.bpf.Templates.Set(memory)
}

// prepare writes the load into the program's memory. It returns the length of the longest frame.
func (g *Generator) prepare(l Load) (longest int, err error) {
	b, longest, stride, err := g.templates(l)
	if err != nil {
		return 0, err
	}
	var interval uint64
	if l.Rate > 0 {
		interval = uint64(float64(len(l.CPUs)) * 65536e9 / l.Rate)
	}
	return longest, errors.Join(
		g.stamp(l.Stamp),
		g.setTemplates(b),
		g.bpf.TemplateEnd.Set(uint32(len(b))),
		g.bpf.Stride.Set(uint32(stride)),
		g.bpf.IntervalQ16.Set(interval),
		g.bpf.Batch.Set(uint32(l.Batch)),
		g.bpf.Tenants.Set(uint32(l.Servers)),
	)
}

// send runs the program on each CPU of the load for its time, and says what that took.
func (g *Generator) send(ctx context.Context, l Load, longest int) (used time.Duration, err error) {
	var senders [bpfLnGenLimitLN_GEN_CPUS]bpfLnGenSender
	run := rand.Uint64N(1<<16) << 48
	for i := range senders {
		senders[i].NextId = run + uint64(i)*ids
		senders[i].Step = g.steps[i]
	}
	if err := errors.Join(g.bpf.Senders.Set(&senders), g.bpf.StartNs.Set(uint64(0))); err != nil {
		return 0, err
	}
	program := g.bpf.Generate
	switch {
	case g.trace > 0:
		program = g.bpf.Ask
	case len(l.Requests) == 0:
		program = g.bpf.GenerateDatagrams
	}
	var runs []liveRun
	var threads cpu.Sum
	for _, on := range l.CPUs {
		r := startLive(program, on, longest, l.Batch, g.pairs[0].Host.Index)
		runs, threads = append(runs, r), append(threads, cpu.Thread(r.TID))
	}
	used, err = g.clock(ctx, l, threads)
	for _, r := range runs {
		err = errors.Join(err, r.stop())
	}
	return used, err
}

// clock waits until the program runs everywhere, which takes the kernel a while, then gives it a start and an
// end, and sleeps until the end is over. It returns what the threads used from start to end.
func (g *Generator) clock(ctx context.Context, l Load, threads cpu.Clock) (used time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+l.Duration) // in case a thread hangs
	defer cancel()
	for {
		var senders [bpfLnGenLimitLN_GEN_CPUS]bpfLnGenSender
		if err := g.bpf.Senders.Get(&senders); err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(l.CPUs, func(cpu int) bool { return senders[cpu].Ready == 0 }) {
			break
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return 0, fmt.Errorf("wait for live frames on CPUs %v: %w", l.CPUs, err)
		}
	}
	start := monotonic() + time.Millisecond
	if err := errors.Join(g.bpf.EndNs.Set(uint64(start+l.Duration)), g.bpf.StartNs.Set(uint64(start))); err != nil {
		return 0, err
	}
	if err := sleep(ctx, start-monotonic()); err != nil {
		return 0, err
	}
	before, err := threads.Read()
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, start+l.Duration-monotonic()); err != nil {
		return 0, err
	}
	after, err := threads.Read()
	return after - before, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// quiet is how long no reply may come before drain stops waiting.
var quiet = 100 * time.Millisecond

// drain waits until that many replies came back for each request sent, or nothing more comes.
func (g *Generator) drain(ctx context.Context, before bpfLnGenCount, replies int) (Result, error) {
	const poll = time.Millisecond
	var senders [bpfLnGenLimitLN_GEN_CPUS]bpfLnGenSender
	if err := g.bpf.Senders.Get(&senders); err != nil {
		return Result{}, err
	}
	var sent Result
	for i, s := range senders {
		sent.Sent += s.Sent
		sent.Skipped += s.Skipped
		g.steps[i] = s.Step
	}
	sent.Expected = sent.Sent * uint64(replies)
	for last, since := uint64(0), monotonic(); ; time.Sleep(poll) {
		now, err := g.counts()
		if err != nil {
			return Result{}, err
		}
		r := sent
		r.Delivered, r.Failures = now.Responses-before.Responses, now.Failures-before.Failures
		r.Errors, r.Others, r.Bytes = now.Errors-before.Errors, now.Others-before.Others, now.Bytes-before.Bytes
		r.Cached, r.Stored = now.Replies[Cached]-before.Replies[Cached], now.Replies[Stored]-before.Replies[Stored]
		r.Tenants = make([]uint64, len(g.pairs))
		for i := range r.Tenants {
			r.Tenants[i] = now.Tenants[i] - before.Tenants[i]
		}
		total := r.Delivered + r.Failures + r.Errors + r.Others
		if total != last {
			last, since = total, monotonic()
		}
		if total >= r.Expected || monotonic()-since > quiet || ctx.Err() != nil {
			return r, ctx.Err()
		}
	}
}

func (g *Generator) counts() (total bpfLnGenCount, err error) {
	var all [bpfLnGenLimitLN_GEN_CPUS]bpfLnGenCount
	if err := g.bpf.Counts.Get(&all); err != nil {
		return total, fmt.Errorf("read the reply counters: %w", err)
	}
	for _, c := range all {
		total.Responses += c.Responses
		total.Failures += c.Failures
		total.Errors += c.Errors
		total.Others += c.Others
		total.Bytes += c.Bytes
		for kind, n := range c.Replies {
			total.Replies[kind] += n
		}
		for i, n := range c.Tenants {
			total.Tenants[i] += n
		}
	}
	return total, nil
}

// Workload says how many responses of one workload arrived since New. It needs Options.ByWorkload.
func (g *Generator) Workload(id uint32) (n uint64, err error) {
	var perCPU []uint64
	if err := g.bpf.Workloads.Lookup(id%uint32(bpfLnGenLimitLN_GEN_WORKLOADS), &perCPU); err != nil {
		return 0, err
	}
	for _, c := range perCPU {
		n += c
	}
	return n, nil
}

// monotonic is the clock that bpf_ktime_get_ns reads.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // cannot fail for this clock
	}
	return time.Duration(ts.Nano())
}
