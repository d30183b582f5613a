package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

const newerKernel = "boot a newer kernel; Debian's own has this from 6.1 on"

var bpf = []probe{
	{"XDP programs", true, xdpPrograms, "the kernel lacks CONFIG_BPF_SYSCALL, is locked down, or a container forbids it"},
	{"BPF JIT", true, jit, "sysctl net.core.bpf_jit_enable=1"},
	{"BPF instruction set v4", true, instructionSet, "boot Linux 6.6 or later"},
	{"XDP fragments", true, fragments, newerKernel},
	{"tail call in a subprogram", true, tailCall, newerKernel},
	{"XDP helpers", true, helpers, newerKernel},
	{"native XDP on veth", true, nativeOnVeth, newerKernel},
	{"kernel type information", false, kernelTypes, "needs CONFIG_DEBUG_INFO_BTF; without it, error messages of the verifier say less"},
	{"device maps", false, deviceMap, newerKernel + "; without it, benchmarks cannot redirect frames"},
	{"live frames", false, liveFrames, "boot Linux 5.18 or later; without it, there is no open-loop load generator"},
}

// Verdicts of XDP, linux/bpf.h.
const (
	xdpDrop = 1
	xdpPass = 2
)

// returning is the smallest XDP program.
func returning(verdict int32) *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Name:    "doctor",
		Type:    ebpf.XDP,
		License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, verdict),
			asm.Return(),
		},
	}
}

func xdpPrograms(context.Context) (string, error) {
	return "can be loaded", features.HaveProgramType(ebpf.XDP)
}

func jit(context.Context) (string, error) {
	prog, err := ebpf.NewProgram(returning(xdpPass))
	if err != nil {
		return "", err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return "", err
	}
	if size, err := info.JitedSize(); err != nil {
		return "", err
	} else if size == 0 {
		return "", errors.New("programs are interpreted")
	}
	return "programs are compiled", nil
}

func instructionSet(context.Context) (string, error) {
	return "accepted", features.HaveV4ISA()
}

func fragments(context.Context) (string, error) {
	spec := returning(xdpPass)
	spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		return "", fmt.Errorf("load a program that takes packets of several fragments: %w", err)
	}
	return "accepted", prog.Close()
}

// tailCall tries what every request does: a tail call made in a subprogram has to return to the caller of that subprogram.
func tailCall(context.Context) (string, error) {
	callee, err := ebpf.NewProgram(returning(xdpDrop))
	if err != nil {
		return "", err
	}
	defer callee.Close()
	slots, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return "", err
	}
	defer slots.Close()
	if err := slots.Put(uint32(0), callee); err != nil {
		return "", err
	}
	caller, err := ebpf.NewProgram(tailCaller(slots.FD()))
	if err != nil {
		return "", err
	}
	defer caller.Close()
	got, err := caller.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		return "", err
	}
	if got != xdpDrop+returned {
		return "", fmt.Errorf("the tail call did not return to its caller: verdict %d", got)
	}
	return "returns to its caller", nil
}

const returned = 16 // what tailCaller adds to its callee's verdict

// tailCaller needs function types: the kernel refuses tail calls in subprograms without (check_abnormal_return in
// kernel/bpf/verifier.c).
func tailCaller(slots int) *ebpf.ProgramSpec {
	integer := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	params := []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: (*btf.Void)(nil)}}}
	function := func(name string) *btf.Func {
		return &btf.Func{Name: name, Type: &btf.FuncProto{Return: integer, Params: params}, Linkage: btf.StaticFunc}
	}
	spec := returning(xdpPass)
	spec.Instructions = asm.Instructions{
		btf.WithFuncMetadata(asm.Call.Label("call").WithSymbol("doctor"), function("doctor")),
		asm.Add.Imm(asm.R0, returned),
		asm.Return(),
		btf.WithFuncMetadata(asm.LoadMapPtr(asm.R2, slots).WithSymbol("call"), function("call")),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}
	return spec
}

func helpers(context.Context) (string, error) {
	var lacking []string
	for _, helper := range []asm.BuiltinFunc{
		asm.FnFibLookup, asm.FnXdpAdjustTail, asm.FnXdpLoadBytes, asm.FnXdpStoreBytes, asm.FnSpinLock, asm.FnKtimeGetCoarseNs,
	} {
		switch err := features.HaveProgramHelper(ebpf.XDP, helper); {
		case errors.Is(err, ebpf.ErrNotSupported):
			lacking = append(lacking, helper.String())
		case err != nil:
			return "", fmt.Errorf("probe %v: %w", helper, err)
		}
	}
	if lacking != nil {
		return "", fmt.Errorf("the kernel lacks %s", strings.Join(lacking, ", "))
	}
	return "all there", nil
}

func kernelTypes(context.Context) (string, error) {
	if _, err := btf.LoadKernelSpec(); err != nil {
		return "", err
	}
	return "the kernel carries it", nil
}

func deviceMap(context.Context) (string, error) {
	return "can be made", features.HaveMapType(ebpf.DevMap)
}

// liveFrames runs a dropping program on packets that the kernel takes for received ones.
func liveFrames(context.Context) (string, error) {
	prog, err := ebpf.NewProgram(returning(xdpDrop))
	if err != nil {
		return "", err
	}
	defer prog.Close()
	_, err = prog.Run(&ebpf.RunOptions{
		Data:   make([]byte, 64),
		Repeat: 1,
		Flags:  unix.BPF_F_TEST_XDP_LIVE_FRAMES,
	})
	if err != nil {
		return "", fmt.Errorf("run a program on live frames: %w", err)
	}
	return "can be run", nil
}
