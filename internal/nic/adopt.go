package nic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// adopt opens what an earlier daemon pinned. Any error means that the NIC has to be made anew.
func adopt(c Config, rec *record) (_ *NIC, err error) {
	objs, err := openPinned(c.pins())
	if err != nil {
		return nil, err
	}
	n, err := newNIC(c, rec, objs)
	if err != nil {
		return nil, errors.Join(err, objs.Close())
	}
	n.adopted = true
	if n.root, err = link.LoadPinnedLink(filepath.Join(c.pins(), "root_link"), nil); err != nil {
		return nil, errors.Join(fmt.Errorf("open the pinned link: %w", err), n.Close())
	}
	if err := n.Attached(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if _, err := os.Stat(c.expirePin()); err != nil {
		return nil, errors.Join(errors.New("its expire program is gone"), n.Close())
	}
	if err := errors.Join(n.adoptSlots(), n.adoptCard()); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if n.rec.Namespace == "" {
		n.takeAddresses() // those of the record are from when the NIC was made
	}
	return n, nil
}

// Attached is no error while the NIC program is on its interface. It comes off with the interface.
func (n *NIC) Attached() error {
	info, err := n.root.Info()
	if err != nil {
		return fmt.Errorf("look at the link of %s: %w", n.rec.Interface, err)
	}
	if info.XDP() == nil || int(info.XDP().Ifindex) != n.rec.Index {
		return fmt.Errorf("interface %s is gone, or has lost the NIC program", n.rec.Interface)
	}
	return nil
}

// pinned are the root's programs, by the names of their pins.
func (objs *rootObjects) pinned() map[string]**ebpf.Program {
	return map[string]**ebpf.Program{"root": &objs.LnRoot, "later": &objs.LnLater, "hand_over": &objs.LnHandOver, "rdma": &objs.LnRdma}
}

func openPinned(dir string) (*rootObjects, error) {
	var objs rootObjects
	maps := map[string]**ebpf.Map{
		"ln_calls": &objs.LnCalls, "ln_call_log": &objs.LnCallLog, "ln_retained": &objs.LnRetained, "ln_sending": &objs.LnSending,
		"ln_counters": &objs.LnCounters, "ln_dispatch": &objs.LnDispatch, "ln_granting": &objs.LnGranting,
		"ln_copies": &objs.LnCopies, "ln_handed": &objs.LnHanded,
		"ln_messages": &objs.LnMessages, "ln_next_call": &objs.LnNextCall, "ln_onces": &objs.LnOnces, "ln_passes": &objs.LnPasses,
		"ln_programs": &objs.LnPrograms, "ln_questions": &objs.LnQuestions,
		"ln_own": &objs.LnOwn, "ln_parts": &objs.LnParts, "ln_qps": &objs.LnQps, "ln_regions": &objs.LnRegions,
		"ln_requests": &objs.LnRequests, "ln_scratchpads": &objs.LnScratchpads, "ln_services": &objs.LnServices,
		"ln_slot_stats": &objs.LnSlotStats, "ln_slots": &objs.LnSlots, "ln_splits": &objs.LnSplits,
		"ln_waiting": &objs.LnWaiting,
	}
	for name, m := range maps {
		var err error
		if *m, err = ebpf.LoadPinnedMap(filepath.Join(dir, name), nil); err != nil {
			return nil, errors.Join(fmt.Errorf("open pinned map %s: %w", name, err), objs.Close())
		}
	}
	for name, p := range objs.pinned() {
		var err error
		if *p, err = ebpf.LoadPinnedProgram(filepath.Join(dir, name), nil); err != nil {
			return nil, errors.Join(fmt.Errorf("open the pinned program %s: %w", name, err), objs.Close())
		}
	}
	return &objs, nil
}

// adoptSlots takes over every loaded revision: those that the dispatch map points at serve on, the others drain.
func (n *NIC) adoptSlots() error {
	entries, err := os.ReadDir(filepath.Join(n.cfg.pins(), "slots"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := n.sweepParts(); err != nil {
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
		if current && r.rec.Workload != 0 {
			serving[r.rec.Workload] = r
		} else {
			draining = append(draining, r)
		}
	}
	n.serve(serving)
	n.dispatch.keepOnly(serving)
	n.rdma.keepOnly(serving)
	for _, r := range draining {
		n.drain(r)
	}
	return nil
}

// sweepParts removes the pins of state whose program was not pinned yet, or not any more, when a daemon died: the next
// revision in that slot would be taken for its owner.
func (n *NIC) sweepParts() error {
	var errs []error
	for _, p := range new(revision).parts() {
		pins, err := filepath.Glob(filepath.Join(n.cfg.pins(), p.dir, "*-*"))
		if err != nil {
			return err
		}
		for _, pin := range pins {
			slot, _, _ := strings.Cut(filepath.Base(pin), "-")
			if _, err := os.Stat(filepath.Join(n.cfg.pins(), "slots", slot)); errors.Is(err, os.ErrNotExist) {
				errs = append(errs, removePin(pin))
			}
		}
	}
	return errors.Join(errs...)
}

func (n *NIC) adoptSlot(slot uint32) (*revision, error) {
	r := &revision{slot: slot}
	if err := n.objs.LnSlots.Lookup(slot, &r.rec); err != nil {
		return nil, fmt.Errorf("read slot %d: %w", slot, err)
	}
	var err error
	if r.prog, err = ebpf.LoadPinnedProgram(n.progPin(slot), nil); err != nil {
		return nil, fmt.Errorf("open the program of slot %d: %w", slot, err)
	}
	for _, p := range r.parts() {
		if err := n.adoptPart(slot, p); err != nil {
			return nil, err
		}
	}
	n.loaded[slot] = r
	n.slots.mark(slot, 1, true)
	n.services.mark(r.rec.ServiceBase, r.rec.ServiceCount, true)
	n.buckets.mark(r.rec.BucketBase, r.rec.BucketCount, true)
	return r, nil
}

func (n *NIC) adoptPart(slot uint32, p part) error {
	pins, err := filepath.Glob(filepath.Join(n.cfg.pins(), p.dir, fmt.Sprintf("%d-*", slot)))
	if err != nil {
		return err
	}
	for _, pin := range pins {
		_, *p.layout, _ = strings.Cut(filepath.Base(pin), "-")
		if *p.objects, err = ebpf.LoadPinnedMap(pin, nil); err != nil {
			return fmt.Errorf("open the %s objects of slot %d: %w", p.dir, slot, err)
		}
	}
	return nil
}
