package api

import (
	"encoding/json"
	"testing"
)

// Counts come back from JSON as they went, by names, and from the numbers by which a process reports them.
func TestFaultsBy(t *testing.T) {
	by := FaultsBy{FaultTime: 3, FaultBounds: 1}
	text, err := json.Marshal(by)
	if err != nil || string(text) != `{"bounds":1,"time":3}` {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{string(text), `{"1":0,"2":3,"3":1}`, `{"bounds":1,"time":3,"unheard of":7}`} {
		got := FaultsBy{FaultCrash: 1}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != by {
			t.Errorf("%s: %v, %v, want %v", text, got, err, by)
		}
	}
	if by.String() != "3 time, 1 bounds" || (FaultsBy{}).String() != "" {
		t.Errorf("%q", by)
	}
	for f := FaultOwn; f <= FaultCrash; f++ {
		if f.String() == "" || f.Meaning() == "" {
			t.Errorf("fault %d has no name or no meaning", f)
		}
	}
}
