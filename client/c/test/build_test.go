// Package test drives the C client: it builds it as its users would, and lets it call a server in Go, over networks good and bad, and
// a NIC.
package test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// make builds a target of the library with further arguments.
func build(t *testing.T, out string, args ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{"-C", "..", "OUT=" + out}, args...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

var (
	drivers     string
	buildDriver sync.Once
)

// driver is a program of ../driver, built with AddressSanitizer and UndefinedBehaviorSanitizer.
func driver(t *testing.T, name string) string {
	t.Helper()
	buildDriver.Do(func() { build(t, drivers, "tests") })
	return filepath.Join(drivers, name)
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lambdanic-c-")
	if err != nil {
		panic(err)
	}
	drivers = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// The installed files are enough to build against: header, both libraries, pkg-config file and manual, by either compiler, in C and C++.
func TestInstall(t *testing.T) {
	prefix := t.TempDir()
	for _, cc := range []string{"gcc", "clang-19"} {
		build(t, t.TempDir(), "CC="+cc, "PREFIX="+prefix, "install")
		source, err := filepath.Abs("../driver/example.c")
		if err != nil {
			t.Fatal(err)
		}
		flags := pkgConfig(t, prefix)
		for name, args := range map[string][]string{
			"shared": append([]string{"-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source}, flags...),
			"static": {"-std=c11", source, flags[0], filepath.Join(prefix, "lib/liblambdanic.a")},
		} {
			program := filepath.Join(t.TempDir(), name)
			if out, err := exec.Command(cc, append(args, "-o", program)...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", cc, err, out)
			}
			cmd := exec.Command(program, "unix:"+prefix+"/nobody", "hello")
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(prefix, "lib"))
			out, _ := cmd.CombinedOutput()
			if want := "hello: a system call failed\n"; string(out) != want {
				t.Errorf("%s, %s: %q, want %q", cc, name, out, want)
			}
		}
	}
	cxx := exec.Command("clang-19", "-x", "c++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "-I"+prefix+"/include/lambdanic", "-")
	cxx.Stdin = strings.NewReader("#include <lambdanic.h>\nint f(lambdanic *c) { return lambdanic_fd(c); }\n")
	if out, err := cxx.CombinedOutput(); err != nil {
		t.Errorf("C++: %v\n%s", err, out)
	}
	var manuals []byte
	for _, name := range []string{"lambdanic.3", "lambdanic-ikernel.3"} {
		text, err := os.ReadFile(prefix + "/share/man/man3/" + name)
		if err != nil {
			t.Error(err)
		}
		manuals = append(manuals, text...)
	}
	checkSymbols(t, prefix+"/lib/liblambdanic.so.1", string(manuals))
	if names := symbols(t, prefix+"/lib/liblambdanic-ikernel.so"); len(names) != 1 || names[0] != "bind" {
		t.Errorf("a preloaded server sees %v, want bind alone", names)
	}
}

// pkgConfig reads the file as pkg-config would: directory and library.
func pkgConfig(t *testing.T, prefix string) []string {
	t.Helper()
	cmd := exec.Command("pkg-config", "--cflags", "--libs", "lambdanic")
	cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+prefix+"/lib/pkgconfig")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pkg-config: %v\n%s", err, out)
	}
	flags := strings.Fields(string(out))
	if len(flags) != 3 {
		t.Fatalf("pkg-config says %q", out)
	}
	return flags
}

// symbols are the names that a library exports.
func symbols(t *testing.T, library string) []string {
	t.Helper()
	out, err := exec.Command("llvm-nm-19", "-D", "--defined-only", "--format=just-symbols", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// checkSymbols: the library exports only its own names, which the manuals mention, and needs only libc.
func checkSymbols(t *testing.T, library, manuals string) {
	t.Helper()
	names := symbols(t, library)
	for _, name := range names {
		if !strings.HasPrefix(name, "lambdanic_") {
			t.Errorf("%s is visible", name)
		}
	}
	header, err := os.ReadFile("../lambdanic.h")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(header), "\nLAMBDANIC_API "); n != len(names) {
		t.Errorf("the header has %d functions, the library %d: %v", n, len(names), names)
	}
	out, err := exec.Command("llvm-readelf-19", "-d", library).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte("(NEEDED)")) && !bytes.Contains(line, []byte("libc.so.6")) {
			t.Errorf("the library needs more than libc: %s", line)
		}
	}
	for _, name := range names {
		if !strings.Contains(manuals, name) {
			t.Errorf("the manuals do not mention %s", name)
		}
	}
}
