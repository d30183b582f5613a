package compiler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// A Form is what a lambda for the NIC becomes on its way through the compiler.
type Form string

// The forms, from the source on.
const (
	FormC       Form = "c"        // what clang reads: the SDK's headers, the author's source, the entry
	FormPlainLL Form = "plain-ll" // LLVM IR of clang alone
	FormLL      Form = "ll"       // LLVM IR behind the passes
	FormBPF     Form = "bpf"      // instructions, with lines of the source between them
)

// Forms lists the forms that Emit knows.
var Forms = []Form{FormC, FormPlainLL, FormLL, FormBPF}

// FormNames lists the forms for people.
func FormNames() string {
	var names []string
	for _, f := range Forms {
		names = append(names, string(f))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ErrForm says that there is no such form.
var ErrForm = errors.New("unknown form")

// Emit compiles a packed source for the NIC up to a form, which it returns as text. Errors are those of BuildSource.
func Emit(ctx context.Context, source []byte, form Form) ([]byte, error) {
	if !slices.Contains(Forms, form) {
		return nil, fmt.Errorf("%w %q: use %s", ErrForm, form, FormNames())
	}
	if form == FormBPF {
		a, err := BuildSource(ctx, source, Options{})
		if err != nil {
			return nil, err
		}
		object, err := a.Object(api.TargetNIC)
		if err != nil {
			return nil, err
		}
		return disassemble(object)
	}
	return emit(ctx, source, form.args, around{})
}

// RemarkSection is the section of an object file by Remarked that holds the passes' remarks.
const RemarkSection = ".lambda.report"

// Remarked compiles a packed source for the NIC to an object file with the passes' remarks, which is not to be loaded.
func Remarked(ctx context.Context, source []byte) ([]byte, error) {
	ask := fmt.Sprintf("__asm__(\".pushsection %s,\\\"\\\",@progbits\\n.popsection\");\n", RemarkSection)
	return emit(ctx, source, func(command []string) []string { return command }, around{behind: ask})
}

// around is how emit differs from a build.
type around struct {
	ahead, behind string               // C before and behind the unit
	accept        func(api.Spec) error // nil: all
}

// emit compiles with a changed command.
func emit(ctx context.Context, source []byte, change func(command []string) []string, with around) ([]byte, error) {
	files, err := readSource(source)
	if err != nil {
		return nil, err
	}
	spec, err := findSpec(files)
	if err != nil {
		return nil, err
	}
	if with.accept != nil {
		if err := with.accept(spec); err != nil {
			return nil, err
		}
	}
	tools, err := findToolchain()
	if err != nil {
		return nil, err
	}
	input, _ := headers()
	input = slices.Clone(input)
	for _, f := range files {
		input = append(input, sandbox.File{Path: path.Join(lambdaDir, f.Path), Data: f.Data})
	}
	unit, _, err := unitFiles(spec, files)
	if err != nil {
		return nil, err
	}
	input = append(append(input, unit...), tools.plugin.file())
	if i := slices.IndexFunc(input, func(f sandbox.File) bool { return f.Path == unitFile }); i >= 0 {
		input[i].Data = slices.Concat([]byte(with.ahead), input[i].Data, []byte(with.behind))
	}
	out, _, err := fitStack(func(flags []string) ([]byte, string, error) {
		return run(ctx, tools, change(append(tools.forNIC(), flags...)), input, spec)
	})
	return out, err
}

func isPlugin(arg string) bool { return strings.HasPrefix(arg, "-fpass-plugin=") }

// args turns the command that compiles to an object file into the one that compiles to the form.
func (f Form) args(command []string) (args []string) {
	for _, arg := range command {
		switch {
		case arg == "-c" && f == FormC:
			args = append(args, "-E", "-P")
		case arg == "-c":
			args = append(args, "-S", "-emit-llvm")
		case f == FormPlainLL && isPlugin(arg):
		default:
			args = append(args, arg)
		}
	}
	return args
}

func disassemble(object []byte) ([]byte, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("disassemble BPF object: %w", err)
	}
	var b bytes.Buffer
	for _, name := range []string{Program, MigrateProgram} {
		if p := spec.Programs[name]; p != nil {
			fmt.Fprintf(&b, "%v\n", p.Instructions)
		}
	}
	return b.Bytes(), nil
}
