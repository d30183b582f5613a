package nic

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// record describes a NIC. It is written last and compared first: a daemon adopts a NIC that matches its record, and
// makes any other anew.
type record struct {
	Instance     string `json:"instance"`
	Namespace    string `json:"namespace,omitempty"` // "" for a real interface in the host's own
	Interface    string `json:"interface"`
	Index        int    `json:"index"`
	HostEnd      string `json:"host_end,omitempty"`
	Mode         Mode   `json:"mode"`
	module.Reach        // when the NIC was made; addresses may have changed since
	BootID       string `json:"boot_id"`
	Layout       uint32 `json:"layout"`
	Program      string `json:"program"` // digest of the NIC program's object files
	Options      string `json:"options"` // settings when it was loaded
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func (c Config) recordPath() string {
	return filepath.Join(c.RunDir, c.Instance+".nic.json")
}

func readRecord(path string) (*record, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read NIC record: %w", err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, nil // a torn record is no record
	}
	return &r, nil
}

func (r *record) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write NIC record: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write NIC record: %w", err)
	}
	return nil
}

// matches returns nil if the NIC that r describes exists and is the one that c asks for; else why not.
func (r *record) matches(c Config) error {
	switch {
	case r.BootID != bootID():
		return errors.New("the machine was rebooted")
	case r.Layout != uint32(program.RootLnVersionLN_LAYOUT_VERSION):
		return fmt.Errorf("its layout version is %d, ours is %d", r.Layout, program.RootLnVersionLN_LAYOUT_VERSION)
	case r.Program != program.Digest(newModules(c).halves()):
		return errors.New("its NIC program is of another build")
	case r.Options != c.options():
		return errors.New("its options differ")
	case c.Interface != "" && r.Interface != c.Interface, c.Interface == "" && r.Namespace == "":
		return fmt.Errorf("it sits on %s", r.Interface)
	}
	return veth.InNamed(r.Namespace, func() error {
		l, err := netlink.LinkByName(r.Interface)
		if err != nil {
			return fmt.Errorf("its interface %s is gone", r.Interface)
		}
		if l.Attrs().Index != r.Index {
			return fmt.Errorf("its interface %s is another one now", r.Interface)
		}
		return nil
	})
}
