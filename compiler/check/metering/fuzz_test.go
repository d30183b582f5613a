package metering

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// Whatever the instructions are: no panic, and nothing accepted that runs longer than promised.
func FuzzCheck(f *testing.F) {
	for _, insns := range []asm.Instructions{endless(9), nested(30, 5), keyAt(-16), within(keyAt(-16)...)} {
		var raw bytes.Buffer
		if err := insns.Marshal(&raw, binary.LittleEndian); err != nil {
			f.Fatal(err)
		}
		f.Add(raw.Bytes())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		insns, err := asm.AppendInstructions(nil, bytes.NewReader(raw), binary.LittleEndian, "linux")
		if err != nil || len(insns) > 300 {
			return
		}
		for i := range insns {
			if insns[i].IsLoadFromMap() {
				insns[i] = insns[i].WithReference([]string{FuelMap, "table"}[insns[i].Constant&1])
			}
		}
		spec := collection(insns)
		g, err := analyse(spec, spec.Programs["lambda"])
		if err != nil {
			return
		}
		if g.metered() {
			if err := g.price(); err != nil {
				return
			}
		}
		bounds, err := Check(spec)
		if err != nil {
			if g.metered() {
				t.Fatalf("priced, but %v", err)
			}
			return
		}
		if bounds["lambda"].Pace > 0 {
			return // the verifier bounds it
		}
		random := rand.New(rand.NewPCG(4, 34))
		for range 5 {
			const budget = 2000
			if took := simulate(g, random.IntN, budget); took > budget+bounds["lambda"].Debt {
				t.Fatalf("a run takes %d", took)
			}
		}
	})
}
