package test

import (
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
)

// tagWith has driver/tags.c tag packets by keys, a line each.
func tagWith(t *testing.T, keys ...string) []string {
	t.Helper()
	cmd := exec.Command(driver(t, "tags"))
	cmd.Stdin = strings.NewReader(strings.Join(keys, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(keys) {
		t.Fatalf("%d lines for %d keys", len(lines), len(keys))
	}
	return lines
}

// After 2^32 packets, a client has another identity, and is never the anonymous one.
func TestTagsOverflow(t *testing.T) {
	const text = "lnk1:tenant:007:MDEyMzQ1Njc4OWFiY2RlZg"
	key, err := api.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(tagWith(t, " \t"+text+" \r")[0])
	if len(words) != 6 || words[0] != "0" || words[1] != "0" {
		t.Fatalf("%v", words)
	}
	seen := map[[2]uint32]bool{}
	for _, word := range words[2:] {
		packet, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		h, payload, err := api.ParsePacket(packet)
		if id := [2]uint32{h.Client, h.Sequence}; err != nil || h.Client == 0 || seen[id] {
			t.Errorf("%+v (%v)", h, err)
		}
		seen[[2]uint32{h.Client, h.Sequence}] = true
		if h.Flags != key.TagFlags(true) || h.Tag != packets.Tag(&key, h.Flags, h.Append(nil), payload) {
			t.Errorf("%+v has a wrong tag", h)
		}
	}
}

// What is no key is refused when a connection or a directory is opened.
func TestBadKeys(t *testing.T) {
	bad := []string{
		"lnk1", "lnk2:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1::7:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:0:MDEyMzQ1Njc4OWFiY2RlZg", "", "lnk1:",
		"lnk1:tenant", "lnk1:tenant:", "lnk1:tenant::MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:7", "lnk1:tenant:7:", "lnk1:tenant:7 :MDEyMzQ1Njc4OWFiY2RlZg",
		"lnk1:tenant:-1:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:4294967296:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2Rl",
		"lnk1:tenant:99999999999999999999999999:MDEyMzQ1Njc4OWFiY2RlZg", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZh", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg==",
		"lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZmc", "lnk1:tenant:7:!", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg:", "lnk1:tenant:7:MDEyMzQ1Njc4OWFiY2RlZg x",
		"lnk1:tenant:7:MDEyMzQ1Njc4+WFiY2RlZg",
	}
	for i, line := range tagWith(t, bad...) {
		if _, err := api.ParseKey(bad[i]); err == nil || line != "-16 -16" {
			t.Errorf("%q: %s, Go says %v", bad[i], line, err)
		}
	}
}
