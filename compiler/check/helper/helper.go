// Package helper lists the kernel functions that a lambda may call. All others are refused, both at compile and at load time: some read
// any kernel memory (bpf_probe_read_kernel), bypass the NIC program (bpf_redirect, bpf_tail_call), or run without bound (bpf_loop).
package helper

import "github.com/cilium/ebpf/asm"

// An Arg is what an argument is (struct bpf_func_proto in include/linux/bpf.h).
type Arg uint8

// The arguments of a Helper, from its first; the others are None.
const (
	None   Arg = iota
	Number     // any
	Size       // of the memory that the previous argument points to
	Map
	Key   // of the map
	Value // of the map
	Read  // memory that is read
	Write // memory that is written to
	Context
	Object // a lock, or a constant string
)

// A Helper is one function.
type Helper struct {
	Time  uint64 // ns: about twice the measured time, without the time for the bytes that it touches
	Args  [5]Arg
	Stage bool // for lambdas with a match stage only
}

// All are the helpers. A match stage sees whole packets, so it may also move their beginning.
var All = map[asm.BuiltinFunc]Helper{
	asm.FnMapLookupElem:     {Time: 40, Args: [5]Arg{Map, Key}},
	asm.FnMapUpdateElem:     {Time: 200, Args: [5]Arg{Map, Key, Value, Number}},
	asm.FnMapDeleteElem:     {Time: 150, Args: [5]Arg{Map, Key}},
	asm.FnXdpLoadBytes:      {Time: 40, Args: [5]Arg{Context, Number, Write, Size}},
	asm.FnXdpStoreBytes:     {Time: 40, Args: [5]Arg{Context, Number, Read, Size}},
	asm.FnXdpGetBuffLen:     {Time: 10, Args: [5]Arg{Context}},
	asm.FnXdpAdjustTail:     {Time: 200, Args: [5]Arg{Context, Number}},
	asm.FnXdpAdjustHead:     {Time: 100, Args: [5]Arg{Context, Number}, Stage: true},
	asm.FnKtimeGetNs:        {Time: 60},
	asm.FnKtimeGetBootNs:    {Time: 60},
	asm.FnKtimeGetCoarseNs:  {Time: 40},
	asm.FnJiffies64:         {Time: 10},
	asm.FnGetPrandomU32:     {Time: 30},
	asm.FnGetSmpProcessorId: {Time: 10},
	asm.FnSpinLock:          {Time: 200, Args: [5]Arg{Object}},
	asm.FnSpinUnlock:        {Time: 20, Args: [5]Arg{Object}},
	asm.FnCsumDiff:          {Time: 40, Args: [5]Arg{Read, Size, Read, Size, Number}},
	asm.FnStrncmp:           {Time: 20, Args: [5]Arg{Read, Size, Object}},
}

// Writes is the register that points to what a helper writes, or r0 if nothing.
func (h Helper) Writes() asm.Register {
	for i, a := range h.Args {
		if a == Write {
			return asm.R1 + asm.Register(i)
		}
	}
	return asm.R0
}
