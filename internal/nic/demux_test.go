package nic

import (
	"testing"

	"github.com/lambdanic/lambdanic/internal/xdp"
)

// TestDemux finds the NIC program by its ID only, and has it take ikernels at all ports but its own.
func TestDemux(t *testing.T) {
	n := open(t, testConfig(t))
	info, err := n.Root().Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	if r, err := n.Demux(id + 1); r != nil || err != nil {
		t.Errorf("got %v, %v for another program", r, err)
	}
	r, err := n.Demux(id)
	if err != nil || r == nil {
		t.Fatalf("got %v, %v", r, err)
	}
	defer r.Close()
	for port, want := range map[uint16]bool{4370: true, 4791: true, 61439: false, 61440: true, 65535: true, 11211: false, 0: false} {
		if r.Takes(port) != want {
			t.Errorf("port %d: got %v, want %v", port, !want, want)
		}
	}
	drop, err := xdp.Verdict(xdp.Drop)
	if err != nil {
		t.Fatal(err)
	}
	defer drop.Close()
	if err := r.Ikernels.Put(uint32(11211), drop); err != nil {
		t.Error(err)
	}
	if err := r.Attached(); err != nil {
		t.Error(err)
	}
}
