package demux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// nextMap is an ln_next.
func nextMap(t testing.TB) *ebpf.Map {
	t.Helper()
	return newMap(t, &ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
}

func newMap(t testing.TB, spec *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A counter is an ikernel that counts datagrams and passes them on.
type counter struct {
	*Ikernel
	t     *testing.T
	count *ebpf.Map
}

func newCounter(t *testing.T, order int64) *counter {
	t.Helper()
	c := &counter{Ikernel: &Ikernel{Next: nextMap(t), Order: order}, t: t}
	c.count = newMap(t, &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1})
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "count", Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.LoadMapValue(asm.R2, c.count.FD(), 0),
			asm.Mov.Imm(asm.R3, 1),
			asm.StoreXAdd(asm.R2, asm.R3, asm.DWord),
			asm.LoadMem(asm.R3, asm.R2, 8, asm.Word), // 0, and not known to the verifier: see bpf/chain.h
			asm.LoadMapPtr(asm.R2, c.Next.FD()),
			asm.FnTailCall.Call(),
			asm.Mov.Imm(asm.R0, xdp.Pass),
			asm.Return(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	c.Program = prog
	return c
}

func (c *counter) counted() uint64 {
	c.t.Helper()
	var value [2]uint64
	if err := c.count.Lookup(uint32(0), &value); err != nil {
		c.t.Fatal(err)
	}
	return value[0]
}

// on attaches an ikernel to lo.
func (s sockets) on(d *Demux, k *Ikernel) (*Attachment, error) {
	return d.Attach(k, []string{"lo"}, xdp.ModeAuto, s.port(0))
}

// order checks as which each is called, from 1.
func order(t *testing.T, when string, want ...*Attachment) {
	t.Helper()
	for i, a := range want {
		if got, n := a.Position(); got != i+1 || n != len(want) {
			t.Errorf("%s: number %d is %d of %d", when, i+1, got, n)
		}
	}
}

// TestChain has a datagram go through ikernels in their order, until one drops it, whichever of them are attached.
func TestChain(t *testing.T) {
	in(t, func() error {
		d, s := New(nil), listen(t)
		first, second, third, drop := newCounter(t, 1), newCounter(t, 2), newCounter(t, 2), dropper(t)
		drop.Order = 3
		a2, err2 := s.on(d, second.Ikernel)
		a4, err4 := s.on(d, drop)
		a1, err1 := s.on(d, first.Ikernel)
		a3, err3 := s.on(d, third.Ikernel)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		order(t, "with all", a1, a2, a3, a4)
		s.check(t, "with all", [2]bool{false, true})
		counts := func(when string, want ...uint64) {
			t.Helper()
			if got := []uint64{first.counted(), second.counted(), third.counted()}; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v have got datagrams, want %v", when, got, want)
			}
		}
		counts("with all", 1, 1, 1)
		if err := a2.Close(); err != nil {
			return err
		}
		order(t, "without the second", a1, a3, a4)
		s.check(t, "without the second", [2]bool{false, true})
		counts("without the second", 2, 1, 2)
		if err := a4.Close(); err != nil {
			return err
		}
		s.check(t, "without the last", [2]bool{true, true})
		counts("without the last", 3, 1, 3)
		if err := a1.Close(); err != nil {
			return err
		}
		order(t, "without the first", a3)
		s.check(t, "without the first", [2]bool{true, true})
		counts("without the first", 3, 1, 4)
		a2, err := s.on(d, second.Ikernel) // behind the one of the same order that is there
		if err != nil {
			return err
		}
		order(t, "with the second again", a3, a2)
		s.check(t, "with the second again", [2]bool{true, true})
		counts("with the second again", 3, 2, 5)
		return errors.Join(a3.Close(), a2.Close())
	})
}

// TestChainUnderLoad attaches and detaches at each place of a chain while datagrams come: the ikernels that stay, and the server, get all of them.
func TestChainUnderLoad(t *testing.T) {
	in(t, func() error {
		d, s := New(nil), listen(t)
		first, last := newCounter(t, 0), newCounter(t, 10)
		a, err1 := s.on(d, first.Ikernel)
		b, err2 := s.on(d, last.Ikernel)
		out, err3 := net.Dial("udp", s[0].LocalAddr().String())
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		defer out.Close()
		stop, sent := make(chan bool), uint64(0)
		var load sync.WaitGroup
		load.Go(func() { // each waits for the one before, so that none is lost as the socket is full
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := out.Write([]byte("x"))
				_ = s[0].SetReadDeadline(time.Now().Add(patience))
				if _, failed := s[0].Read(make([]byte, 1)); err != nil || failed != nil {
					t.Errorf("datagram %d is lost: %v, %v", sent, err, failed)
					return
				}
				sent++
			}
		})
		middle := []*counter{newCounter(t, -5), newCounter(t, 5), newCounter(t, 15)}
		var failed error
		for range 30 {
			for _, c := range middle {
				x, err := s.on(d, c.Ikernel)
				if err == nil {
					err = x.Close()
				}
				failed = errors.Join(failed, err)
			}
		}
		close(stop)
		load.Wait()
		if n, m := first.counted(), last.counted(); n != sent || m != sent {
			t.Errorf("of %d datagrams, the first ikernel got %d, and the last %d", sent, n, m)
		}
		return errors.Join(failed, a.Close(), b.Close())
	})
}

