package compiler

import (
	"os"
	"regexp"
	"testing"
)

var fenced = regexp.MustCompile("(?s)```c\n([^`]*LAMBDA_MIGRATE\\([^`]*)```")

// The guide's example of a migration compiles, and takes over from the revision that it describes.
func TestGuidesMigration(t *testing.T) {
	guide, err := os.ReadFile("../docs/lambdas.md")
	if err != nil {
		t.Fatal(err)
	}
	example := fenced.FindSubmatch(guide)
	if example == nil {
		t.Fatal("there is no example")
	}
	const include = "#include \"lambda.h\"\n"
	const entry = "int probe" + body + " { return RETURN_DROP; }\n"
	before := build(t, lambda(t, include+"LAMBDA_MIGRATED struct count { uint32_t hits; } count;\n"+entry)).Manifest.Layouts
	after := build(t, lambda(t, include+string(example[1])+entry)).Manifest.Layouts
	if after.From != before.Migrated || after.Migrated == after.From || after.Migrated == "" {
		t.Errorf("from %+v to %+v", before, after)
	}
}
