package ikernels

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/live"
)

// A generator is the thread that sends for an ikernel with generator_send, from when it has a socket until it has none. It takes no lock of the Host, as who
// has that waits for it.
type generator struct {
	k       *Ikernel
	to      addresses
	place   int
	counter link.Link
	thread  *live.Thread
	wake    chan struct{} // has the thread look at the registers
	ending  atomic.Bool
	sending atomic.Bool // it has seen that it is to send, and may do so
	running atomic.Bool // the program runs
	batch   int         // that the program knows
}

// generates says whether the ikernel sends by itself.
func (k *Ikernel) generates() bool { return k.coll.Programs["generator_send"] != nil }

// mayGenerate refuses a socket from which the ikernel cannot send.
func (k *Ikernel) mayGenerate(s *socket) error {
	if !k.generates() {
		return nil
	}
	if k.generator != nil {
		return errors.New("the ikernel sends from one socket, and has it: detach that, or create another ikernel")
	}
	return s.inNamespace(func() error {
		_, err := s.findPath()
		return err
	})
}

// generate has the ikernel send from a socket that it has got.
func (k *Ikernel) generate(s *socket, place int) error {
	if !k.generates() {
		return nil
	}
	g := &generator{k: k, to: s.addresses, place: place, wake: make(chan struct{}, 1)}
	if err := k.coll.Variables["generator_place"].Set(uint32(place)); err != nil {
		return fmt.Errorf("say where the socket is: %w", err)
	}
	var err error
	if g.counter, err = link.AttachTracing(link.TracingOptions{Program: k.coll.Programs["generator_count"]}); err != nil {
		return kernel.Fails("does not tell what interfaces send for XDP", err)
	}
	entered, begin := make(chan error), make(chan struct{})
	g.thread = live.Go(func() error {
		err := netns.Set(s.ns)
		entered <- err
		if err != nil {
			return err
		}
		<-begin
		return g.loop()
	})
	if err := <-entered; err != nil {
		return errors.Join(fmt.Errorf("enter the socket's network namespace: %w", err), g.counter.Close())
	}
	k.generator = g
	close(begin)
	return nil
}

// stop ends the thread. From then on nothing is sent.
func (g *generator) stop() error {
	g.ending.Store(true)
	g.poke()
	return errors.Join(g.thread.Stop(), g.counter.Close())
}

