package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/openfaas/faas-provider/types"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/compiler/report"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// fusedReport is the result of fusing several lambdas.
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

// stepNames are the steps in the words of docs/lambdas.md.
var stepNames = map[string]string{
	"naive":                 "as their authors wrote them",
	"coalescing":            "one copy of what they have in common",
	"match_reduction":       "without tables that route requests",
	"memory_stratification": "each map looked up once per request",
}

func (r *fusedReport) text(w io.Writer) error {
	fmt.Fprintf(w, "one program of %d lambdas: %s\n\n", len(r.Members), strings.Join(r.Members, ", "))
	first := r.Steps[0].Instructions
	for _, s := range r.Steps {
		fmt.Fprintf(w, "  %-40s %6d instructions %+7.1f %%\n", cmp.Or(stepNames[s.Name], s.Name), s.Instructions, 100*float64(s.Instructions-first)/float64(first))
	}
	if last := r.Steps[len(r.Steps)-1].Instructions; last > first {
		fmt.Fprintf(w, "\nit grew by %d instructions: what these lambdas have in common does not pay for sharing it\n", last-first)
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

// deployFused deploys functions as one program.
func deployFused(cmd *cobra.Command, o *options, p daemon.Paths, list []function) error {
	end := ui.Progress(cmd.ErrOrStderr(), fmt.Sprintf("deploying %d lambdas as one program", len(list)))
	deployed, log, err := buildAndDeployFused(cmd.Context(), p, list)
	end()
	fmt.Fprint(cmd.ErrOrStderr(), log)
	if err != nil {
		return err
	}
	if o.json {
		return ui.JSON(cmd.OutOrStdout(), deployed)
	}
	for i := range deployed {
		sayDeployed(cmd, &deployed[i])
	}
	return nil
}

func buildAndDeployFused(ctx context.Context, p daemon.Paths, list []function) (deployed []api.Function, log string, err error) {
	var requests []types.FunctionDeployment
	for i := range list {
		warnings, err := list[i].build(ctx, p)
		log += warnings
		if err != nil {
			return nil, log, err
		}
	}
	shareServices(list)
	for _, fn := range list {
		requests = append(requests, fn.FunctionDeployment)
	}
	deployed, err = daemon.NewClient(p).DeployFused(ctx, requests)
	if err != nil {
		return nil, log, fmt.Errorf("deploy a fused program: %w", err)
	}
	return deployed, log, nil
}

// shareServices leaves each function only the addresses of its own services: the command line gives addresses for all.
func shareServices(list []function) {
	used := map[string]bool{}
	for _, fn := range list {
		for _, s := range fn.spec.Services {
			used[api.AnnotationService+s.Name] = true
		}
	}
	for _, fn := range list {
		if fn.dir == "" {
			continue
		}
		maps.DeleteFunc(*fn.Annotations, func(key, _ string) bool {
			service, ok := strings.CutPrefix(key, api.AnnotationService)
			has := slices.ContainsFunc(fn.spec.Services, func(s api.ServiceSpec) bool { return s.Name == service })
			return ok && !has && used[key]
		})
	}
}
