package compiler

import (
	"bytes"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// The kernel gives a program and what it calls 512 bytes of stack together (MAX_BPF_STACK), and each function whole units of 32
// (check_max_stack_depth in kernel/bpf/verifier.c up to Linux 6.7; less since).
const (
	stackBytes = 512
	stackUnit  = 32
)

// stackFlags are what the code generator is told in turn until a program fits its stack: nothing, where the fastest code fits; to
// leave each computation where the source has it, though its result is needed later or not at all; and to keep more in memory
// (compiler/passes/pressure.cpp, whose option is there where clang has loaded the plugin before it reads options).
var stackFlags = [][]string{
	nil,
	{"-mllvm", "-disable-machine-sink"},
	{"-mllvm", "-disable-machine-sink", "-Xclang", "-load", "-Xclang", pluginFile, "-mllvm", "-lambda-stack-words=32"},
	{"-mllvm", "-disable-machine-sink", "-Xclang", "-load", "-Xclang", pluginFile, "-mllvm", "-lambda-stack-words=8"},
}

// fitStack compiles for the NIC by build, which is given stackFlags in turn. Where none helps, the error is that of the first, or the
// verifier's to find.
func fitStack(build func(flags []string) (object []byte, messages string, err error)) (object []byte, messages string, err error) {
	for i, flags := range stackFlags {
		o, m, e := build(flags)
		if i == 0 {
			object, messages, err = o, m, e
		}
		if !exceedsStack(o, e) {
			return o, m, e
		}
	}
	return object, messages, err
}

func exceedsStack(object []byte, err error) bool {
	if err != nil {
		said := err.Error()
		return strings.Contains(said, diagnose.StackLimit) || strings.Contains(said, diagnose.Compiler(diagnose.StackLimit))
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(renameSections(object)))
	if err != nil {
		return false // who reads the object says so
	}
	for _, p := range spec.Programs {
		g, err := flow.New(p.Instructions)
		if err == nil && g.Deepest(0, func(k int) int { return roundUp(g.Frame(k), stackUnit) }) > stackBytes {
			return true
		}
	}
	return false
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
