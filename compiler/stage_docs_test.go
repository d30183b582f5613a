package compiler

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var stageBlock = regexp.MustCompile("(?s)```(yaml|p4|json|c)\n(.*?)```")

// The program in docs/p4.md builds.
func TestDocsOfStages(t *testing.T) {
	text, err := os.ReadFile("../docs/p4.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"yaml": "lambda.yml", "p4": "greeter.p4", "json": "greeter.p4cfg", "c": "greeter.c"}
	dir := t.TempDir()
	for _, block := range stageBlock.FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(filepath.Join(dir, names[block[1]]), []byte(block[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		delete(names, block[1])
	}
	if len(names) > 0 {
		t.Fatalf("the document has no %v", names)
	}
	if _, err := Build(context.Background(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
}
