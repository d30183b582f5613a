// Package tests runs the Python client's own tests, checks its types, and makes its wheel. What it says on the wire is test/conformance's.
package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const tools = "../../../build/client-python"

// run runs a program in the client's directory.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = "..", append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestUnits(t *testing.T) {
	out := run(t, []string{"PYTHONPATH=src"}, "python3", "-W", "error", "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	if !strings.Contains(out, "\nOK") || strings.Contains(out, "Ran 0 tests") || strings.Contains(out, "skipped") {
		t.Errorf("not all tests ran: %s", out)
	}
}

// The types are whole, and the wheel has all that its users need to check theirs.
func TestPackage(t *testing.T) {
	run(t, nil, "make")
	bin, err := filepath.Abs(tools + "/bin")
	if err != nil {
		t.Fatal(err)
	}
	run(t, nil, bin+"/mypy", "--cache-dir", filepath.Join(bin, "../mypy"))
	run(t, []string{"PYTHONPATH=src"}, bin+"/python", "-W", "error", "-m", "unittest", "tests.test_tag") // with siphash24
	dir := t.TempDir()
	source := filepath.Join(dir, "source") // setuptools leaves files beside it
	if err := os.CopyFS(source, os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	run(t, nil, bin+"/pip", "wheel", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "-w", dir, source)
	wheels, _ := filepath.Glob(filepath.Join(dir, "lambdanic-*-py3-none-any.whl"))
	if len(wheels) != 1 {
		t.Fatalf("wheels: %v", wheels)
	}
	installed := filepath.Join(dir, "installed")
	run(t, nil, bin+"/pip", "install", "--disable-pip-version-check", "--no-index", "--target", installed, wheels[0])
	program := filepath.Join(dir, "program.py")
	text := "from lambdanic import Client, Reply\n\n\ndef f(c: Client) -> Reply:\n    return c.call(1)\n"
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"MYPYPATH=" + installed, "PYTHONPATH=" + installed}
	run(t, env, bin+"/mypy", "--strict", "--config-file", os.DevNull, "--cache-dir", filepath.Join(bin, "../mypy-wheel"), program)
	run(t, env, "python3", program)
}
