// Package dispatcher has several XDP programs share an interface, together with xdp-loader and all others that follow libxdp's protocol
// (lib/libxdp/protocol.org of xdp-tools): a dispatcher is attached, and calls the programs, each in the place of one of its functions.
//
// A dispatcher never changes. Who adds or removes a program makes a new one with the programs that are to run, and puts it in the other's place at once.
package dispatcher

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem dispatcher -type protocol bpf dispatcher.bpf.c

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// Priority is that of our programs: programs with a lower number run before them. It is what programs have that say none.
const Priority = 50

// attempts is how often a dispatcher is made anew because another was put on the interface meanwhile.
const attempts = 10

// Join adds a program that Target is for to those of the interface, which have to share it already. What the program passes goes on to those after
// it. Call it on a thread of the interface's network namespace.
func Join(prog *ebpf.Program, index int) error {
	lock, err := lockPins()
	if err != nil {
		return err
	}
	defer lock.Close()
	for range attempts {
		if err = change(index, func(s *set) ([]member, error) { return s.with(prog) }); !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return fmt.Errorf("others change the interface's XDP programs all the time: %w", err)
}

// with lists the members and ours, as they are to run.
func (s *set) with(prog *ebpf.Program) ([]member, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	m, err := newMember(prog)
	if err != nil {
		return nil, err
	}
	m.actions, m.priority, m.flags = 1<<xdp.Pass|1<<noProgram, Priority, unix.BPF_F_XDP_HAS_FRAGS
	members := append(slices.Clone(s.members), m)
	slices.SortStableFunc(members, member.compare)
	return members, nil
}

// Leave removes a program from those of its interface, if it is one of them, and its pins, wherever they are. Call it on a thread of the
// interface's network namespace.
func Leave(id ebpf.ProgramID) error {
	if _, err := os.Stat(pins()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockPins()
	if err != nil {
		return err
	}
	defer lock.Close()
	for range attempts {
		dirs, err := dirsOf(id)
		if err != nil || len(dirs) == 0 {
			return err
		}
		for _, d := range dirs {
			if err := d.leave(id); err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
		}
	}
	return fmt.Errorf("XDP program %d is put onto its interface again and again: unload it by `xdp-loader unload --id %d`", id, id)
}

// leave takes a program off the interface if the directory's dispatcher is attached, and otherwise removes its pins. EEXIST says that the dispatcher was
// replaced meanwhile.
func (d dir) leave(id ebpf.ProgramID) error {
	if at, _, err := xdp.Attached(d.index); err != nil || at != d.dispatcher {
		return d.forget(id) // the interface is gone, or has another dispatcher
	}
	return change(d.index, func(s *set) ([]member, error) { return s.without(id), nil })
}

// Running lists the programs that run on an interface: those that share it, or the only one. Call it on a thread of the interface's network namespace.
func Running(index int) ([]ebpf.ProgramID, xdp.Mode, error) {
	id, mode, err := xdp.Attached(index)
	if err != nil || id == 0 {
		return nil, "", err
	}
	s, err := openLocked(index)
	var other *OtherProgramError
	if errors.As(err, &other) {
		return []ebpf.ProgramID{other.ID}, mode, nil
	}
	if err != nil {
		return nil, "", err
	}
	defer s.close()
	var ids []ebpf.ProgramID
	for _, m := range s.members {
		ids = append(ids, m.id)
	}
	return ids, s.mode, nil
}

// Shared says in which mode the programs of an interface run that Join adds one to; "" if it has none. Where none can be added, it says why.
func Shared(index int) (xdp.Mode, error) {
	id, mode, err := xdp.Attached(index)
	if err != nil || id == 0 {
		return "", err
	}
	s, err := openLocked(index)
	if err != nil {
		return "", err
	}
	defer s.close()
	return mode, s.room()
}

// Holds returns nil while the program runs on the interface. Call it on a thread of the interface's network namespace.
func Holds(id ebpf.ProgramID, index int) error {
	ids, _, err := Running(index)
	if err != nil {
		return err
	}
	if !slices.Contains(ids, id) {
		return errors.New("the interface is gone, or has lost the XDP program")
	}
	return nil
}

// Target loads a dispatcher that programs are loaded for, to join others: at function TargetFunction. It is attached nowhere.
func Target() (*ebpf.Program, error) {
	return load(make([]member, 1)) // the verifier removes the functions of places beyond
}

// TargetFunction is a function of Target's program.
const TargetFunction = "prog0"

// change replaces the interface's dispatcher by one with the members that to returns; by none if there are none. EEXIST says that somebody else
// replaced it meanwhile. Hold the lock of pins.
func change(index int, to func(*set) ([]member, error)) error {
	old, err := open(index)
	if err != nil {
		return err
	}
	defer old.close()
	members, err := to(old)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		if err := old.replace(nil); err != nil {
			return err
		}
		return old.dir().remove()
	}
	prog, err := load(members)
	if err != nil {
		return err
	}
	defer prog.Close()
	next := &set{index: index, prog: prog, mode: old.mode, members: members}
	if next.id, err = idOf(prog); err != nil {
		return err
	}
	if err := next.pin(); err != nil {
		return errors.Join(err, next.dir().remove())
	}
	if err := old.replace(prog); err != nil {
		return errors.Join(err, next.dir().remove())
	}
	return old.dir().remove()
}

// load loads a dispatcher for members.
func load(members []member) (*ebpf.Program, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	prog := spec.Programs[dispatcherName]
	c := config(members)
	if c.IsXdpFrags != 0 {
		prog.Flags |= unix.BPF_F_XDP_HAS_FRAGS
	}
	if err := spec.Variables["config"].Set(c); err != nil {
		return nil, fmt.Errorf("configure the dispatcher of XDP programs: %w", err)
	}
	var objects bpfObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return nil, kernel.Fails("does not load the dispatcher of XDP programs", err)
	}
	defer objects.Close()
	return objects.XdpDispatcher.Clone()
}
