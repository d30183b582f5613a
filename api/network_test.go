package api

import "testing"

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]Network{
		"vlan:1": {NetworkVLAN, 1}, "vlan:4094": {NetworkVLAN, 4094}, "vxlan:1": {NetworkVXLAN, 1}, "vxlan:16777215": {NetworkVXLAN, 1<<24 - 1},
	} {
		got, err := ParseNetwork(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "vlan", "vlan:", "vlan:0", "vlan:4095", "vlan:-1", "vlan:1x", "vxlan:0", "vxlan:16777216", "vxlan:4294967297", "VLAN:1", "gre:1", "1", "vlan:1:2"} {
		if got, err := ParseNetwork(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
