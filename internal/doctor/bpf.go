package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

var bpf = []probe{
	{"XDP programs", true, xdpPrograms, "the kernel lacks CONFIG_BPF_SYSCALL, is locked down, or a container forbids it"},
	{"BPF JIT", true, jit, "sysctl net.core.bpf_jit_enable=1"},
	{"kernel type information", false, kernelTypes, "needs CONFIG_DEBUG_INFO_BTF; without it, error messages of the verifier say less"},
	{"device maps", false, deviceMap, kernel.Newer + "; without it, benchmarks cannot redirect frames"},
	{"live frames", false, liveFrames, kernel.Newer + "; without it, there is no open-loop load generator"},
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
