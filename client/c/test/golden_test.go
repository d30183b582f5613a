package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// The golden packets are parsed, refused and written back as the program that made them says.
func TestGoldenPackets(t *testing.T) {
	text, err := os.ReadFile("../../../test/golden/packets.json")
	if err != nil {
		t.Fatal(err)
	}
	type parsed struct {
		Error   string         `json:"error"`
		Header  map[string]any `json:"header"`
		Payload string         `json:"payload"`
		Padding int            `json:"padding"`
	}
	var packets []struct {
		Name string `json:"name"`
		Hex  string `json:"hex"`
		parsed
	}
	if err := json.Unmarshal(text, &packets); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, p := range packets {
		lines.WriteString(p.Hex + "\n")
	}
	cmd := exec.Command(driver(t, "parse"))
	cmd.Stdin = strings.NewReader(lines.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answers := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(answers) != len(packets) {
		t.Fatalf("%d answers for %d packets", len(answers), len(packets))
	}
	for i, p := range packets {
		var got struct {
			parsed
			Again string `json:"again"`
		}
		if err := json.Unmarshal(answers[i], &got); err != nil {
			t.Fatalf("%v: %s", err, answers[i])
		}
		if !reflect.DeepEqual(got.parsed, p.parsed) {
			t.Errorf("%s: got %+v, want %+v", p.Name, got.parsed, p.parsed)
		}
		if head := p.Hex[:min(len(p.Hex), 2*api.RPCHeaderLen)]; p.Error == "" && got.Again != head {
			t.Errorf("%s: written back as %s, want %s", p.Name, got.Again, head)
		}
	}
}

// The fuzzer's committed corpus still does no harm, and the fuzzer finds its way from there (tools/fuzz lets it run for longer).
func TestFuzzer(t *testing.T) {
	out := t.TempDir()
	build(t, out, "fuzz")
	if text, err := exec.Command("setarch", "--addr-no-randomize", out+"/fuzz", "-runs=20000", "-seed=1", "-reload=0", "-max_len=8000", "-artifact_prefix="+out+"/", t.TempDir(), "../corpus").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
}
