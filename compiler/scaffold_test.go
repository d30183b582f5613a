package compiler_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/test/freeport"
)

// A new lambda builds without a warning, and answers its examples when it runs as a process.
func TestScaffoldAnswersItsExamples(t *testing.T) {
	host := lambdaHost(t)
	for _, name := range []string{"hello", "hello-2"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			if err := compiler.Scaffold(dir, name); err != nil {
				t.Fatal(err)
			}
			warn := func(d compiler.Diagnostic) { t.Errorf("warning: %v", d) }
			a, err := compiler.Build(t.Context(), dir, compiler.Options{Warn: warn})
			if err != nil {
				t.Fatal(err)
			}
			examples, err := api.ReadExamples(filepath.Join(dir, api.ExamplesFile))
			if err != nil || len(examples) == 0 {
				t.Fatalf("%v, %v", examples, err)
			}
			invoke := runAsProcess(t, host, a)
			if err := compiler.RunExamples(t.Context(), examples, invoke); err != nil {
				t.Error(err)
			}
			examples[0].Reply = "something else"
			err = compiler.RunExamples(t.Context(), examples, invoke)
			if err == nil || !strings.Contains(err.Error(), "example 1 (small letters become capital): reply is") {
				t.Errorf("a wrong example: got %v", err)
			}
		})
	}
}

// A name that cannot be a function's in C leaves nothing behind, not even a directory that was not there before.
func TestNewRefusesNames(t *testing.T) {
	for _, name := range []string{"int", "while", "main", "payload", "lambda", "lambda_reply", "uint8_t", "9abc", "Hello"} {
		there, missing := t.TempDir(), filepath.Join(t.TempDir(), "new")
		for _, dir := range []string{there, missing} {
			if err := compiler.New(t.Context(), dir, name); err == nil || !strings.Contains(err.Error(), "name") {
				t.Errorf("%s: %v, want another name to be asked for", name, err)
			}
		}
		if left, err := os.ReadDir(there); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", name, left, err)
		}
		if _, err := os.Stat(missing); !os.IsNotExist(err) {
			t.Errorf("%s leaves the directory: %v", name, err)
		}
	}
}

// A new lambda's limits leave room for the heap.
func TestScaffoldLeavesRoomForTheHeap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hello")
	if err := compiler.Scaffold(dir, "hello"); err != nil {
		t.Fatal(err)
	}
	source := "#include \"lambda.h\"\n#include <stdlib.h>\nint hello(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n" +
		"{ char *p = malloc(100); return p ? lambda_write(headers, p, 100) : RETURN_FAULT; }\n"
	if err := os.WriteFile(filepath.Join(dir, "hello.c"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := compiler.Build(t.Context(), dir, compiler.Options{}); err != nil {
		t.Error(err)
	}
}

func runAsProcess(t *testing.T, host string, a *compiler.Artifact) compiler.Invoke {
	t.Helper()
	const workload = 7
	run, err := os.MkdirTemp("", "lncomp-") // short enough for a socket's path, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	backends, err := process.New(process.Config{
		HostBinary: host, RunDir: run, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Listen: freeport.UDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backends.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := backends.Deploy(t.Context(), backend.Deployment{
		Namespace: "test", Name: a.Manifest.Spec.Name, Workload: workload, Revision: 1, Spec: a.Manifest.Spec, Native: a.Native,
	}); err != nil {
		t.Fatal(err)
	}
	endpoint, ok := backends.Endpoint(workload)
	if !ok {
		t.Fatal("deployed, but without an endpoint")
	}
	client, err := lambdanic.Dial(endpoint.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return func(ctx context.Context, method uint32, request []byte) (api.Status, []byte, error) {
		r, err := client.Call(ctx, lambdanic.Request{Workload: workload, Method: method, Body: request})
		return r.Status, r.Body, err
	}
}

// lambdaHost builds lambda-host for this test alone: other packages' tests build it at the same time.
func lambdaHost(t *testing.T) string {
	t.Helper()
	build := t.TempDir()
	if out, err := exec.Command("make", "-C", "../host", "OUT="+build, "all").CombinedOutput(); err != nil {
		t.Fatalf("build lambda-host: %v\n%s", err, out)
	}
	return filepath.Join(build, "lambda-host")
}

func TestScaffoldRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compiler.Scaffold(full, "hello"); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("full directory: got %v", err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := compiler.Scaffold(dir, "Not a name"); err == nil || !strings.Contains(err.Error(), "is not a lambda name") {
		t.Errorf("bad name: got %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
