package nic

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Mode offload on a virtual NIC says which driver that has and what to do, and leaves nothing behind.
func TestOffloadNeedsACard(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces: needs root")
	}
	c := Config{Instance: "offload", Mode: ModeOffload, RunDir: t.TempDir(), PinDir: "/sys/fs/bpf/lambdanic-offload"}
	n, err := Up(t.Context(), c)
	if err == nil {
		t.Error(errors.Join(n.Close(), Down(t.Context(), c)))
	}
	if !errors.Is(err, ErrNoOffload) || !strings.Contains(err.Error(), "the driver veth") || !strings.Contains(err.Error(), "--mode native") {
		t.Errorf("up: %v", err)
	}
	if _, err := os.Stat(c.PinDir); !os.IsNotExist(err) {
		t.Errorf("pins are left: %v", err)
	}
	if err := checkOffload("lo"); !errors.Is(err, ErrNoOffload) {
		t.Errorf("lo: %v", err)
	}
}
