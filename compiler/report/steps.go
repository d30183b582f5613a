package report

import (
	"bytes"
	"context"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/compiler"
)

// countSteps counts the instructions after each step, from the passes' remarks, else from LLVM's text.
func (r *Report) countSteps(ctx context.Context, source []byte, spec *ebpf.CollectionSpec, remarks []Remark) error {
	for _, m := range remarks {
		if m.Kind == "step" {
			r.Steps = append(r.Steps, Step{m.Step, m.Instructions, "LLVM"})
		}
	}
	if len(r.Steps) == 0 {
		plain, passed := 0, 0
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) { plain, err = count(ctx, source, compiler.FormPlainLL); return err })
		group.Go(func() (err error) { passed, err = count(ctx, source, compiler.FormLL); return err })
		if err := group.Wait(); err != nil {
			return err
		}
		r.Steps = []Step{{"clang", plain, "LLVM"}, {"passes", passed, "LLVM"}}
	}
	r.Steps = append(r.Steps, Step{"object", len(spec.Programs[compiler.Program].Instructions), "BPF"})
	return nil
}

func count(ctx context.Context, source []byte, form compiler.Form) (int, error) {
	text, err := compiler.Emit(ctx, source, form)
	return countLLVM(text), err
}

// countLLVM counts the instructions in the text of a module: the indented lines of function bodies, without debug records
// and what only marks where variables live.
func countLLVM(text []byte) (n int) {
	inside := false
	for line := range bytes.Lines(text) {
		switch s := string(line); {
		case strings.HasPrefix(s, "define "):
			inside = true
		case strings.HasPrefix(s, "}"):
			inside = false
		case !inside || !strings.HasPrefix(s, "  ") || strings.HasPrefix(s, "   "):
		case strings.HasPrefix(s, "  #dbg_") || strings.Contains(s, "@llvm.dbg.") || strings.Contains(s, "@llvm.lifetime."):
		case strings.HasPrefix(s, "  ]") || strings.HasPrefix(s, "  to label"):
		default:
			n++
		}
	}
	return n
}
