// Package report says what the compiler made of a lambda, and why.
//
// # Remarks
//
// What only the passes know, they say in remarks (compiler/passes/remarks.h): JSON, one object per line, in the section .lambda.report of
// an object file that is compiled only for its remarks. A line that is not a remark, or of an unknown kind, is skipped. Each remark names
// its kind:
//
//	{"kind":"step","step":"memory","instructions":812}
//	{"kind":"object","object":"table","size":1024,"where":"rodata","why":"constant","file":"a.c","line":7}
//	{"kind":"hint","object":"table","hint":"ctm"}
//	{"kind":"check","state":"inserted","file":"a.c","line":12,"why":"index not known to be below 256"}
//	{"kind":"check","state":"proven","file":"a.c","line":13}
//	{"kind":"loop","state":"metered","cost":40,"file":"a.c","line":20}
//	{"kind":"call","state":"inlined","function":"quick_sort","file":"a.c","line":31}
//	{"kind":"header","state":"read","line":12}
//	{"kind":"atomic","state":"left","object":"hits","why":"it is not an integer","file":"a.c","line":40}
//
// A step is a pass that has run, in order: begin (clang's output), calls, float, arithmetic, memory, metering. Its instructions are those of
// LLVM's IR, without debug and lifetime intrinsics, over all functions with a body.
//
// An object is a variable, a stack allocation or the heap. It is in one of rodata (frozen, the verifier folds it), object (a
// map of its own section, base and checked offset), linear (linear memory of one request), shared (linear memory of all requests; its
// state is written or constant), stack, register (it has no memory), native (the SDK's). Size 0 means that the size is not known. A hint is
// the author's hint for an object, without underscores; with the state heeded, a pass followed it.
//
// A check is a bounds check: inserted, or proven to be unnecessary and left out. A loop is metered (cost in instructions of an iteration, 0
// if left to the loader), or walked by the verifier to its end. A call is inlined, kept, switched (a function pointer), or iterated (a
// recursion that became a loop or an explicit stack).
//
// A header is a line of a match stage's parser or deparser (compiler/match) that still has instructions: read or written.
//
// An atomic is an update of a variable that all CPUs share: atomic, or left as it is, and why.
//
// File and line are the author's, without the directory; they are left out if unknown.
package report

import (
	"context"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/match"
	"github.com/lambdanic/lambdanic/compiler/target"
)

// A Report describes one lambda for the NIC.
type Report struct {
	Lambda string `json:"lambda"`
	// Headers are the packet headers of a lambda with its own match stage. (All others see what the NIC program parses.)
	Headers []Header `json:"headers,omitempty"`
	// Match is how its own match stage, if it has one, was reduced.
	Match   []match.Step `json:"match,omitempty"`
	Steps   []Step       `json:"steps"`
	Objects []Object     `json:"objects"`
	// Placements are where the objects would go on each processor with a model.
	Placements map[string][]target.Placement `json:"placements"`
	Checks     Checks                        `json:"checks"`
	Calls      []Remark                      `json:"calls,omitempty"`
	// Atomics are the updates of variables that all CPUs share.
	Atomics  []Remark       `json:"atomics,omitempty"`
	Loops    []Loop         `json:"loops,omitempty"`
	Bound    metering.Bound `json:"-"`
	Verified *Verified      `json:"verified,omitempty"` // nil if no kernel was asked
	// EstimatedNs is what a run takes on a processor of today, each loop once. It is no measurement.
	EstimatedNs float64            `json:"estimated_ns"`
	Offload     []target.Violation `json:"offload"` // what keeps it off an Agilio CX
}

// A Loop is a metered loop, and the usual time of an iteration.
type Loop struct {
	metering.Loop
	EstimatedNs float64 `json:"estimated_ns"`
}

// A Step is a stage of the compiler, and the number of instructions after it.
type Step struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
	Of           string `json:"of"` // what kind: LLVM or BPF
}

// Checks are the bounds checks.
type Checks struct {
	Inserted int      `json:"inserted"`
	Proven   int      `json:"proven"` // to be unnecessary, and left out
	At       []Remark `json:"at,omitempty"`
}

// Options tune Make.
type Options struct {
	// Verify asks the kernel, which takes root.
	Verify bool
}

// Make compiles a packed source and reports on it. Errors are those of compiler.BuildSource and artifact.ErrNoObject. If the kernel refuses
// the program, the error is a *diagnose.Objection, and the report is complete except for Verified.
func Make(ctx context.Context, source []byte, opts Options) (*Report, error) {
	a, err := compiler.BuildSource(ctx, source, compiler.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := a.Object(api.TargetNIC); err != nil {
		return nil, err
	}
	spec, err := read(a.BPF)
	if err != nil {
		return nil, err
	}
	remarked, err := compiler.Remarked(ctx, source)
	if err != nil {
		return nil, err
	}
	remarks, err := readRemarks(remarked)
	if err != nil {
		return nil, err
	}
	r := &Report{Lambda: a.Manifest.Spec.Name, Placements: map[string][]target.Placement{}}
	r.take(remarks)
	stage, err := compiler.StageOf(source)
	if err != nil {
		return nil, err
	}
	if stage != nil {
		r.Match = stage.Steps
		r.findHeaders(stage, remarks)
	}
	if err := r.countSteps(ctx, source, spec, remarks); err != nil {
		return nil, err
	}
	r.findObjects(spec, remarks)
	r.heedHints(remarks)
	if err := r.place(); err != nil {
		return nil, err
	}
	if r.Offload, err = Offload(ctx, source); err != nil {
		return nil, err
	}
	if err := r.estimate(spec); err != nil {
		return nil, err
	}
	if opts.Verify {
		r.Verified, err = Verify(a.BPF, false)
	}
	return r, err
}

// estimate fills in how long the program and its loops usually take.
func (r *Report) estimate(spec *ebpf.CollectionSpec) error {
	bounds, err := metering.Check(spec)
	if err != nil {
		return err
	}
	e, err := metering.EstimateTime(spec, compiler.Program)
	if err != nil {
		return err
	}
	r.Bound, r.EstimatedNs = bounds[compiler.Program], e.Once
	for i, l := range r.Bound.Loops {
		r.Loops = append(r.Loops, Loop{l, e.Loops[i]})
	}
	return nil
}

// take sorts the passes' remarks.
func (r *Report) take(remarks []Remark) {
	for _, m := range remarks {
		switch m.Kind {
		case "check":
			r.Checks.At = append(r.Checks.At, m)
			if m.State == "proven" {
				r.Checks.Proven++
			} else {
				r.Checks.Inserted++
			}
		case "call":
			r.Calls = append(r.Calls, m)
		case "atomic":
			r.Atomics = append(r.Atomics, m)
		}
	}
}

// place finds the objects' places in each model.
func (r *Report) place() error {
	var objects []target.Object
	for _, o := range r.Objects {
		if o.Where != "register" && o.Size > 0 {
			objects = append(objects, target.Object{Name: o.Name, Size: o.Size, Pattern: o.Pattern, Hint: o.Hint, Uses: o.Uses})
		}
	}
	for _, name := range target.Names() {
		m, err := target.Load(name)
		if err != nil {
			return err
		}
		r.Placements[name] = m.Place(objects)
	}
	return nil
}
