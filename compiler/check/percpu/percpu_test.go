package percpu

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// object has a memory of shared bytes and one copy of per-CPU bytes. Its program loads the number of its only record.
func object(shared, each uint64, record int) *ebpf.CollectionSpec {
	words := func(list ...uint64) []ebpf.MapKV {
		var data []byte
		for _, w := range list {
			data = binary.NativeEndian.AppendUint64(data, w)
		}
		return []ebpf.MapKV{{Key: uint32(0), Value: data}}
	}
	load := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R0, Src: asm.PseudoMapValue, Constant: int64(record) << 32}
	memory := make([]byte, shared+each)
	memory[0] = 7
	return &ebpf.CollectionSpec{
		Programs: map[string]*ebpf.ProgramSpec{"lambda": {Instructions: asm.Instructions{load.WithReference(Section), asm.Return()}}},
		Maps: map[string]*ebpf.MapSpec{
			Section:             {Name: Section, Contents: words(shared-8, each)},
			Section + ".memory": {Name: Section + ".memory", Contents: words(each)},
			".data.memory": {
				Type: ebpf.Array, MaxEntries: 1, ValueSize: uint32(shared + each), Contents: []ebpf.MapKV{{Key: uint32(0), Value: memory}},
			},
		},
	}
}

func TestFit(t *testing.T) {
	for cpus, count := range map[int]uint64{0: 1, 1: 1, 2: 2, 3: 4, 16: 16, 17: 32, 1024: 1024} {
		spec := object(128, 64, 0)
		if err := Fit(spec, cpus); err != nil {
			t.Fatal(err)
		}
		m, ins := spec.Maps[".data.memory"], spec.Programs["lambda"].Instructions[0]
		if want := 128 + 64*count; uint64(m.ValueSize) != want || uint64(len(m.Contents[0].Value.([]byte))) != want {
			t.Errorf("%d CPUs: memory of %d bytes, want %d", cpus, m.ValueSize, want)
		}
		if ins.Src != 0 || ins.Reference() != "" || uint64(ins.Constant) != 120+64*count {
			t.Errorf("%d CPUs: %v", cpus, ins)
		}
		if len(spec.Maps) != 1 {
			t.Errorf("the records are maps still: %v", spec.Maps)
		}
	}
}

// Records are not trusted.
func TestFitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spec   *ebpf.CollectionSpec
		change func(maps map[string]*ebpf.MapSpec)
		want   error
	}{
		"no record":        {object(128, 64, 16), nil, ErrRecords},
		"half a record":    {object(128, 64, 8), nil, ErrRecords},
		"no records":       {object(128, 64, 0), func(m map[string]*ebpf.MapSpec) { m[Section].Contents = nil }, ErrRecords},
		"no section":       {object(128, 64, 0), func(m map[string]*ebpf.MapSpec) { delete(m, Section) }, ErrRecords},
		"another's memory": {object(128, 64, 0), func(m map[string]*ebpf.MapSpec) { delete(m, ".data.memory") }, ErrRecords},
		"several":          {object(128, 64, 0), func(m map[string]*ebpf.MapSpec) { m[".data.memory"].MaxEntries = 2 }, ErrRecords},
		"larger than all":  {object(128, 64, 0), func(m map[string]*ebpf.MapSpec) { m[".data.memory"].ValueSize = 63 }, ErrRecords},
		"too much":         {object(128, 1<<19, 0), nil, ErrMemory},
		"too much in all": {object(128, 1<<17, 0), func(m map[string]*ebpf.MapSpec) {
			m[Section+".words"], m[".data.words"] = m[Section+".memory"], m[".data.memory"].Copy()
		}, ErrMemory},
	} {
		if c.change != nil {
			c.change(c.spec.Maps)
		}
		if err := Fit(c.spec, 1024); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