// poke has the thread look at the registers.
func (g *generator) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// obey has the thread do what registers say that were written. Where it is to stop, it has done so then.
func (g *generator) obey(t *Transaction) {
	g.poke()
	if t.Write&1 == 0 || t.Values[0] != 0 {
		return
	}
	for g.sending.Load() {
		g.poke()
		if g.running.Load() {
			g.thread.Interrupt()
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func (g *generator) loop() error {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // otherwise it sleeps for 50 µs more
	for !g.ending.Load() {
		g.sending.Store(true)
		fault, err := g.send()
		g.sending.Store(false)
		if g.ending.Load() {
			return nil
		}
		if err != nil {
			_, _ = g.k.coll.Programs["generator_give_up"].Run(&ebpf.RunOptions{Context: uint32(fault)})
			return nil // the fault says it
		}
		if !g.await(time.Second) {
			return nil
		}
	}
	return nil
}

// await waits until there may be something to do; false: the socket is closed.
func (g *generator) await(patience time.Duration) bool {
	for {
		select {
		case <-g.wake:
			return true
		case <-time.After(patience):
			var cookie uint64
			if g.k.host.sockets.Lookup(slot(g.place, 0), &cookie) != nil {
				return false
			}
		}
	}
}

// generatorRegisters are those of the program, in its order.
type generatorRegisters struct{ running, count, interval, sent uint64 }

func (g *generator) registers() (r generatorRegisters, err error) {
	var none, out Transaction
	if _, err := g.k.coll.Programs["ik_transact"].Run(&ebpf.RunOptions{Context: &none, ContextOut: &out}); err != nil {
		return r, fmt.Errorf("read registers: %w", err)
	}
	return generatorRegisters{out.Values[0], out.Values[1], out.Values[2], out.Values[3]}, nil
}

// send sends for as long as the registers say.
func (g *generator) send() (fault generatorIkOwnFault, err error) {
	fault = generatorIkOwnFaultGENERATOR_FAULT_PEER_OUT_OF_REACH
	r, err := g.registers()
	if err != nil || r.running == 0 {
		return fault, err
	}
	f, err := g.prepare()
	if err != nil || f == nil {
		return fault, err
	}
	var pace pacer
	for !g.ending.Load() {
		if r, err = g.registers(); err != nil || r.running == 0 {
			return fault, err
		}
		n, wait := pace.due(time.Now(), r.interval)
		if r.count != 0 {
			n = min(n, max(1, r.count-min(r.count, r.sent)))
		}
		if n == 0 {
			g.sleep(wait)
			continue
		}
		if r.interval >= alone {
			n = min(n, singly)
		}
		if err := g.frames(f, n); err != nil {
			return generatorIkOwnFaultGENERATOR_FAULT_INTERFACE_GONE, err
		}
		if idle, err := g.isIdle(); err != nil || idle {
			return fault, err
		}
		pace.done += n
	}
	return fault, nil
}

// moment is up to how long the thread sleeps by itself: Go's timers are late by a millisecond. Registers that are written wait for that long.
const moment = 2 * time.Millisecond

// sleep waits, but not for long when registers are written.
func (g *generator) sleep(d time.Duration) {
	if d > moment {
		select {
		case <-g.wake:
		case <-time.After(d - moment):
		}
		return
	}
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&ts, nil) // a signal may end it
}

func (g *generator) isIdle() (bool, error) {
	var idle uint32
	err := g.k.coll.Variables["generator_idle"].Get(&idle)
	return idle != 0, err
}

// prepare gives the program the frame to send; nil: there is no message yet.
func (g *generator) prepare() (*live.Frames, error) {
	var m generatorGeneratorMessage
	if err := g.k.coll.Maps["generator_messages"].Lookup(uint32(0), &m); err != nil || m.Noted == 0 {
		return nil, err
	}
	p, err := g.to.findPath()
	if err != nil {
		return nil, err
	}
	f, err := g.to.frame(p, &m)
	if err != nil {
		return nil, err
	}
	g.batch = 0
	return &live.Frames{Program: g.k.coll.Programs["generator_send"], Length: int(f.Len), Interface: p.index}, errors.Join(
		g.k.coll.Maps["generator_frames"].Update(uint32(0), f, ebpf.UpdateAny),
		g.k.coll.Variables["generator_interface"].Set(uint32(p.index)),
		g.k.coll.Variables["generator_idle"].Set(uint32(0)),
	)
}

// singly is up to how many frames are sent by a call each, which takes less time than what the kernel needs before and after a run of several.
const singly = 256

// alone is the interval in ns from which on all are sent singly: those that are due meanwhile do not become more then.
const alone = 50000

// together is how many frames go out together in a run of many: a quarter of what the ring of a veth has room for.
const together = 64

// frames has the program make n frames.
func (g *generator) frames(f *live.Frames, n uint64) error {
	if n <= singly {
		f.Count = 1
		for range n {
			if err := g.run(f, 1); err != nil || g.ending.Load() {
				return err
			}
		}
		return nil
	}
	f.Count = uint32(min(n, math.MaxUint32))
	var watch sync.WaitGroup
	over := make(chan struct{})
	watch.Go(func() { g.watch(over) })
	err := g.run(f, together)
	close(over)
	watch.Wait()
	return err
}

func (g *generator) run(f *live.Frames, batch int) error {
	if batch > 1 || g.batch != batch {
		g.batch = batch
		if err := errors.Join(g.k.coll.Variables["generator_batch"].Set(uint32(batch)), g.k.coll.Variables["generator_tick"].Set(uint32(0))); err != nil {
			return err
		}
	}
	f.Batch = batch
	g.running.Store(true)
	defer g.running.Store(false)
	return f.Do()
}

// watch ends a run when there is nothing to send, and at the latest after a second: as long as it lasts, the kernel does not let go of the interface.
func (g *generator) watch(over chan struct{}) {
	last := time.Now().Add(time.Second)
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
		if idle, err := g.isIdle(); err != nil || idle || g.ending.Load() || time.Now().After(last) {
			g.thread.Interrupt()
		}
	}
}

// A pacer says how many datagrams are due.
type pacer struct {
	interval uint64
	since    time.Time
	done     uint64 // since then
}

// late is for how long what was not sent in time is sent later.
const late = 100 * time.Millisecond

// due says how many datagrams are due now; if none is, when the next one will be.
func (p *pacer) due(now time.Time, interval uint64) (n uint64, wait time.Duration) {
	if interval == 0 {
		p.interval = 0
		return math.MaxUint64, 0
	}
	if interval != p.interval {
		*p = pacer{interval: interval, since: now}
	}
	passed := uint64(now.Sub(p.since))
	slots := passed/interval + 1
	if most := max(1, uint64(late)/interval); slots > p.done+most {
		p.done = slots - most
	}
	if slots > p.done {
		return slots - p.done, 0
	}
	return 0, time.Duration(min(interval-passed%interval, uint64(time.Second)))
}
