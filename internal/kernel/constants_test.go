package kernel

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// sender is a lambda in small: it sends a constant, and has a budget that it must not raise.
func sender() *ebpf.CollectionSpec {
	constant := func(name string) *ebpf.MapSpec {
		return &ebpf.MapSpec{
			Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_RDONLY_PROG,
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte("constant")}},
		}
	}
	return &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{".rodata": constant(".rodata"), ".data.fuel": constant(".data.fuel")},
		Programs: map[string]*ebpf.ProgramSpec{"send": {Name: "send", Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, 6),
			asm.LoadMapValue(asm.R3, 0, 0).WithReference(".rodata"),
			asm.Mov.Imm(asm.R4, 8),
			asm.FnXdpStoreBytes.Call(),
			asm.Mov.Imm(asm.R0, 3), // XDP_TX
			asm.Return(),
		}}},
	}
}

// A program can send its constants, whether this kernel has them read-only or as on one that lets no program send such.
func TestConstantsAreSent(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	for name, fit := range map[string]func(*ebpf.CollectionSpec){"this kernel": Fit, "another": makeWritable} {
		t.Run(name, func(t *testing.T) {
			spec := sender()
			fit(spec)
			if spec.Maps[".data.fuel"].Flags&unix.BPF_F_RDONLY_PROG == 0 {
				t.Error("the budget is no longer read-only")
			}
			c, err := ebpf.NewCollection(spec)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Maps[".rodata"].Put(uint32(0), make([]byte, 8)); err == nil {
				t.Error("the constant can be changed from outside")
			}
			verdict, frame, err := c.Programs["send"].Test(make([]byte, 64))
			if err != nil || verdict != 3 || string(frame[6:14]) != "constant" {
				t.Errorf("verdict %d, frame %q, %v", verdict, frame, err)
			}
		})
	}
}
