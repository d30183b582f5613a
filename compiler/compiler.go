// Package compiler makes artifacts of lambdas: from one C source, an object file or shared library for each target.
package compiler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/check/native"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// Artifact is what Build makes.
type Artifact = artifact.Artifact

// Options tune Build. The zero value is ready to use.
type Options struct {
	// Store, if set, keeps what is built: an unchanged source is then found there and not compiled again.
	Store *artifact.Store
	// Warn, if set, is called with each warning of the compiler. A source that is found in the store gives none.
	Warn func(Diagnostic)
}

// limits are generous for a lambda and tight for a machine. CPU time bounds a tool that works, however busy the machine is; Wall ends a
// tool that waits. The slowest CPUs that compile, emulated ones and those on cards, are some twenty times slower than a server's.
var limits = sandbox.Limits{
	Wall: 2 * time.Minute, CPU: time.Minute, Memory: 1 << 30, Scratch: 64 << 20, Output: 16 << 20, Processes: 16,
}

// ErrDefect says that the compiler itself is at fault. The build then fails for all targets: what LLVM finds broken may differ from build
// to build.
var ErrDefect = errors.New("the compiler is at fault")

// NodeFailed says whether a build failed through no fault of its source: a tool or the sandbox is missing, the machine is too busy,
// the kernel refused something, or the compiler is at fault.
func NodeFailed(err error) bool {
	return errors.Is(err, ErrToolchain) || errors.Is(err, ErrDefect) || errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrBusy) ||
		errors.As(err, new(syscall.Errno))
}

// Build compiles the lambda in the directory dir, which holds lambda.yml and its C source. If the source is at fault, the error is an
// *Error, an *api.FileError, or wraps ErrSource, ErrForbidden or sandbox.ErrLimit.
func Build(ctx context.Context, dir string, opts Options) (*Artifact, error) {
	source, err := PackSource(dir)
	if err != nil {
		return nil, err
	}
	return BuildSource(ctx, source, opts)
}

// BuildFS is Build for the files of a program, as those embedded in it.
func BuildFS(ctx context.Context, files fs.FS, opts Options) (a *Artifact, err error) {
	dir, err := os.MkdirTemp("", "lambdanic-build-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, files); err != nil {
		return nil, err
	}
	return Build(ctx, dir, opts)
}

// BuildSource is Build for a directory that PackSource packed.
func BuildSource(ctx context.Context, source []byte, opts Options) (*Artifact, error) {
	files, err := readSource(source)
	if err != nil {
		return nil, err
	}
	spec, err := findSpec(files)
	if err != nil {
		return nil, err
	}
	tools, err := findToolchain()
	if err != nil {
		return nil, err
	}
	key, err := cacheKey(source, tools)
	if err != nil {
		return nil, err
	}
	return artifact.Build(opts.Store, key, func() (*Artifact, error) {
		a, err := compile(ctx, tools, spec, files, opts.Warn)
		if err == nil {
			a.Source = source
		}
		return a, err
	})
}

// cacheKey is a digest of everything that an artifact depends on.
func cacheKey(source []byte, tools *toolchain) (digest.Digest, error) {
	identity, err := tools.identity()
	if err != nil {
		return "", err
	}
	_, sdk := headers()
	flags := strings.Join(slices.Concat(tools.forNIC(), tools.forHost([]api.Target{api.TargetNIC, api.TargetProcess})), " ")
	return digest.FromString(strings.Join([]string{digest.FromBytes(source).String(), identity, sdk.String(), flags}, "\n")), nil
}

// sourceRE excludes names of sources that have a special meaning in an #include line.
var sourceRE = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)

func findSpec(files []sandbox.File) (api.Spec, error) {
	named := func(name string) func(sandbox.File) bool {
		return func(f sandbox.File) bool { return f.Path == name }
	}
	i := slices.IndexFunc(files, named(api.SpecFile))
	if i < 0 {
		return api.Spec{}, fmt.Errorf("%w: there is no %s: `lambdanic new` begins a lambda", ErrSource, api.SpecFile)
	}
	spec, err := api.ParseSpec(api.SpecFile, files[i].Data)
	if err != nil {
		return api.Spec{}, err
	}
	there := slices.ContainsFunc(files, named(path.Clean(spec.Source)))
	if !there && spec.P4 != "" && spec.Source == spec.Name+".c" {
		spec.Source = "" // a match stage alone
		return spec, nil
	}
	if !sourceRE.MatchString(spec.Source) || !there {
		return api.Spec{}, fmt.Errorf("%w: %s: source: there is no file %q beside it", ErrSource, api.SpecFile, spec.Source)
	}
	return spec, nil
}

