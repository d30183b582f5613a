package dispatcher

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// pins is where all that follow the protocol pin what shares an interface.
func pins() string { return filepath.Join(cmp.Or(os.Getenv("LIBXDP_BPFFS"), "/sys/fs/bpf"), "xdp") }

// lockPins keeps all others from changing pins until the file is closed.
func lockPins() (*os.File, error) {
	if err := os.Mkdir(pins(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make a directory for the pins of XDP programs that share an interface: %w", err)
	}
	f, err := os.Open(pins())
	if err != nil {
		return nil, fmt.Errorf("lock the pins of XDP programs that share an interface: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", pins(), err), f.Close())
	}
	return f, nil
}

// A dir has the pins of a dispatcher's programs.
type dir struct {
	index      int
	dispatcher ebpf.ProgramID
}

func (d dir) path() string {
	return filepath.Join(pins(), fmt.Sprintf("dispatch-%d-%d", d.index, d.dispatcher))
}

func (d dir) program(i int) string { return filepath.Join(d.path(), fmt.Sprintf("prog%d-prog", i)) }

func (d dir) link(i int) string { return filepath.Join(d.path(), fmt.Sprintf("prog%d-link", i)) }

// open opens a program of the dispatcher.
func (d dir) open(i int) (member, error) {
	prog, err := ebpf.LoadPinnedProgram(d.program(i), nil)
	if err != nil {
		return member{}, err
	}
	m, err := newMember(prog)
	if err != nil {
		return member{}, errors.Join(err, prog.Close())
	}
	return m, nil
}

// pin puts the members into the dispatcher, and pins them there.
func (s *set) pin() error {
	if err := os.Mkdir(s.dir().path(), 0o700); err != nil {
		return fmt.Errorf("pin XDP programs that share an interface: %w", err)
	}
	for i, m := range s.members {
		l, err := s.place(i)
		if err != nil {
			return err
		}
		if err := errors.Join(l.Pin(s.dir().link(i)), l.Close()); err != nil {
			return fmt.Errorf("pin XDP program %s: %w", m.name, err)
		}
		again, err := m.prog.Clone() // whose pin is its first, and does not move
		if err != nil {
			return err
		}
		if err := errors.Join(again.Pin(s.dir().program(i)), again.Close()); err != nil {
			return fmt.Errorf("pin XDP program %s: %w", m.name, err)
		}
	}
	return nil
}

// remove removes all pins.
func (d dir) remove() error {
	if err := os.RemoveAll(d.path()); err != nil {
		return fmt.Errorf("unpin XDP programs: %w", err)
	}
	return nil
}

// dirsOf finds the pins of a program. Hold the lock of pins.
func dirsOf(id ebpf.ProgramID) ([]dir, error) {
	paths, err := filepath.Glob(filepath.Join(pins(), "dispatch-*-*"))
	if err != nil {
		return nil, err
	}
	var dirs []dir
	for _, path := range paths {
		var d dir
		if _, err := fmt.Sscanf(filepath.Base(path), "dispatch-%d-%d", &d.index, &d.dispatcher); err == nil && d.find(id) >= 0 {
			dirs = append(dirs, d)
		}
	}
	return dirs, nil
}

// find returns the place of a program, or -1.
func (d dir) find(id ebpf.ProgramID) int {
	for i := range maxPrograms {
		m, err := d.open(i)
		if err != nil {
			continue
		}
		_ = m.prog.Close()
		if m.id == id {
			return i
		}
	}
	return -1
}

// forget removes a program's pins, and leaves those of others: only `xdp-loader clean` knows that nobody needs them.
func (d dir) forget(id ebpf.ProgramID) error {
	i := d.find(id)
	if i < 0 {
		return nil
	}
	for _, pin := range []string{d.link(i), d.program(i)} {
		if err := os.Remove(pin); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("unpin an XDP program: %w", err)
		}
	}
	_ = os.Remove(d.path()) // unless there are others
	return nil
}
