// Package link fuses several lambdas into one NIC program, as the λ-NIC paper does (section 5.1). `lambdanic build` makes one program per
// lambda.
//
// The program finds the member by the workload ID, by comparisons with constants that are filled in at load time (match reduction). Code
// that members have in common is merged (lambda coalescing): equal functions by LLVM's MergeFunctions, and functions that differ only in
// constants by our pass (compiler/passes/coalesce.cpp), as LLVM has none for that. LLVM's outliners do not help: IROutliner makes
// functions of any number of arguments, where BPF has five, and returns values through the stack; the machine outliner does not support
// BPF. Each request looks each of the SDK's maps up once (memory stratification).
//
// Members share one program, so they trust each other, as the functions of one source do. Each has its own global variables, whose names get
// the member's name as a prefix. Its kept objects are a map of its own, with the same layout as without fusion, so that fused and separate
// revisions can take them over from each other.
package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
)

// MaxMembers bounds the comparisons per request.
const MaxMembers = 16

// MembersVariable is the variable that the loader fills with the members' workload IDs, in the order of members.
const MembersVariable = "lambda_members"

// ErrMember says that a lambda cannot be a member. The error that wraps it says why.
var ErrMember = errors.New("not to be fused")

// A Member is one of the lambdas.
type Member struct {
	Name string // within the program: unique
	Spec api.Spec
}

// A Program is several lambdas in one program.
type Program struct {
	Members  []Member // in the order of their workload IDs
	BPF      []byte
	Contents compiler.Contents

	Compiler, SDK string // as in an artifact's manifest
}

// Instructions is the length of the program.
func (p *Program) Instructions() (int, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(p.BPF))
	if err != nil {
		return 0, fmt.Errorf("read the fused program: %w", err)
	}
	return len(spec.Programs[compiler.Program].Instructions), nil
}

// Fuse makes one program of packed sources. Errors are those of compiler.BuildSource, or wrap ErrMember.
func Fuse(ctx context.Context, sources [][]byte) (*Program, error) {
	return fuse(ctx, sources, everything)
}

// stage says which steps are done.
type stage struct {
	coalesce, reduce, stratify bool
}

var everything = stage{true, true, true}

// fuse does the steps that s asks for.
func fuse(ctx context.Context, sources [][]byte, s stage) (*Program, error) {
	if len(sources) == 0 || len(sources) > MaxMembers {
		return nil, fmt.Errorf("%w: %d lambdas: from one to %d go into one program", ErrMember, len(sources), MaxMembers)
	}
	l, err := compiler.NewLinker()
	if err != nil {
		return nil, err
	}
	p := &Program{Members: make([]Member, len(sources)), SDK: l.SDK()}
	modules := make([][]byte, len(sources)+1)
	group, bounded := errgroup.WithContext(ctx)
	for i, source := range sources {
		group.Go(func() (err error) {
			modules[i+1], p.Members[i].Spec, err = l.Member(bounded, source, !s.coalesce)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := p.name(); err != nil {
		return nil, err
	}
	group, bounded = errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		modules[0], p.Compiler, err = l.Unit(bounded, entry(p.Members, s))
		return err
	})
	for i, m := range p.Members {
		group.Go(func() (err error) {
			modules[i+1], err = l.Opt(bounded, fmt.Sprintf("lambda-member<%s>", m.Name), modules[i+1])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := p.build(ctx, l, modules, s); err != nil {
		return nil, err
	}
	return p, nil
}

// check refuses members that would need several of what a program has only one of.
func (p *Program) check() error {
	if p.Contents.Layouts.Migrated != "" || p.Contents.Layouts.From != "" {
		return fmt.Errorf("%w: one of %s has LAMBDA_MIGRATED, which is converted for one lambda at a time: declare it LAMBDA_KEPT, or leave that lambda out",
			ErrMember, p.names())
	}
	return nil
}

func (p *Program) build(ctx context.Context, l *compiler.Linker, modules [][]byte, s stage) error {
	module, err := l.Link(ctx, modules...)
	if err == nil {
		module, err = l.Opt(ctx, s.passes(), module)
	}
	if err == nil {
		p.BPF, p.Contents, err = l.Object(ctx, module)
	}
	var refused *compiler.Error
	switch {
	case err == nil:
		return p.check()
	case errors.As(err, &refused): // each member compiles on its own
		return fmt.Errorf("%w: the program of %s: %s: leave one out, or deploy them one by one", ErrMember, p.names(), refused.Faults())
	}
	return fmt.Errorf("fuse %s: %w", p.names(), err)
}

// passes are the passes over the linked module, before LLVM optimises it.
func (s stage) passes() string {
	passes := "lambda-fuse"
	if s.stratify {
		passes += "<stratify>"
	}
	passes += ",globalopt,function(sroa),constmerge"
	if !s.coalesce {
		return passes + ",lambda-copy"
	}
	return passes + ",mergefunc,lambda-coalesce,globaldce,lambda-share"
}

// name gives the members names that are valid in C, in their order.
func (p *Program) name() error {
	seen := map[string]int{}
	for i := range p.Members {
		m := &p.Members[i]
		if m.Spec.P4 != "" {
			return fmt.Errorf("%w: %s has a match stage of its own (p4), which no workload ID selects: leave it out", ErrMember, m.Spec.Name)
		}
		m.Name = strings.ReplaceAll(m.Spec.Name, "-", "_")
		if seen[m.Name]++; seen[m.Name] > 1 {
			return fmt.Errorf("%w: two lambdas are called %s: what they keep could not be told apart: rename one, or leave it out", ErrMember, m.Name)
		}
	}
	return nil
}

func (p *Program) names() string {
	var names []string
	for _, m := range p.Members {
		names = append(names, m.Spec.Name)
	}
	return strings.Join(names, ", ")
}
