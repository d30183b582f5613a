package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/compiler/report"
)

// fusedReport says what became of several lambdas in one program.
type fusedReport struct {
	Members  []string         `json:"members"`
	Steps    []link.Step      `json:"steps"`
	Memory   uint64           `json:"memory"` // bytes of all maps
	Verified *report.Verified `json:"verified,omitempty"`
}

func makeFused(ctx context.Context, dirs []string) (*fusedReport, error) {
	var sources [][]byte
	for _, dir := range dirs {
		source, err := compiler.PackSource(dir)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	p, err := link.Fuse(ctx, sources)
	if err != nil {
		return nil, err
	}
	r := &fusedReport{Memory: p.Contents.Memory}
	for _, m := range p.Members {
		r.Members = append(r.Members, m.Spec.Name)
	}
	if r.Steps, err = link.Steps(ctx, sources); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		r.Verified, err = report.Verify(p.BPF, false)
	}
	return r, err
}

func (r *fusedReport) text(w io.Writer) error {
	fmt.Fprintf(w, "one program of %d lambdas: %v\n\n", len(r.Members), r.Members)
	first := r.Steps[0].Instructions
	for _, s := range r.Steps {
		fmt.Fprintf(w, "  %-22s %6d instructions %+7.1f %%\n", s.Name, s.Instructions, 100*float64(s.Instructions-first)/float64(first))
	}
	_, err := fmt.Fprintf(w, "\nmemory %d bytes\n", r.Memory)
	if r.Verified != nil {
		_, err = fmt.Fprintf(w, "verifier %d instructions walked\n", r.Verified.Instructions)
	}
	return err
}

// buildFused prints what several lambdas become in one program.
func buildFused(ctx context.Context, w io.Writer, o *options, dirs []string) error {
	r, err := makeFused(ctx, dirs)
	if err != nil {
		return err
	}
	if o.json {
		return ui.JSON(w, r)
	}
	return r.text(w)
}
