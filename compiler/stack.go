package compiler

import (
	"bytes"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// The kernel gives a program and its callees 512 bytes of stack together (MAX_BPF_STACK), in units of 32 for each function
// (check_max_stack_depth in kernel/bpf/verifier.c up to Linux 6.7; smaller units since).
const (
	stackBytes = 512
	stackUnit  = 32
)

// stackFlags are the code generator's options, tried in turn until a program fits its stack: none, for the fastest code; to leave each
// computation where the source has it, even if its result is needed later or not at all; and to keep more in memory (an option of
// compiler/passes/pressure.cpp, which exists if clang loads the plugin before it reads options).
var stackFlags = [][]string{
	nil,
	{"-mllvm", "-disable-machine-sink"},
	{"-mllvm", "-disable-machine-sink", "-Xclang", "-load", "-Xclang", pluginFile, "-mllvm", "-lambda-stack-words=32"},
	{"-mllvm", "-disable-machine-sink", "-Xclang", "-load", "-Xclang", pluginFile, "-mllvm", "-lambda-stack-words=8"},
}

// fitStack calls build, which compiles for the NIC, with stackFlags in turn. If none helps, it returns the first result: its error or an
// object file that the verifier will refuse.
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
		return false // Inspect reports the error
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
