package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lambdanic/lambdanic/api"
)

// The commands and the spec of docs/rdma.md are valid.
func TestRDMADocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/rdma.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^(?:sudo )?lambdanic (.*?)(?:\s+#.*)?$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 8 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		cmd, rest, err := root().Find(strings.Fields(c[1]))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err == nil {
			err = cmd.ValidateRequiredFlags()
		}
		if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
			t.Errorf("lambdanic %s: %v", c[1], err)
		}
	}
	_, spec, _ := strings.Cut(string(text), "```yaml\n")
	spec, _, _ = strings.Cut(spec, "```")
	var s api.Spec
	if err := yaml.UnmarshalWithOptions([]byte(spec), &s, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	s = s.Default()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if all, first := s.Message.Records(); all != 8 || first != 4 {
		t.Errorf("%d records, regions from %d on", all, first)
	}
}
