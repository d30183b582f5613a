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

// fusedName is the name of a fused program in messages.
const fusedName = "fused"

// A Linker has the tools that fuse several lambdas into one program (package link), each run in the sandbox.
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

// Key is a digest of all that a program of these artifacts depends on.
func (l *Linker) Key(digests []string) (digest.Digest, error) {
	return cacheKey([]byte(strings.Join(append([]string{"fused"}, digests...), "\n")), l.tools)
}

// SDK is the digest of the headers that sources are compiled with.
func (l *Linker) SDK() string {
	_, sdk := headers()
	return sdk.String()
}

func (l *Linker) path(tool string) string { return filepath.Join(filepath.Dir(l.tools.clang), tool) }

// Member compiles a packed source to unoptimised LLVM bitcode with all functions. Its entry is lambda_member(EXTRACTED_HEADERS_T *) or, if
// whole is set, the complete program of the lambda alone.
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

// Unit compiles a generated unit of C. It also returns the compiler's name and version.
func (l *Linker) Unit(ctx context.Context, text []byte) (bitcode []byte, compiler string, err error) {
	bitcode, messages, err := l.bitcode(ctx, api.Spec{Name: fusedName}, text, nil)
	return bitcode, versionOf(messages), err
}

func (l *Linker) bitcode(ctx context.Context, spec api.Spec, text []byte, own []sandbox.File) (out []byte, messages string, err error) {
	sdk, _ := headers()
	input := append(slices.Clone(sdk), own...)
	// The empty file creates the directory in which the compiler runs, as there are no author's files.
	input = append(input, sandbox.File{Path: unitFile, Data: text}, sandbox.File{Path: path.Join(lambdaDir, ".fused")})
	args := FormPlainLL.args(l.tools.forNIC())
	i := slices.Index(args, "-S")
	return run(ctx, l.tools, slices.Replace(args, i, i+1, "-c", "-Xclang", "-disable-llvm-passes"), input, spec)
}

// Link links several modules into one.
func (l *Linker) Link(ctx context.Context, modules ...[]byte) ([]byte, error) {
	var input []sandbox.File
	args := []string{l.path("llvm-link"), "-o", "-"}
	for i, m := range modules {
		input = append(input, sandbox.File{Path: fmt.Sprintf("/%d.bc", i), Data: m})
		args = append(args, input[i].Path)
	}
	return l.run(ctx, args, input...)
}

// Opt runs passes over a module, ours and LLVM's, by their names for `opt -passes=`.
func (l *Linker) Opt(ctx context.Context, passes string, module []byte) ([]byte, error) {
	args := []string{l.path("opt"), "-load-pass-plugin=" + pluginFile, "-passes=" + passes, "-o", "-", "/in.bc"}
	return l.run(ctx, args, sandbox.File{Path: "/in.bc", Data: module}, l.tools.plugin.file())
}

// Object compiles a module to the object file that the NIC loads, and says what is in it. Errors are those of BuildSource. Instructions stay
// in source order: LLVM's scheduling for parallel execution keeps more values alive than BPF has registers.
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

// run runs a tool that gets no author's source. A failure of the tool is an *Error.
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
