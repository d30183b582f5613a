// Package report says what the compiler made of a lambda, and why.
//
// # Remarks
//
// What only the passes know, they say as remarks: JSON, one object per line, in the section .lambda.report of the BPF object
// (not allocated, no relocations), which the loader does not read. A line that is no remark, or of a kind that is not known
// here, is left out; so is the whole section where there are none. Each remark names its kind:
//
//	{"kind":"step","step":"memory","instructions":812}
//	{"kind":"object","object":"table","size":1024,"where":"rodata","why":"constant","file":"a.c","line":7}
//	{"kind":"check","state":"inserted","file":"a.c","line":12,"why":"index not known to be below 256"}
//	{"kind":"check","state":"proven","file":"a.c","line":13}
//	{"kind":"loop","state":"metered","cost":40,"file":"a.c","line":20}
//	{"kind":"call","state":"inlined","function":"quick_sort","file":"a.c","line":31}
//	{"kind":"header","header":"udp","field":"dst_port"}
//
// A step is a pass that has run, in order: begin (what clang gives), calls, float, arithmetic, memory, metering, end.
// Its instructions are those of LLVM's IR, without debug and lifetime intrinsics, over all functions with a body.
//
// An object is a variable, a stack allocation or the heap. It is in one of rodata (frozen, the verifier folds it), object (a
// map of its own section, base and checked offset), linear (linear memory), stack, register (it is gone), native (the SDK's).
// What says size 0 has none that is known.
//
// A check is a bounds check, inserted where nothing proves the access, or proven, and so left out. A loop is metered
// (cost in instructions of an iteration, 0 if left to the loader), or walked, where the verifier ends it alone. A call is
// inlined, kept, switched (a function pointer), or iterated (a recursion that became a loop or an explicit stack).
//
// File and line are the author's, without the directory; they are left out where nothing is known.
package report