// compile compiles for the spec's targets, side by side.
func compile(ctx context.Context, tools *toolchain, spec api.Spec, files []sandbox.File, warn func(Diagnostic)) (*Artifact, error) {
	sdkFiles, sdkDigest := headers()
	input := slices.Clone(sdkFiles)
	for _, f := range files {
		input = append(input, sandbox.File{Path: path.Join(lambdaDir, f.Path), Data: f.Data})
	}
	unit, warnings, err := unitFiles(spec, files)
	if err != nil {
		return nil, err
	}
	input = append(input, unit...)

	a := &Artifact{Manifest: api.Manifest{Spec: spec, SDK: sdkDigest.String()}}
	var messages [2]string
	var errs [2]error
	var group errgroup.Group
	for i, object := range []struct {
		wanted bool
		build  func(context.Context, *toolchain, []sandbox.File, api.Spec) ([]byte, string, error)
		out    *[]byte
	}{
		{slices.Contains(spec.Targets, api.TargetNIC), buildNIC, &a.BPF},
		{slices.ContainsFunc(spec.Targets, func(t api.Target) bool { return t != api.TargetNIC }), buildHost, &a.Native},
	} {
		if !object.wanted {
			continue
		}
		group.Go(func() error {
			*object.out, messages[i], errs[i] = object.build(ctx, tools, input, spec)
			return nil
		})
	}
	_ = group.Wait() // both are waited for, so that the message does not depend on which is faster
	if errs[1] == nil {
		errs[0] = fallBack(a, errs[0])
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	a.Manifest.Compiler = versionOf(cmp.Or(messages[:]...))
	if warn != nil {
		warnOnce(warn, slices.Concat(warnings, parseDiagnostics(messages[0]), parseDiagnostics(messages[1])))
	}
	return a, describe(a)
}

// warnOnce leaves out warnings that repeat for another target.
func warnOnce(warn func(Diagnostic), list []Diagnostic) {
	said := map[Diagnostic]bool{}
	for _, d := range list {
		if !said[d] {
			warn(d)
		}
		said[d] = true
	}
}

func buildNIC(ctx context.Context, tools *toolchain, input []sandbox.File, spec api.Spec) ([]byte, string, error) {
	return fitStack(func(flags []string) ([]byte, string, error) {
		return run(ctx, tools, append(tools.forNIC(), flags...), append(slices.Clip(input), tools.plugin.file()), spec)
	})
}

func buildHost(ctx context.Context, tools *toolchain, input []sandbox.File, spec api.Spec) ([]byte, string, error) {
	object, messages, err := run(ctx, tools, tools.forHost(spec.Targets), append(slices.Clip(input), tools.plugin.file()), spec)
	if err == nil {
		if err = native.Check(object); err != nil {
			err = fmt.Errorf("lambda %s: %w", spec.Name, err)
		}
	}
	return object, messages, err
}

// fallBack notes in a's manifest what keeps the lambda off the NIC, if a process can run it. It returns all other errors.
func fallBack(a *Artifact, err error) error {
	var refused *Error
	switch {
	case err == nil || a.Native == nil:
		return err
	case errors.As(err, &refused):
		err = errors.New(refused.Faults())
	case !errors.Is(err, metering.ErrUnbounded):
		return err
	}
	a.BPF, a.Manifest.Maps, a.Manifest.Memory = nil, nil, 0
	a.Manifest.Refused = []api.Refusal{{Target: api.TargetNIC, Reason: fmt.Sprintf("the compiler refuses it: %v", err)}}
	return nil
}

// run runs one tool, and returns its output and its messages.
func run(ctx context.Context, tools *toolchain, args []string, input []sandbox.File, spec api.Spec) ([]byte, string, error) {
	out, messages, err := sandbox.Run(ctx, sandbox.Command{
		Args: args, ReadOnly: tools.visible, Files: input, Dir: lambdaDir, Limits: limits,
	})
	err = cmp.Or(findDefect(string(messages)), err)
	var exit *sandbox.ExitError
	switch {
	case err == nil:
		return out, string(messages), nil
	case !errors.As(err, &exit):
		return nil, "", fmt.Errorf("compile lambda %s: %w", spec.Name, err)
	}
	list := parseDiagnostics(string(messages))
	crashed := exit.Code >= signalled
	if placed := unplaced(ctx, tools, args, input, crashed, list); placed != nil {
		list = append(slices.DeleteFunc(list, isUnplaced), placed...)
	} else if crashed || !slices.ContainsFunc(list, Diagnostic.isError) {
		list = append(list, withoutMessage(string(messages), exit, spec))
	}
	return nil, "", &Error{Lambda: spec.Name, Diagnostics: list}
}

// signalled is added to the number of the signal that a tool died of.
const signalled = 128

// gaveUp is the message for a tool without a useful message of its own.
const gaveUp = "the compiler gave up with %v"

// withoutMessage explains a failure without a message about the author's source.
func withoutMessage(messages string, exit *sandbox.ExitError, spec api.Spec) Diagnostic {
	d := Diagnostic{File: spec.Source, Line: 1, Column: 1, Severity: "error"}
	if m := undefinedPrimitive.FindStringSubmatch(messages); m != nil && spec.P4 != "" {
		d.Message = fmt.Sprintf("int %s(EXTRACTED_HEADERS_T *, MATCH_DATA_T *) is not defined: %s calls it as a primitive action", m[1], spec.P4)
	} else if strings.Contains(messages, "has internal linkage but is not defined") {
		d.Message = fmt.Sprintf("int %s(EXTRACTED_HEADERS_T *, MATCH_DATA_T *) is not defined: it is the entry in %s", spec.Entry, api.SpecFile)
	} else {
		d.Message = fmt.Sprintf(gaveUp, exit) + ": make the source simpler"
	}
	return d
}

// describe fills in the manifest's description of the object file and library, and enforces the spec's limit on memory.
func describe(a *Artifact) error {
	m := &a.Manifest
	if a.BPF != nil {
		if err := fallBack(a, describeBPF(a)); err != nil {
			return fmt.Errorf("lambda %s: %w", m.Spec.Name, err)
		}
	}
	if a.BPF == nil {
		var err error
		if m.Layouts, err = nativeLayouts(a.Native); err != nil {
			return fmt.Errorf("lambda %s: %w", m.Spec.Name, err)
		}
	}
	if limit := uint64(m.Spec.Limits.Memory); m.Memory > limit {
		return fmt.Errorf("%w: the objects of lambda %s take %d bytes, limits.memory allows %d: %s (the largest: %s)",
			sandbox.ErrLimit, m.Spec.Name, m.Memory, limit, memoryRemedy(m.Spec), largestObjects(a.BPF))
	}
	return nil
}

// memoryRemedy says what helps where the objects are too large.
func memoryRemedy(s api.Spec) string {
	remedy := "raise it"
	if s.Limits.Memory == api.MaxMemory {
		remedy = "that is the most, so make them smaller"
	}
	if s.Message.Mode == api.ModeAssemble {
		remedy += ", or lower message.max and message.in_flight"
	}
	return remedy
}

func describeBPF(a *Artifact) error {
	a.BPF = renameSections(a.BPF)
	unpriced := metering.Price(a.BPF)
	c, err := inspectFor(a.Manifest.Spec, a.BPF)
	if err != nil {
		return err // it says more than an error of pricing
	}
	a.Manifest.Maps, a.Manifest.Memory, a.Manifest.Layouts = c.Maps, c.Memory, c.Layouts
	return unpriced
}

// renameSections renames the sections .bss..NAME of a BPF object file to .data.NAME. clang omits zeros from an object file only if the
// section's name begins with .bss, and loaders accept several sections of variables only if their names begin with .data or .rodata. The
// names have the same length and are NUL-terminated in the string tables of ELF and BTF.
func renameSections(object []byte) []byte {
	return bytes.ReplaceAll(object, []byte("\x00.bss.."), []byte("\x00.data."))
}
