package compiler

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// ErrToolchain says that a tool that the compiler needs is not installed.
var ErrToolchain = errors.New("toolchain incomplete")

// clangName is the compiler's executable. Its major version is fixed, as our passes are written for it.
const clangName = "clang-19"

// triplets are Debian's names of the architectures, in the paths of their libraries and headers.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// machines are the oldest processors that shared libraries of lambdas run on.
var machines = map[string]string{"amd64": "x86-64-v2", "arm64": "armv8-a"}

type toolchain struct {
	clang   string
	linker  string
	shell   string
	triplet string
	machine string
	visible []string // what the tools need of the host
	marks   []string // files that change when the tools do
	plugin  plugin
}

func findToolchain() (*toolchain, error) {
	triplet, ok := triplets[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("%w: no support for %s", ErrToolchain, runtime.GOARCH)
	}
	link, err := exec.LookPath(clangName)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is missing: install the package clang-19", ErrToolchain, clangName)
	}
	clang, err := filepath.EvalSymlinks(link)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToolchain, err)
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrToolchain, err)
	}
	prefix := filepath.Dir(filepath.Dir(clang))
	t := &toolchain{
		clang: clang, linker: filepath.Join(filepath.Dir(clang), "ld.lld"), shell: shell, triplet: triplet, machine: machines[runtime.GOARCH],
		visible: []string{
			prefix, "/usr/lib/clang", "/usr/lib/" + triplet, "/usr/lib/ld-linux-aarch64.so.1", "/usr/lib64", "/usr/include", shell,
		},
	}
	for _, need := range []struct{ file, pkg string }{
		{t.linker, "lld-19"},
		{"/usr/include/bpf/bpf_helpers.h", "libbpf-dev"},
		{"/usr/include/linux/bpf.h", "linux-libc-dev"},
		{"/usr/lib/" + triplet + "/libc.so", "libc6-dev"},
	} {
		if _, err := os.Stat(need.file); err != nil {
			return nil, fmt.Errorf("%w: %s is missing: install the package %s", ErrToolchain, need.file, need.pkg)
		}
		t.marks = append(t.marks, need.file)
	}
	t.marks = append(t.marks, clang)
	if t.plugin, err = findPlugin(); err != nil {
		return nil, err
	}
	return t, nil
}

// identity tells installations apart without running them: an upgrade changes sizes and times of the files that it replaces.
func (t *toolchain) identity() (string, error) {
	id := t.machine + " " + t.plugin.digest.String()
	for _, file := range t.marks {
		info, err := os.Stat(file)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrToolchain, err)
		}
		id += fmt.Sprintf(" %s %d %d", file, info.Size(), info.ModTime().UnixNano())
	}
	return id, nil
}

// versionOf finds the compiler's version in its messages: the first line that -v prints. A separate run for it would take as long as
// compiling a small lambda: most of that is loading LLVM.
func versionOf(messages string) string {
	line, _, _ := strings.Cut(messages, "\n")
	return line
}

// common are the options of both targets. One source has to give the same bytes on both, so both decide alike what C leaves open: signed
// overflow wraps, char is signed, memory has no types, floating point rounds at each operation, and a floating-point number that does not
// fit an integer is converted to the nearest one.
var common = []string{
	"-std=gnu17", "-O2", "-Wall", "-fwrapv", "-fsigned-char", "-fno-strict-aliasing",
	"-ffp-contract=off", "-fno-math-errno", "-fno-strict-float-cast-overflow",
	"-Werror=implicit-function-declaration", "-Werror=undefined-internal",
	"-ferror-limit=20", "-fno-color-diagnostics", "-fno-crash-diagnostics", "-fdiagnostics-show-note-include-stack",
	"-no-canonical-prefixes", "-I" + sdkDir, "-v",
}

// bpfFlags compile C or LLVM's IR to BPF.
//
// Without loop strength reduction an array is accessed as base plus index, and the verifier accepts the index by the bound that the source
// checks. With it, the index becomes a running pointer, whose bound the verifier has to find by walking all iterations.
//
// Instructions are scheduled in source order. BPF's default order, by register pressure, keeps so many values live at once in long basic
// blocks that they do not fit the kernel's 512 bytes of stack. BPF has no vectors, so nothing is vectorized.
//
// The passes' output is verified before code generation, which takes some ms: see findDefect.
var bpfFlags = []string{
	"-target", "bpf", "-mcpu=v3", "-g", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm", "-disable-lsr", "-mllvm", "-pre-RA-sched=source",
	"-fpass-plugin=" + pluginFile, "-fverify-intermediate-code",
}

// forNIC returns the command that compiles for the NIC.
//
// There is no C library for the NIC: only the compiler's and the SDK's headers are complete.
//
// A long double has 128 bits here. So it differs from double, and the passes refuse it.
func (t *toolchain) forNIC() []string {
	return t.command(slices.Concat(bpfFlags, []string{
		"-ffreestanding", "-fbuiltin", "-Xclang", "-mlong-double-128", "-idirafter", "/usr/include/" + t.triplet, "-c", "-o", "-", unitFile,
	})...)
}

// objectFile is what forHost compiles to and links. It is in the sandbox's memory.
const objectFile = "/tmp/unit.o"

// forHost returns the command that compiles for the host and links. A clang that calls the linker starts a second clang to compile, and each
// start loads LLVM. Two sandboxes would take longer to set up than one. So a shell calls both in one sandbox.
//
// If the source is also compiled for the NIC, x86's long double is switched off: clang folds its constants before any pass sees them, and
// not as on the NIC.
//
// Asking for the remarks of no pass tells the plugin the lines that it refuses, without debug information in the object file.
func (t *toolchain) forHost(targets []api.Target) []string {
	args := []string{"-march=" + t.machine, "-fPIC", "-fpass-plugin=" + pluginFile, "-Rpass=^$"}
	if t.triplet == triplets["amd64"] && slices.Contains(targets, api.TargetNIC) {
		args = append(args, "-mno-x87")
	}
	compile := t.command(append(args, "-c", "-o", objectFile, unitFile)...)
	return []string{t.shell, "-c", shellWords(compile) + " && exec " + shellWords(t.linkHost())}
}

// linkHost returns the command that links for the host. It links only the C library, and every symbol must be found now, not when
// lambda-host loads the library.
func (t *toolchain) linkHost() []string {
	return []string{
		t.linker, "-shared", "-z", "defs", "-z", "now", "--hash-style=gnu", "--eh-frame-hdr", "--no-dependent-libraries", "--build-id=none",
		"--threads=1", "-T", linkerScript, "-L/usr/lib/" + t.triplet, "-o", "-", objectFile, "-lc",
	}
}

// shellWords quotes a command for the shell (POSIX.1-2017, XCU 2.2.2).
func shellWords(command []string) string {
	var words []string
	for _, word := range command {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}

func (t *toolchain) command(args ...string) []string {
	return append(append([]string{t.clang}, common...), args...)
}
