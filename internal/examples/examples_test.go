package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/examples"
)

// The daemon finds lambda-host in the PATH where it is not beside this binary.
func TestMain(m *testing.M) {
	build, err := filepath.Abs("../../build")
	if err == nil {
		err = os.Setenv("PATH", build+":"+os.Getenv("PATH"))
	}
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func run(t *testing.T, dirs []string, o examples.Options) []examples.Result {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("brings an instance up: needs root")
	}
	results, err := examples.Run(t.Context(), dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// The bundled lambdas answer their examples on both targets.
func TestBundledLambdas(t *testing.T) {
	dirs, err := filepath.Glob("../../lambdas/*/" + api.ExamplesFile)
	if err != nil || len(dirs) < 3 {
		t.Fatalf("%v, %v", dirs, err)
	}
	asked := map[string]int{}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	for _, r := range run(t, dirs, examples.Options{}) {
		if r.Error != "" || r.Skipped != "" {
			t.Errorf("%+v", r)
		}
		asked[r.Lambda+" on "+string(r.Target)]++
	}
	if len(asked) != 2*len(dirs) {
		t.Errorf("asked %v, want each of %v on both targets", asked, dirs)
	}
}

// write makes a lambda that answers nothing to anything; files take the place of its own.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		api.SpecFile: "name: silent\n",
		"silent.c":   "#include <lambda.h>\nint silent(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\treturn lambda_reply(headers, 0, 0);\n}\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each answer is compared, and the wrong ones are counted.
func TestWrongAnswers(t *testing.T) {
	dir := write(t, map[string]string{api.ExamplesFile: "- name: right\n  request: a\n- name: wrong\n  request: a\n  reply: a\n- name: wrong status\n  status: 2\n"})
	results := run(t, []string{dir}, examples.Options{})
	var wrong []string
	for _, r := range results {
		if r.Error != "" {
			wrong = append(wrong, string(r.Target)+" "+r.Example)
		}
	}
	if want := []string{"nic wrong", "nic wrong status", "process wrong", "process wrong status"}; !slices.Equal(wrong, want) || len(results) != 6 {
		t.Errorf("%+v: wrong are %q, want %q", results, wrong, want)
	}
	if err := examples.Failed(results); err == nil || !strings.HasPrefix(err.Error(), "4 of 6 answers") {
		t.Errorf("got %v", err)
	}
}

// What was not built for the NIC is skipped there, with the reason; asked for by name, it is an error.
func TestRefusedTarget(t *testing.T) {
	dir := write(t, map[string]string{
		api.ExamplesFile: "- name: any\n",
		"silent.c": "#include <lambda.h>\n__attribute__((noinline)) static int first(int n, ...)\n{\n\t__builtin_va_list list;\n\t__builtin_va_start(list, n);\n" +
			"\treturn __builtin_va_arg(list, int);\n}\nint silent(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n" +
			"\treturn lambda_reply(headers, 0, first(1, 0));\n}\n",
	})
	results := run(t, []string{dir}, examples.Options{})
	if len(results) != 2 || results[0].Target != api.TargetNIC || results[0].Skipped == "" || results[1].Skipped != "" || results[1].Error != "" {
		t.Errorf("got %+v", results)
	}
	if err := examples.Failed(results); err != nil {
		t.Error(err)
	}
	if results, err := examples.Run(t.Context(), []string{dir}, examples.Options{Targets: []api.Target{api.TargetNIC}}); err == nil {
		t.Errorf("on the NIC alone: %+v", results)
	}
}

// What keeps examples from being asked names the file, or the targets that there are.
func TestNothingToAsk(t *testing.T) {
	good := map[string]string{api.ExamplesFile: "- name: any\n"}
	for name, c := range map[string]struct {
		files   map[string]string
		targets []api.Target
		want    string
	}{
		"no file":    {nil, nil, "there is no "},
		"empty":      {map[string]string{api.ExamplesFile: "[]\n"}, nil, "has no example"},
		"broken":     {map[string]string{api.ExamplesFile: "- nam: x\n"}, nil, api.ExamplesFile},
		"no target":  {good, []api.Target{"foo"}, `"foo" is not a target: use "nic" or "process"`},
		"no compile": {map[string]string{api.ExamplesFile: "- name: any\n", "silent.c": "int silent;\n"}, nil, "does not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("brings an instance up: needs root")
			}
			results, err := examples.Run(t.Context(), []string{write(t, c.files)}, examples.Options{Targets: c.targets})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v, want %q", results, err, c.want)
			}
		})
	}
}
