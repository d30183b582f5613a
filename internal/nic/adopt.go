package nic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// adopt opens what an earlier daemon pinned. Any error means that the NIC has to be made anew.
func adopt(c Config, rec *record) (_ *NIC, err error) {
	m := newModules(c)
	prog, err := program.Open(c.pins(), c.limits(), m.halves())
	if err != nil {
		return nil, err
	}
	n, err := newNIC(c, rec, m, prog)
	if err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	n.adopted = true
	if n.root, err = c.openAttachment(prog.Root); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := n.Attached(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if err := n.adoptSlots(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if n.rec.Namespace == "" {
		n.takeAddresses() // the record's are from when the NIC was made
	}
	return n, nil
}

// Attached returns nil while the NIC program is on its interface. The program goes with the interface.
func (n *NIC) Attached() error {
	if err := n.root.holds(n.rec.Index); err != nil {
		return fmt.Errorf("NIC %s: %w", n.rec.Interface, err)
	}
	return nil
}

// adoptSlots takes over every loaded revision: those that the dispatch map points at serve on, the others drain.
func (n *NIC) adoptSlots() error {
	entries, err := os.ReadDir(filepath.Join(n.cfg.pins(), "slots"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := n.sweepState(); err != nil {
		return err
	}
	var draining []*revision
	serving := map[uint32]*revision{}
	for _, e := range entries {
		var slot uint32
		if _, err := fmt.Sscanf(e.Name(), "%d", &slot); err != nil {
			continue
		}
		r, err := n.adoptSlot(slot)
		if err != nil {
			return err
		}
		word := n.dispatch.word(r.entry()).Load()
		current := word == uint64(r.entry()>>16)<<48|uint64(r.state())<<40|uint64(slot)
		if current && r.Record.Workload != 0 {
			serving[r.Record.Workload] = r
		} else {
			draining = append(draining, r)
		}
	}
	n.serve(serving)
	n.dispatch.keepOnly(serving)
	err = n.modules.each(module.Module.Adopted)
	for _, r := range draining {
		n.drain(r)
	}
	return err
}

// sweepState removes the pins of state whose program was not pinned yet, or no longer, when a daemon died: else the next
// revision in that slot would be taken for its owner.
func (n *NIC) sweepState() error {
	var errs []error
	for _, s := range new(revision).stateMaps() {
		pins, err := filepath.Glob(filepath.Join(n.cfg.pins(), s.dir, "*-*"))
		if err != nil {
			return err
		}
		for _, pin := range pins {
			slot, _, _ := strings.Cut(filepath.Base(pin), "-")
			if _, err := os.Stat(filepath.Join(n.cfg.pins(), "slots", slot)); errors.Is(err, os.ErrNotExist) {
				errs = append(errs, load.Unpin(pin))
			}
		}
	}
	return errors.Join(errs...)
}

func (n *NIC) adoptSlot(slot uint32) (*revision, error) {
	r := &revision{Revision: module.Revision{Slot: slot}, served: true}
	if err := n.prog.LnSlots.Lookup(slot, &r.Record); err != nil {
		return nil, fmt.Errorf("read slot %d: %w", slot, err)
	}
	var err error
	if r.prog, err = ebpf.LoadPinnedProgram(n.progPin(slot), nil); err != nil {
		return nil, fmt.Errorf("open the program of slot %d: %w", slot, err)
	}
	for _, s := range r.stateMaps() {
		if err := n.adoptState(slot, s); err != nil {
			return nil, err
		}
	}
	if err := n.accounts.adopt(&r.Revision); err != nil {
		return nil, err
	}
	n.loaded[slot] = r
	n.slots.Mark(slot, 1, true)
	for _, m := range n.modules {
		m.Adopt(&r.Revision)
	}
	return r, nil
}

func (n *NIC) adoptState(slot uint32, s stateMap) error {
	pins, err := filepath.Glob(filepath.Join(n.cfg.pins(), s.dir, fmt.Sprintf("%d-*", slot)))
	if err != nil {
		return err
	}
	for _, pin := range pins {
		_, *s.layout, _ = strings.Cut(filepath.Base(pin), "-")
		if *s.pinned, err = ebpf.LoadPinnedMap(pin, nil); err != nil {
			return fmt.Errorf("open the %s objects of slot %d: %w", s.dir, slot, err)
		}
	}
	return nil
}
