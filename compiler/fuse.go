package compiler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// fusedName is what messages call a program of several lambdas.
const fusedName = "fused"

// A Linker has the tools that make one program of several lambdas (package link), each run in the sandbox.
type Linker struct{ tools *toolchain }

// NewLinker finds the tools.
func NewLinker() (*Linker, error) {
	tools, err := findToolchain()
	if err != nil {
		return nil, err
	}
	l := &Linker{tools}
	for _, name := range []string{"opt", "llvm-link"} {
		if _, err := os.Stat(l.path(name)); err != nil {
			return nil, fmt.Errorf("%w: %s is missing: install the package llvm-19", ErrToolchain, l.path(name))
		}
	}
	return l, nil
}

// Key stands for all that a program of these artifacts is made of.
func (l *Linker) Key(digests []string) (digest.Digest, error) {
	return cacheKey([]byte(strings.Join(append([]string{"fused"}, digests...), "\n")), l.tools)
}

// SDK is the digest of the headers that sources are compiled with.
func (l *Linker) SDK() string {
	_, sdk := headers()
	return sdk.String()
}

func (l *Linker) path(tool string) string { return filepath.Join(filepath.Dir(l.tools.clang), tool) }

// Member compiles a packed source to LLVM's bitcode, as clang gives it: with all functions, and nothing optimised. Its function
// is lambda_member(EXTRACTED_HEADERS_T *), or, where it is to be whole, the program that it is when alone.
func (l *Linker) Member(ctx context.Context, source []byte, whole bool) ([]byte, api.Spec, error) {
	files, err := readSource(source)
	if err != nil {
		return nil, api.Spec{}, err
	}
	spec, err := findSpec(files)
	if err != nil {
		return nil, spec, err
	}
	text := unit(spec)
	if !whole {
		text = append([]byte("#define LAMBDA_MEMBER 1\n"), text...)
	}
	var own []sandbox.File
	for _, f := range files {
		own = append(own, sandbox.File{Path: path.Join(lambdaDir, f.Path), Data: f.Data})
	}
	bitcode, _, err := l.bitcode(ctx, spec, text, own)
	return bitcode, spec, err
}

// Unit compiles a unit of C that is no author's. It also says what the compiler calls itself.
func (l *Linker) Unit(ctx context.Context, text []byte) (bitcode []byte, compiler string, err error) {
	bitcode, messages, err := l.bitcode(ctx, api.Spec{Name: fusedName}, text, nil)
	return bitcode, versionOf(messages), err
}

func (l *Linker) bitcode(ctx context.Context, spec api.Spec, text []byte, own []sandbox.File) (out []byte, messages string, err error) {
	sdk, _ := headers()
	input := append(slices.Clone(sdk), own...)
	// The empty file makes the directory in which the compiler runs, where there is no author's file.
	input = append(input, sandbox.File{Path: unitFile, Data: text}, sandbox.File{Path: path.Join(lambdaDir, ".fused")})
	args := FormPlainLL.args(l.tools.forNIC())
	i := slices.Index(args, "-S")
	return run(ctx, l.tools, slices.Replace(args, i, i+1, "-c", "-Xclang", "-disable-llvm-passes"), input, spec)
}

// Link makes one module of several.
func (l *Linker) Link(ctx context.Context, modules ...[]byte) ([]byte, error) {
	var input []sandbox.File
	args := []string{l.path("llvm-link"), "-o", "-"}
	for i, m := range modules {
		input = append(input, sandbox.File{Path: fmt.Sprintf("/%d.bc", i), Data: m})
		args = append(args, input[i].Path)
	}
	return l.run(ctx, args, input...)
}

// Opt runs passes, as `opt -passes=` names them, ours and LLVM's, over a module.
func (l *Linker) Opt(ctx context.Context, passes string, module []byte) ([]byte, error) {
	args := []string{l.path("opt"), "-load-pass-plugin=" + pluginFile, "-passes=" + passes, "-o", "-", "/in.bc"}
	return l.run(ctx, args, sandbox.File{Path: "/in.bc", Data: module}, l.tools.plugin.file())
}

// Object makes of a module what the NIC loads, and says what is in it. Errors are those of BuildSource. Instructions are left in the
// order of the source: the orders that LLVM prefers, to use a processor's units at once, keep more values than BPF has registers.
func (l *Linker) Object(ctx context.Context, module []byte) ([]byte, Contents, error) {
	args := slices.Concat([]string{l.tools.clang}, bpfFlags, []string{"-O2", "-no-canonical-prefixes", "-fno-crash-diagnostics", "-x", "ir", "-c", "/in.bc", "-o", "-"})
	object, _, err := fitStack(func(flags []string) (object []byte, messages string, err error) {
		object, err = l.run(ctx, append(slices.Clip(args), flags...), sandbox.File{Path: "/in.bc", Data: module}, l.tools.plugin.file())
		return object, "", err
	})
	if err != nil {
		return nil, Contents{}, err
	}
	object = renameSections(object)
	unpriced := metering.Price(object)
	contents, err := Inspect(object)
	if err == nil {
		err = unpriced
	}
	return object, contents, err
}

// run runs one of the tools that no author's source is given to. Where it fails, it is an *Error.
func (l *Linker) run(ctx context.Context, args []string, input ...sandbox.File) ([]byte, error) {
	out, messages, err := sandbox.Run(ctx, sandbox.Command{Args: args, ReadOnly: l.tools.visible, Files: input, Dir: "/tmp", Limits: limits})
	err = cmp.Or(findDefect(string(messages)), err)
	var exit *sandbox.ExitError
	if !errors.As(err, &exit) {
		return out, err
	}
	list := parseDiagnostics(string(messages))
	if exit.Code >= signalled || !slices.ContainsFunc(list, Diagnostic.isError) {
		list = append(list, Diagnostic{Severity: "error", Message: fmt.Sprintf(gaveUp, exit)})
	}
	return nil, &Error{Lambda: fusedName, Diagnostics: list}
}
