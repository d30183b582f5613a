package placement

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The application and the topology of the documentation can be read, and HCM places the one on the other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulators.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Placement\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("there are %d files, want an application and a topology", len(blocks))
	}
	app, err := ReadApp([]byte(blocks[0][1]))
	if err != nil {
		t.Fatal(err)
	}
	topo, err := ReadTopology([]byte(blocks[1][1]))
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(topo)
	d, err := s.Add(app)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.HCM(d, Options{}); err != nil {
		t.Fatal(err)
	}
	if broken := s.Check(); len(broken) > 0 {
		t.Error(broken)
	}
}
