package metering

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// BenchmarkBudget runs endless loops, and says what share of their budget they take. Whatever takes more than all of it has too low a
// weight.
func BenchmarkBudget(b *testing.B) {
	const budget = time.Millisecond
	large := func(s *ebpf.CollectionSpec) {
		s.Maps["large"] = &ebpf.MapSpec{Name: "large", Type: ebpf.Array, KeySize: 4, ValueSize: 64 << 20, MaxEntries: 1}
	}
	for name, c := range map[string]struct {
		body asm.Instructions
		with func(*ebpf.CollectionSpec)
	}{
		"sums":      {idle(50), nil},
		"products":  {one(asm.Mul.Imm(asm.R1, 3), asm.Mul.Imm(asm.R1, 5), asm.Mul.Imm(asm.R1, 7)), nil},
		"divisions": {one(asm.Mov.Imm(asm.R4, 3), asm.LoadImm(asm.R5, 1<<60, asm.DWord), asm.Div.Reg(asm.R5, asm.R4), asm.Div.Reg(asm.R5, asm.R4)), nil},
		"stack":     {one(asm.StoreMem(asm.R10, -16, asm.R1, asm.DWord), asm.LoadMem(asm.R1, asm.R10, -16, asm.DWord)), nil},
		"look-ups":  {keyAt(-16), nil},
		"packets":   {bufferAt(-56), nil},
		"random":    {one(asm.FnGetPrandomU32.Call()), nil},
		"time":      {one(asm.FnKtimeGetNs.Call()), nil},
		"caches missed": {asm.Instructions{
			asm.FnGetPrandomU32.Call(), asm.And.Imm(asm.R0, 0x3ffffc0),
			asm.LoadMapValue(asm.R1, 0, 0).WithReference("large"), asm.Add.Reg(asm.R1, asm.R0), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
		}, large},
	} {
		b.Run(name, func(b *testing.B) {
			spec := collection(join(one(asm.Mov.Reg(asm.R6, asm.R1)), initAt(-64), one(asm.Mov.Imm(asm.R1, 1)),
				chargeOf("loop", -64, 1, "out"), c.body, one(asm.Mov.Imm(asm.R1, 1), asm.Ja.Label("loop")), leave("out")))
			if c.with != nil {
				c.with(spec)
			}
			g, err := analyse(spec, spec.Programs["lambda"])
			if err != nil {
				b.Fatal(err)
			}
			if err := g.price(); err != nil {
				b.Fatal(err)
			}
			if err := Fill(spec, budget); err != nil {
				b.Fatal(err)
			}
			loaded, err := ebpf.NewCollection(spec)
			if err != nil {
				b.Fatalf("%+v", err)
			}
			defer loaded.Close()
			_, took, err := loaded.Programs["lambda"].Benchmark(make([]byte, 1400), b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(100*float64(took)/float64(budget), "%budget")
		})
	}
}
