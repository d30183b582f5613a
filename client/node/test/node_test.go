// Package test runs the Node.js client's own tests, and makes its package. What it says on the wire is test/conformance's.
package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// run runs a program in a directory.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestUnits(t *testing.T) {
	run(t, "..", "make")
	out := run(t, "..", "node", "--test", "--test-reporter=tap", "dist/test/")
	if !regexp.MustCompile(`(?m)^# pass [1-9]\d`).MatchString(out) || !strings.Contains(out, "\n# fail 0\n") || !strings.Contains(out, "\n# skipped 0\n") {
		t.Errorf("not all tests ran: %s", out)
	}
}

// The package has all that its users need, to run and to check their types.
func TestPackage(t *testing.T) {
	run(t, "..", "make")
	client, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	packed := strings.Fields(run(t, client, "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", dir))
	run(t, dir, "tar", "xf", packed[len(packed)-1])
	module := filepath.Join(dir, "node_modules/@lambdanic/client")
	if err := os.MkdirAll(filepath.Dir(module), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "package"), module); err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"src", "dist/test", "dist/conformance", "node_modules", "tsconfig.json"} {
		if _, err := os.Stat(filepath.Join(module, unwanted)); err == nil {
			t.Errorf("the package has %s", unwanted)
		}
	}
	for name, text := range map[string]string{
		"program.ts": "import { Client, type Reply } from '@lambdanic/client';\nexport const f = (c: Client): Promise<Reply> => c.call(1);\n" +
			"import type { Ikernel, Registers } from '@lambdanic/client/ikernel';\nexport const g = (k: Ikernel): Promise<Registers> => k.read();\n",
		"package.json": `{"type": "module"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, filepath.Join(client, "node_modules/.bin/tsc"), "--strict", "--module", "node16", "--target", "es2022",
		"--types", "node", "--typeRoots", filepath.Join(client, "node_modules/@types"), "program.ts")
	run(t, dir, "node", "program.js")
}
