package demux

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// served is the address of the servers here.
var served = netip.MustParseAddr("198.18.0.1")

// newLimits makes limits by which nobody has a share or a quota.
func newLimits(t testing.TB) *limits.Limits {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	l, err := limits.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func set(t testing.TB, l *limits.Limits, budget float64, quotas map[uint32]api.Quota) {
	t.Helper()
	if err := l.Set(api.Budget{Time: uint64(budget)}, quotas); err != nil {
		t.Fatal(err)
	}
}

// plenty is a budget that nobody can spend, in ns of each second.
const plenty = 1e12

// spin is an ikernel that takes as long as so many looks at the clock, and then hands the packet on; without a next one, it sends it back.
func spin(t testing.TB, looks int) *Ikernel {
	t.Helper()
	next := nextMap(t)
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	for range looks {
		code = append(code, asm.FnKtimeGetNs.Call())
	}
	code = append(code,
		asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, next.FD()), asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, xdp.TX), asm.Return())
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Flags: unix.BPF_F_XDP_HAS_FRAGS, License: "GPL", Instructions: code})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return &Ikernel{Program: prog, Next: next}
}

// newMeter puts a meter before an ikernel.
func newMeter(t testing.TB, namespace uint32, l *limits.Limits, k *Ikernel) *Meter {
	t.Helper()
	m := NewMeter(namespace, l)
	if _, err := m.load(k.Program, []netip.Addr{served}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// datagram is a frame of UDP over IPv4.
func datagram(to netip.Addr) []byte {
	b := append(make([]byte, 12), 8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0, 198, 18, 0, 9)
	b = append(b, to.AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, 4000)
	return append(b, 0x16, 0x33, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
}

// run has a datagram come and returns the XDP action.
func (m *Meter) run(t *testing.T, to netip.Addr) uint32 {
	t.Helper()
	action, err := m.parts.Program.Run(&ebpf.RunOptions{Data: datagram(to), DataOut: make([]byte, 256)})
	if err != nil {
		t.Fatal(err)
	}
	return action
}

func (m *Meter) counted(t *testing.T) Metered {
	t.Helper()
	c, err := m.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// taken is what the meter's namespace was charged on all CPUs, in ns.
func (m *Meter) taken(t *testing.T) (sum float64) {
	t.Helper()
	var each []meterLnMetered
	if err := m.parts.Meters.Lookup(uint32(0), &each); err != nil {
		t.Fatal(err)
	}
	for _, c := range each {
		sum += float64(c.Cost.VirtualNs)
	}
	return sum
}

// TestMeterShares has the ikernels of three namespaces ask for more than there is: they get it by their weights, whatever a datagram takes.
func TestMeterShares(t *testing.T) {
	l, quotas := newLimits(t), map[uint32]api.Quota{}
	var all [3]*Meter
	for i, weight := range []uint64{40, 40, 20} {
		all[i] = newMeter(t, uint32(i+1), l, spin(t, []int{40, 160, 40}[i]))
		quotas[uint32(i+1)] = api.Quota{Weight: &weight}
	}
	ask := func(until float64) (shares [3]float64) {
		var before [3]float64
		for i, m := range all {
			before[i] = m.taken(t)
		}
		for deadline := time.Now().Add(time.Minute); ; {
			for range 100 {
				for _, m := range all {
					m.run(t, served)
				}
			}
			sum := 0.0
			for i, m := range all {
				shares[i] = m.taken(t) - before[i]
				sum += shares[i]
			}
			if sum >= until {
				for i := range shares {
					shares[i] /= sum
				}
				return shares
			}
			if time.Now().After(deadline) {
				t.Fatalf("they took %v ns", shares)
			}
		}
	}
	isolated.Pin(t, 0)
	set(t, l, 1e9, quotas)
	began := time.Now()
	least := ask(2e7)[0] // the first and the third ask for the least
	set(t, l, least*2e7/time.Since(began).Seconds(), quotas)
	ask(2e7)
	for i, got := range ask(5e7) {
		if want := float64(*quotas[uint32(i+1)].Weight) / 100; math.Abs(got-want) > 0.02 {
			t.Errorf("namespace %d has %.3f of the time, want %.1f", i+1, got, want)
		}
	}
	for i, m := range all {
		if c := m.counted(t); c.OverShare == 0 || c.OverQuota != 0 || c.ChargedNs == 0 {
			t.Errorf("the meter of namespace %d counted %+v", i+1, c)
		}
	}
}

// TestMeterInner has an ikernel hand its datagrams on to one that takes much longer and has a meter of its own. Each pays for itself.
func TestMeterInner(t *testing.T) {
	l, first, last, weight := newLimits(t), spin(t, 1), spin(t, 2000), uint64(100)
	set(t, l, plenty, map[uint32]api.Quota{1: {}, 2: {}})
	outer, inner := newMeter(t, 1, l, first), newMeter(t, 2, l, last)
	if err := first.Next.Put(uint32(0), inner.parts.Program); err != nil {
		t.Fatal(err)
	}
	isolated.Pin(t, 0)
	for range 500 {
		if action := outer.run(t, served); action != xdp.TX {
			t.Fatalf("action %d", action)
		}
	}
	if o, i := outer.counted(t).ChargedNs, inner.counted(t).ChargedNs; o == 0 || 2*o > i {
		t.Errorf("the ikernel that takes hardly any time is charged %d ns, and the one after it %d", o, i)
	}
	before := outer.counted(t).ChargedNs
	set(t, l, plenty, map[uint32]api.Quota{1: {Weight: &weight}}) // the other one pays for nothing, and is measured all the same
	for range 500 {
		outer.run(t, served)
	}
	if o, i := outer.counted(t).ChargedNs-before, inner.counted(t).ChargedNs; 2*o > i {
		t.Errorf("the ikernel that takes hardly any time is charged %d ns, and the one after it was charged %d before", o, i)
	}
}

// TestMeterChain has as many ikernels as a port can have, each behind a meter of its own namespace. A packet gets through all of them.
func TestMeterChain(t *testing.T) {
	l, quotas := newLimits(t), map[uint32]api.Quota{}
	var all []*Meter
	var last *Ikernel
	for i := range uint32(maxChain) {
		k := spin(t, 1)
		m := newMeter(t, i+1, l, k)
		if last != nil {
			if err := last.Next.Put(uint32(0), m.parts.Program); err != nil {
				t.Fatal(err)
			}
		}
		all, last, quotas[i+1] = append(all, m), k, api.Quota{}
	}
	set(t, l, plenty, quotas)
	for range 100 {
		if action := all[0].run(t, served); action != xdp.TX {
			t.Fatalf("action %d, want that of the last ikernel", action)
		}
	}
	for i, m := range all {
		if c := m.counted(t); c.ChargedNs == 0 || c.OverShare != 0 {
			t.Errorf("meter %d of %d counted %+v", i+1, len(all), c)
		}
	}
}

// TestMeterQuota sets quotas for a namespace. What is over quota is dropped, and what is not for the server goes to the ikernel in any case.
func TestMeterQuota(t *testing.T) {
	l := newLimits(t)
	m := newMeter(t, 1, l, spin(t, 1))
	check := func(when string, quotas map[uint32]api.Quota, want uint32) {
		t.Helper()
		set(t, l, 0, quotas)
		if action := m.run(t, served); action != want {
			t.Errorf("%s: action %d, want %d", when, action, want)
		}
		if action := m.run(t, served.Next()); action != xdp.TX {
			t.Errorf("%s: action %d for a datagram to another machine", when, action)
		}
	}
	none := new(uint64)
	check("without a quota", nil, xdp.TX)
	check("with no requests", map[uint32]api.Quota{1: {Requests: none}}, xdp.Drop)
	check("with no time", map[uint32]api.Quota{1: {NICTime: none}}, xdp.Drop)
	check("with another namespace's quota", map[uint32]api.Quota{2: {Requests: none}}, xdp.TX)
	if c := m.counted(t); c.OverQuota != 2 || c.OverShare != 0 {
		t.Errorf("the meter counted %+v, want 2 over quota", c)
	}
	if err := m.parts.Next.Delete(uint32(0)); err != nil {
		t.Fatal(err)
	}
	if action := m.run(t, served); action != xdp.Pass {
		t.Errorf("with an ikernel that is gone: action %d", action)
	}
}

// TestMeterBandwidth has two namespaces share what is sent. Of ikernels one behind the other, the one that sends is charged for each byte; where its namespace
// has had its share, its packets are dropped.
func TestMeterBandwidth(t *testing.T) {
	l, first, last := newLimits(t), spin(t, 1), spin(t, 1)
	outer, inner := newMeter(t, 1, l, first), newMeter(t, 2, l, last)
	if err := first.Next.Put(uint32(0), inner.parts.Program); err != nil {
		t.Fatal(err)
	}
	if err := l.Set(api.Budget{Bandwidth: 8e6}, map[uint32]api.Quota{1: {}, 2: {}}); err != nil { // a byte takes 1000 ns, of a half
		t.Fatal(err)
	}
	isolated.Pin(t, 0)
	for range 3 {
		if action := outer.run(t, served); action != xdp.TX {
			t.Fatalf("action %d", action)
		}
	}
	for namespace, want := range map[uint32]int{1: 0, 2: 3 * len(datagram(served)) * 2000} {
		if got := sent(t, l, namespace, 2); got != uint64(want) {
			t.Errorf("namespace %d is charged %d ns, want %d", namespace, got, want)
		}
	}
	far := limits.RawLnLinks{UntilNs: math.MaxInt64 / 2} // more was taken than is lent
	if err := l.LnLinksTaken.Put(uint32(0), far); err != nil {
		t.Fatal(err)
	}
	if action := inner.run(t, served); action != xdp.Drop {
		t.Errorf("over bandwidth: action %d", action)
	}
	if action := inner.run(t, served.Next()); action != xdp.TX {
		t.Errorf("action %d for a datagram to another machine", action)
	}
	if c := inner.counted(t); c.OverBandwidth != 1 || c.OverShare != 0 || c.OverQuota != 0 || c.ChargedNs != 0 {
		t.Errorf("the meter counted %+v, want 1 over bandwidth", c)
	}
}

// sent is how long the links took for what a namespace was answered, times its pace.
func sent(t *testing.T, l *limits.Limits, namespace, pace uint32) (ns uint64) {
	t.Helper()
	var told limits.RawLnTurns
	var cpus []limits.Allowance
	if err := errors.Join(l.LnTurnsTaken.Lookup(namespace, &told), l.LnAllowances.Lookup(namespace, &cpus)); err != nil {
		t.Fatal(err)
	}
	ns = told.LinksNs
	for _, c := range cpus {
		ns += c.UnsentNs * uint64(pace)
	}
	return ns
}

// BenchmarkMeter times an ikernel that does nothing, alone and behind the meter of a namespace without limits, with quotas, with a share of more than a CPU has,
// with a share of nothing, and with a share of more bandwidth than it takes.
func BenchmarkMeter(b *testing.B) {
	many, none := uint64(1e12), api.Budget{}
	for _, c := range []struct {
		name   string
		budget api.Budget
		quotas map[uint32]api.Quota
	}{
		{"alone", none, nil}, {"unlimited", none, map[uint32]api.Quota{1: {}}}, {"quotas", none, map[uint32]api.Quota{1: {Requests: &many, NICTime: &many}}},
		{"share", api.Budget{Time: plenty}, map[uint32]api.Quota{1: {}}}, {"refused", api.Budget{Time: 1}, map[uint32]api.Quota{1: {}}},
		{"bandwidth", api.Budget{Bandwidth: 100e9}, map[uint32]api.Quota{1: {}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, k := newLimits(b), spin(b, 0)
			program := k.Program
			if c.quotas != nil {
				if err := l.Set(c.budget, c.quotas); err != nil {
					b.Fatal(err)
				}
				program = newMeter(b, 1, l, k).parts.Program
			}
			_, took, err := program.Benchmark(datagram(served), b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds()), "ns/datagram")
		})
	}
}
