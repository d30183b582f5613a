package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stack.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The file is as OpenFaaS documents it (docs.openfaas.com, "YAML reference").
func TestRead(t *testing.T) {
	path := write(t, `
version: 1.0
provider:
  name: openfaas
  gateway: http://127.0.0.1:8080
functions:
  web:
    lang: lambda-c
    handler: ./web_server
    environment:
      greeting: hello
    annotations:
      lambdanic.targets: process
  built:
    image: web@sha256:0
    namespace: tenant
    labels: {team: a}
`)
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Service != "built" || got[1].Service != "web" {
		t.Fatalf("got %+v", got)
	}
	built, web := got[0], got[1]
	if built.Dir != "" || built.Image != "web@sha256:0" || built.Namespace != "tenant" || (*built.Labels)["team"] != "a" {
		t.Errorf("built: %+v", built)
	}
	if web.Dir != filepath.Join(filepath.Dir(path), "web_server") || web.EnvVars["greeting"] != "hello" ||
		(*web.Annotations)["lambdanic.targets"] != "process" {
		t.Errorf("web: %+v", web)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"no functions":  "functions: {}",
		"unknown field": "functions:\n  web:\n    hander: x",
		"neither":       "functions:\n  web: {lang: c}",
		"both":          "functions:\n  web: {handler: a, image: b}",
		"no YAML":       "functions: [",
		"too long":      "functions:\n  web: {handler: " + strings.Repeat("x", maxSize) + "}",
	} {
		if got, err := Read(write(t, text)); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.yml")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("functions:\n  web: {handler: a}\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		functions, err := Read(write(t, text))
		if err == nil && len(functions) == 0 {
			t.Error("no functions and no error")
		}
	})
}
