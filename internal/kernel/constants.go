package kernel

import (
	"errors"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// Fit adapts a lambda's object file where the running kernel would wrongly refuse it. Where
// bpf_xdp_store_bytes() does not take a constant, the lambda's constants are no longer read-only for its programs: a program that writes
// to its own constants is not refused there.
func Fit(spec *ebpf.CollectionSpec) {
	if !sendsConstants() {
		makeWritable(spec)
	}
}

func makeWritable(spec *ebpf.CollectionSpec) {
	for name, m := range spec.Maps {
		if strings.HasPrefix(name, ".rodata") {
			m.Flags &^= unix.BPF_F_RDONLY_PROG
		}
	}
}

// sendsConstants says whether bpf_xdp_store_bytes() takes bytes of a read-only map. The verifiers of Linux 6.16 and 6.17 assume that it
// writes to what it reads; those of 6.12.117, 6.18.15 and 7.3 do not.
var sendsConstants = sync.OnceValue(func() bool {
	constant, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_RDONLY_PROG})
	if err != nil {
		return true // loading the lambda's own maps will show the error
	}
	defer constant.Close()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R2, 0),
		asm.LoadMapValue(asm.R3, constant.FD(), 0),
		asm.Mov.Imm(asm.R4, 8),
		asm.FnXdpStoreBytes.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	var refused *ebpf.VerifierError
	if err == nil {
		program.Close()
	}
	return !errors.As(err, &refused)
})
