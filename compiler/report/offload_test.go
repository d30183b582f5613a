package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
)

var (
	guideBlock = regexp.MustCompile("(?s)```(yaml|c)\n(.*?)```")
	guideEntry = regexp.MustCompile(`(?m)^int (\w+)\(EXTRACTED_HEADERS_T`)
)

// guide writes the examples of docs/language.md, each into a directory: their sources, with the specs that stand before some.
func guide(t *testing.T) (dirs []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	spec := ""
	for _, block := range guideBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[2], "name:") {
			spec = block[2]
		}
		if block[1] != "c" {
			continue
		}
		name := guideEntry.FindStringSubmatch(block[2])[1]
		if spec == "" {
			spec = "name: " + name + "\n"
		}
		dirs = append(dirs, write(t, name, spec, block[2]))
		spec = ""
	}
	return dirs
}

func write(t *testing.T, name, spec, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"lambda.yml": spec, name + ".c": source} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Whatever keeps a lambda off the card, there is a report with reasons in its author's terms.
func TestEveryLambdaHasAReport(t *testing.T) {
	dirs, err := filepath.Glob("../../lambdas/*/lambda.yml")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v: %v", dirs, err)
	}
	for i, file := range dirs {
		dirs[i] = filepath.Dir(file)
	}
	for _, dir := range append(dirs, guide(t)...) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r, err := Make(t.Context(), pack(t, dir), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Offload) == 0 {
				t.Error("nothing keeps it off the card")
			}
			for _, v := range r.Offload {
				if v.Remedy == "" && !strings.Contains(v.What, compiler.ErrNFP.Error()) || strings.Contains(v.What, "__") || isSDK(v.Place.File) {
					t.Errorf("no author's words: %v", v)
				}
			}
			if err := r.Text(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOffloadNamesTheLine(t *testing.T) {
	for name, c := range map[string]struct{ declarations, statement, want string }{
		"double":  {"", "double x = match_data->payload_len; return lambda_reply(headers, 0, (uint32_t)(x * x));", "probe.c:6: floating point"},
		"fma":     {"#include <math.h>", "double x; lambda_read(headers, &x, 8); x = fma(x, x, x); return lambda_write(headers, &x, 8);", "floating point"},
		"sine":    {"#include <math.h>", "double x; lambda_read(headers, &x, 8); x = sin(x); return lambda_write(headers, &x, 8);", "floating point"},
		"stack":   {"", "uint8_t a[700], i = match_data->request; for (int k = 0; k < 700; k++) a[k] = k * i; return lambda_write(headers, a + a[i], 9);", " bytes of stack"},
		"index":   {"", "uint8_t a[700], i = match_data->request; for (int k = 0; k < 700; k++) a[k] = k * i; return lambda_write(headers, a + a[i], 9);", "probe.c:6: a local array with a variable index"},
		"malloc":  {"#include <stdlib.h>", "uint32_t *p;\np = malloc(match_data->payload_len); if (!p) return RETURN_FAULT; *p = 1; return lambda_write(headers, p, 4);", "a global or static object"},
		"memset":  {"#include <string.h>", "uint8_t a[300]; memset(a, 1, match_data->payload_len & 255); return lambda_write(headers, a, 9);", "many bytes at once"},
		"kept":    {"LAMBDA_KEPT static uint32_t n;", "n++; return lambda_write(headers, &n, 4);", "probe.c:6: a global or static object"},
		"migrate": {"LAMBDA_MIGRATED uint32_t n; LAMBDA_MIGRATE(uint16_t, old) { n = *old; }", "return lambda_write(headers, &n, 4);", "probe.c:3: 'LAMBDA_MIGRATE' is unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			source := lambda(t, "#include \"lambda.h\"\n\n"+c.declarations+"\nint probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n"+c.statement+"\n}\n")
			found, err := Offload(t.Context(), source)
			text := ""
			for _, v := range found {
				text += v.String() + "\n"
			}
			if err != nil || !strings.Contains(text, c.want) {
				t.Errorf("no %q in %q (%v)", c.want, text, err)
			}
		})
	}
	var e *compiler.Error
	if _, err := Offload(t.Context(), lambda(t, "#include \"lambda.h\"\nint probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data) { return none; }\n")); !errors.As(err, &e) {
		t.Errorf("a lambda that does not compile anywhere: %v", err)
	}
}
