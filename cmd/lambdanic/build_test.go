package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/compiler/link"
	"github.com/lambdanic/lambdanic/compiler/target"
)

func TestBuildSaysWhatBecomesOfALambda(t *testing.T) {
	run := fakeDaemon(t, nil)
	const dir = "../../lambdas/web_server"
	for _, c := range []struct {
		args []string
		want string
		err  error
	}{
		{[]string{"--report"}, "instructions walked", nil},
		{[]string{"--emit", "bpf"}, "Exit", nil},
		{[]string{"--emit", "ll"}, "define ", nil},
		{[]string{"--emit", "c"}, "EXTRACTED_HEADERS_T", nil},
		{[]string{"--emit", "elf"}, "", compiler.ErrForm},
		{[]string{"--verbose"}, "processed ", nil},
		{[]string{"--target", "nfp"}, "web_server.c:103: 'lambda_copy_out' is unavailable: write each text by", errOffload},
		{[]string{"--target", "bluefield"}, "", target.ErrUnknown},
	} {
		out, err := run(append([]string{"build", dir}, c.args...)...)
		if !errors.Is(err, c.err) || !strings.Contains(out, c.want) {
			t.Errorf("%v: no %q in %d bytes (%v)", c.args, c.want, len(out), err)
		}
	}
	if out, err := run("build", "../../compiler/testdata/nfp/page", "--target", "nfp"); err != nil || !strings.Contains(out, "nothing") {
		t.Errorf("a lambda that fits a card: %q, %v", out, err)
	}
	if out, err := run("build", "testdata/unfit", "--target", "nfp"); !errors.Is(err, errOffload) || !strings.Contains(out, "unfit.c:8: a global") {
		t.Errorf("a lambda that does not fit a card: %q, %v", out, err)
	}
	out, err := run("build", "--report", "--json", dir)
	var report struct {
		Lambda   string
		Verified struct{ Instructions int }
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Lambda != "web_server" || report.Verified.Instructions == 0 {
		t.Errorf("%.200s (%v)", out, err)
	}
}

func TestBuildFused(t *testing.T) {
	run := fakeDaemon(t, nil)
	dirs := []string{"../../lambdas/kv_client", "../../lambdas/web_server"}
	out, err := run(append([]string{"build", "--fused", "--json"}, dirs...)...)
	var r fusedReport
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || len(r.Members) != 2 || len(r.Steps) != 4 {
		t.Errorf("%.200s (%v)", out, err)
	}
	out, err = run(append([]string{"build", "--fused"}, dirs...)...)
	if err != nil || !strings.Contains(out, ": kv_client, web_server\n") || !strings.Contains(out, "  each map looked up once per request ") || strings.Contains(out, "grew") {
		t.Errorf("%s (%v)", out, err)
	}
	var grown strings.Builder
	r.Steps = []link.Step{{Name: "naive", Instructions: 9}, {Name: "coalescing", Instructions: 11}}
	if err := r.text(&grown); err != nil || !strings.Contains(grown.String(), "it grew by 2 instructions") {
		t.Errorf("%s (%v)", grown.String(), err)
	}
	if _, err := run(append([]string{"build", "--fused"}, dirs[0], dirs[0])...); !errors.Is(err, link.ErrMember) {
		t.Errorf("a lambda twice: %v", err)
	}
	if _, err := run(append([]string{"build"}, dirs...)...); err == nil {
		t.Error("two lambdas were built as one without --fused")
	}
}

func TestBuildVerboseOfARefusedLambda(t *testing.T) {
	run := fakeDaemon(t, nil)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lambda.yml": "name: wild\ntargets: [nic]\n",
		"wild.c": "#include \"lambda.h\"\nint wild(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n" +
			"\tuint8_t *p = payload(headers, 0, 4);\n\n\tif (!p)\n\t\treturn RETURN_DROP;\n\tp[9] = 1;\n\treturn RETURN_FORWARD;\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run("build", "--verbose", dir)
	var o *diagnose.Objection
	if !errors.As(err, &o) || o.Place.String() != "wild.c:8" || !strings.Contains(out, "processed ") {
		t.Errorf("%v, after %d bytes", err, len(out))
	}
}

func TestBuildSaysWhatKeepsALambdaOffTheNIC(t *testing.T) {
	run := fakeDaemon(t, nil)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lambda.yml": "name: chatty\n",
		"chatty.c": "#include \"lambda.h\"\nint printf(const char *, ...);\nint chatty(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n" +
			"\tprintf(\"hello\");\n\treturn RETURN_FORWARD;\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time, nothing is compiled
		out, err := run("build", dir)
		if err != nil || strings.Count(out, "chatty is not built for nic") != 1 || !strings.Contains(out, "chatty.c:5:") {
			t.Errorf("%s (%v)", out, err)
		}
	}
	for _, flag := range []string{"--report", "--verbose", "--emit=bpf"} {
		if _, err := run("build", flag, dir); !errors.Is(err, artifact.ErrNoObject) || !strings.Contains(err.Error(), "chatty.c:5:") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
