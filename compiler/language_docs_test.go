package compiler_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/rig"
)

var (
	guideBlock = regexp.MustCompile("(?s)```(yaml|c)\n(.*?)```")
	guideEntry = regexp.MustCompile(`(?m)^int (\w+)\(EXTRACTED_HEADERS_T`)
)

// A guideLambda is an example of the guide: perhaps a spec, a source, and requests with the replies to them.
type guideLambda struct{ name, spec, source, examples string }

func readGuide(t *testing.T) (list []guideLambda) {
	t.Helper()
	text, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	var l guideLambda
	for _, block := range guideBlock.FindAllStringSubmatch(string(text), -1) {
		kind, content := block[1], block[2]
		switch {
		case kind == "c" && l.source == "":
			entry := guideEntry.FindStringSubmatch(content)
			if entry == nil {
				t.Fatalf("an example without an entry:\n%s", content)
			}
			l.name, l.source = entry[1], content
		case strings.HasPrefix(content, "name:") && l.source == "":
			l.spec = content
		case strings.HasPrefix(content, "- name:") && l.source != "":
			l.examples = content
			list, l = append(list, l), guideLambda{}
		default:
			t.Fatalf("%s does not follow what is before it:\n%s", kind, content)
		}
	}
	if l != (guideLambda{}) || len(list) == 0 {
		t.Fatalf("%d examples, and %q without requests", len(list), l.name)
	}
	return list
}

func (l guideLambda) build(t *testing.T) *compiler.Artifact {
	t.Helper()
	if l.spec == "" {
		l.spec = "name: " + l.name + "\n"
	}
	dir := t.TempDir()
	for name, text := range map[string]string{api.SpecFile: l.spec, l.name + ".c": l.source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := compiler.Build(t.Context(), dir, compiler.Options{Warn: func(d compiler.Diagnostic) { t.Errorf("warning: %v", d) }})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Every example of docs/language.md is a lambda that answers on the NIC, and as a process, as the guide says.
func TestLanguageGuide(t *testing.T) {
	r := rig.ForTest(t, "guide")
	for _, l := range readGuide(t) {
		t.Run(l.name, func(t *testing.T) {
			examples, err := api.ParseExamples("docs/language.md", []byte(l.examples))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Put(t.Context(), l.build(t)); err != nil {
				t.Fatal(err)
			}
			for _, e := range examples {
				for place, ask := range map[string]func(uint32, []byte) (rig.Answer, error){"NIC": r.AskNIC, "process": r.AskProcess} {
					answer, err := ask(e.Method, e.RequestBytes())
					if err == nil {
						err = e.Check(api.Status(answer.Code), answer.Payload)
					}
					if err != nil || answer.Type != api.TypeResponse {
						t.Errorf("%s, %s: %v: %v", e.Name, place, answer, err)
					}
				}
			}
			if err := r.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
