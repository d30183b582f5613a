package compiler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const stagePrograms = "p4/testdata"

// Programs in the dialect build unchanged.
func TestBuildStages(t *testing.T) {
	for _, name := range []string{"web_server", "kv_client", "image_transformer", "listings"} {
		t.Run(name, func(t *testing.T) {
			a, err := Build(context.Background(), filepath.Join(stagePrograms, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(a.BPF) == 0 || a.Native != nil {
				t.Errorf("%d bytes for the NIC, %d for the host", len(a.BPF), len(a.Native))
			}
		})
	}
}

// All errors in P4 and rules are reported at once, at their places, as with C.
func TestStageErrors(t *testing.T) {
	for name, test := range map[string]struct {
		file, old, new string
		want           []string
	}{
		"P4": {"web_server.p4", "apply(counter);", "apply(conter);\n\t\t\tapply(gretting);", []string{
			`web_server.p4:39:19: error: table "conter" is not declared: did you mean "counter"?`,
			`web_server.p4:40:10: error: table "gretting" is not declared: did you mean "greeting"?`,
		}},
		"rules": {"web_server.p4cfg", `"do_greet"`, `"do_great"`, []string{
			`web_server.p4cfg:3:76: error: table "greeting" has no action "do_great": expected "do_greet"`,
		}},
		"a function that is missing": {"web_server.c", "int pif_plugin_count", "int pif_plugin_cont", []string{
			`web_server.c:1:1: error: int pif_plugin_count(EXTRACTED_HEADERS_T *, MATCH_DATA_T *) is not defined: web_server.p4 calls it as a primitive action`,
		}},
		"C": {"web_server.c", "job->__data_0 = 0;", "job->__data_9 = 0;", []string{
			`web_server.c:28:7: error: no member named '__data_9'`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(stagePrograms, "web_server"))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, test.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), test.old, test.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = Build(context.Background(), dir, Options{})
			var list *Error
			if !errors.As(err, &list) {
				t.Fatalf("got %v, want an *Error", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
		})
	}
}

// Rules for a table that the program lacks are an error, or a warning where the spec is lenient. Other mistakes stay errors.
func TestLenientRules(t *testing.T) {
	const unknown = `web_server.p4cfg:4:1: %s: the program has no table "elsewhere": expected "counter"`
	build := func(spec, rules string) (warnings []string, err error) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(stagePrograms, "web_server"))); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string][2]string{"lambda.yml": {"p4:", spec + "p4:"}, "web_server.p4cfg": {`"greeting"`, rules + `"greeting"`}} {
			path := filepath.Join(dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err = Build(t.Context(), dir, Options{Warn: func(d Diagnostic) { warnings = append(warnings, d.String()) }})
		return warnings, err
	}
	const extra = "\n\"elsewhere\": {\"default_rule\": 7},\n"
	if _, err := build("", extra); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(unknown, "error")) {
		t.Errorf("strict: %v", err)
	}
	warnings, err := build("lenient_rules: true\n", extra)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], fmt.Sprintf(unknown, "warning")) {
		t.Errorf("lenient: %q, %v", warnings, err)
	}
	if _, err := build("lenient_rules: true\n", extra+"7: "); err == nil || !strings.Contains(err.Error(), "web_server.p4cfg:4:34: error: not JSON") {
		t.Errorf("lenient, and no JSON: %v", err)
	}
}
