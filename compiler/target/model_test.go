package target

import (
	"errors"
	"strings"
	"testing"
)

func TestModels(t *testing.T) {
	for _, name := range Names() {
		m, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != name {
			t.Errorf("models/%s.yml calls itself %s", name, m.Name)
		}
		for _, memory := range m.Memories {
			if memory.Size == 0 || memory.Cycles[0] > memory.Cycles[1] || len(memory.Patterns) == 0 {
				t.Errorf("%s: memory %+v", name, memory)
			}
		}
		for _, pattern := range []Pattern{ReadOnly, ReadMostly, Written, Request, Shared, Keyed} {
			if p := m.Place([]Object{{Name: "o", Size: 64, Pattern: pattern}}); p[0].Memory == "" {
				t.Errorf("%s: nothing takes what is %s", name, pattern)
			}
		}
	}
	if _, err := Load("../model"); !errors.Is(err, ErrUnknown) {
		t.Errorf("loaded, or %v", err)
	}
	if _, err := Parse([]byte("name: x\nclok_mhz: 3\n")); err == nil {
		t.Error("took a field that there is none of")
	}
}

// The paper's placement for this card: pages of the web server in cluster memory, images in internal memory.
func TestPlacement(t *testing.T) {
	objects := []Object{
		{Name: "pages", Size: 8 << 10, Pattern: ReadOnly, Uses: 3},
		{Name: "image", Size: 256 << 10, Pattern: Request, Uses: 8},
		{Name: "counter", Size: 8, Pattern: Written, Uses: 1},
		{Name: "table", Size: 1 << 10, Pattern: ReadOnly, Uses: 2},
		{Name: "scratch", Size: 64, Pattern: Request, Uses: 20},
		{Name: "here", Size: 100, Pattern: Written, Hint: "imem"},
		{Name: "cache", Size: 64 << 20, Pattern: Keyed},
		{Name: "endless", Size: 8 << 30, Pattern: Written},
	}
	want := map[string]string{
		"pages": "CTM", "image": "IMEM", "counter": "CTM", "table": "CLS", "scratch": "LM", "here": "IMEM", "cache": "EMEM", "endless": "",
	}
	for _, p := range agilio(t).Place(objects) {
		if p.Memory != want[p.Object.Name] || p.Why == "" {
			t.Errorf("%s is in %q (%s), want %q", p.Object.Name, p.Memory, p.Why, want[p.Object.Name])
		}
	}
}

func TestMemoryFills(t *testing.T) {
	m := agilio(t)
	var objects []Object
	for i := range 20 {
		objects = append(objects, Object{Name: string(rune('a' + i)), Size: 400, Pattern: Request, Uses: i})
	}
	placed := m.Place(objects)
	for i, p := range placed {
		want := "LM" // ten of them fit; those that are used most come first
		if i >= 10 {
			want = "CLS"
		}
		if p.Memory != want {
			t.Errorf("%d: %s in %s (%s), want %s", i, p.Object.Name, p.Memory, p.Why, want)
		}
	}
	if last := placed[19]; last.Object.Name != "a" || !strings.Contains(last.Why, "left") {
		t.Errorf("last %+v", last)
	}
	hinted := m.Place([]Object{{Name: "cold", Size: 4000, Pattern: Request, Uses: 1}, {Name: "warm", Size: 400, Pattern: Request, Hint: "hot"}})
	if hinted[0].Object.Name != "warm" || hinted[0].Memory != "LM" {
		t.Errorf("hot objects come second: %+v", hinted)
	}
	kernel, err := Load("kernel")
	if err != nil {
		t.Fatal(err)
	}
	if p := kernel.Place([]Object{{Name: "o", Size: 8, Pattern: Written, Hint: "ctm"}}); p[0].Memory != "array" {
		t.Errorf("a hint for another processor is heard: %+v", p)
	}
}

// Read-mostly objects go where that is best, whatever the code writes. A hint without meaning on a processor is reported so.
func TestHints(t *testing.T) {
	for _, tc := range []struct {
		object      Object
		memory, why string
	}{
		{Object{Name: "o", Size: 64, Pattern: Written}, "CTM", "fastest for what is written"},
		{Object{Name: "o", Size: 64, Pattern: Written, Hint: "read_mostly"}, "CLS", "__read_mostly, as its author says"},
		{Object{Name: "o", Size: 64, Pattern: Request, Hint: "read_mostly"}, "LM", "says nothing of what is request"},
		{Object{Name: "o", Size: 64, Pattern: Written, Hint: "emem"}, "EMEM", "asked for with __emem"},
		{Object{Name: "o", Size: 64, Pattern: Written, Hint: "hot"}, "CTM", "__hot: before others"},
		{Object{Name: "o", Size: 64, Pattern: Written, Hint: "gpu"}, "CTM", "__gpu is for another processor"},
	} {
		p := agilio(t).Place([]Object{tc.object})[0]
		if p.Memory != tc.memory || !strings.Contains(p.Why, tc.why) {
			t.Errorf("%+v: in %s, %s; want %s, %s", tc.object, p.Memory, p.Why, tc.memory, tc.why)
		}
	}
}