// TestChainRefused asks for chains that cannot be. What is there stays.
func TestChainRefused(t *testing.T) {
	in(t, func() error {
		for _, name := range []string{"a", "b"} {
			pair := netlink.NewVeth(netlink.LinkAttrs{Name: name})
			pair.PeerName = "peer-" + name
			if err := netlink.LinkAdd(pair); err != nil {
				return err
			}
		}
		d := New(nil)
		refused := func(k *Ikernel, want string, port uint16, on ...string) {
			t.Helper()
			if x, err := d.Attach(k, on, xdp.ModeAuto, port); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v and %v, want %q", x, err, want)
			}
		}
		first, second := newCounter(t, 1), newCounter(t, 2)
		a, err := d.Attach(first.Ikernel, []string{"b", "a"}, xdp.ModeAuto, 1)
		if err != nil {
			return err
		}
		const other = "port 1 has an ikernel on interfaces a, b, and this one would be on interface"
		refused(second.Ikernel, other+" a:", 1, "a")
		refused(second.Ikernel, other+"s a, b, lo:", 1, "a", "b", "lo")
		b, err := d.Attach(second.Ikernel, []string{"a", "b"}, xdp.ModeAuto, 1)
		if err != nil {
			return err
		}
		refused(first.Ikernel, "must be the last", 1, "lo") // as it has a next one
		c, err := d.Attach(second.Ikernel, []string{"lo"}, xdp.ModeAuto, 1)
		if err != nil {
			return err
		}
		third := newCounter(t, 3)
		refused(third.Ikernel, "must be the last", 1, "lo")
		refused(third.Ikernel, "must be the last", 1, "a", "b")
		if err := c.Close(); err != nil {
			return err
		}
		all := []*Attachment{a, b}
		for range maxChain - len(all) {
			x, err := d.Attach(newCounter(t, 4).Ikernel, []string{"a", "b"}, xdp.ModeAuto, 1)
			if err != nil {
				return err
			}
			all = append(all, x)
		}
		refused(third.Ikernel, "16 ikernels have it, and no more can", 1, "a", "b")
		order(t, "with as many as can be", all...)
		for _, x := range all {
			err = errors.Join(err, x.Close())
		}
		if len(d.chains)+len(d.roots) > 0 {
			t.Errorf("%d chains and %d roots are left", len(d.chains), len(d.roots))
		}
		return err
	})
}

// TestLongestChain has a datagram go through as many ikernels as can share a port.
func TestLongestChain(t *testing.T) {
	in(t, func() error {
		d, s := New(nil), listen(t)
		var all []*counter
		for range maxChain {
			c := newCounter(t, 0)
			if _, err := s.on(d, c.Ikernel); err != nil {
				return err
			}
			all = append(all, c)
		}
		s.check(t, "with all", [2]bool{true, true})
		for i, c := range all {
			if c.counted() != 1 {
				t.Errorf("number %d has counted %d", i+1, c.counted())
			}
		}
		return nil
	})
}

// TestChainsElsewhere has an ikernel be at one port of two network namespaces: alone, but not before another.
func TestChainsElsewhere(t *testing.T) {
	in(t, func() error {
		d, first, second := New(nil), newCounter(t, 0), newCounter(t, 0)
		a, err := d.Attach(first.Ikernel, []string{"lo"}, xdp.ModeAuto, 1)
		if err != nil {
			return err
		}
		other := isolated.Namespace(t, fmt.Sprintf("lndemux%d-2", os.Getpid()))
		return errors.Join(veth.In(other, func() error {
			b, err := d.Attach(first.Ikernel, []string{"lo"}, xdp.ModeAuto, 1)
			if err != nil {
				return err
			}
			if _, err := d.Attach(second.Ikernel, []string{"lo"}, xdp.ModeAuto, 1); !errors.Is(err, errElsewhere) {
				t.Errorf("got %v", err)
			}
			return b.Close()
		}), a.Close())
	})
}
