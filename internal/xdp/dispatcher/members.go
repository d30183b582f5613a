package dispatcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

const (
	dispatcherName = "xdp_dispatcher"
	maxPrograms    = int(bpfProtocolDISPATCHER_PROGRAMS)
	noProgram      = bpfProtocolDISPATCHER_NO_PROGRAM
)

// A member is a program that shares an interface.
type member struct {
	prog     *ebpf.Program
	id       ebpf.ProgramID
	name     string
	actions  uint32 // after which the next one runs
	priority uint32
	flags    uint32 // with which it would be loaded alone: BPF_F_XDP_HAS_FRAGS
}

// newMember describes a program, which its owner closes.
func newMember(prog *ebpf.Program) (member, error) {
	info, err := prog.Info()
	if err != nil {
		return member{}, fmt.Errorf("look at an XDP program: %w", err)
	}
	m := member{prog: prog, name: fullName(prog, info)}
	m.id, _ = info.ID()
	return m, nil
}

// fullName is a program's name as its source has it. The kernel keeps 15 letters of it, and its type information the rest.
func fullName(prog *ebpf.Program, info *ebpf.ProgramInfo) string {
	if len(info.Name) < unix.BPF_OBJ_NAME_LEN-1 {
		return info.Name
	}
	handle, err := prog.Handle()
	if err != nil {
		return info.Name
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		return info.Name
	}
	for t, err := range spec.All() {
		if f, ok := t.(*btf.Func); err == nil && ok && strings.HasPrefix(f.Name, info.Name) {
			return f.Name
		}
	}
	return info.Name
}

// compare sorts programs as they run. Those that come later in a list come later among equals.
func (m member) compare(other member) int {
	return cmp.Or(cmp.Compare(m.priority, other.priority), strings.Compare(m.name, other.name))
}

func names(members []member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.name)
	}
	return strings.Join(all, ", ")
}

// without lists the members but one.
func (s *set) without(id ebpf.ProgramID) []member {
	return slices.DeleteFunc(slices.Clone(s.members), func(m member) bool { return m.id == id })
}

// config describes a dispatcher with these members. It takes packets of several fragments only if all of them do.
func config(members []member) bpfDispatcherConfig {
	c := bpfDispatcherConfig{
		Magic: uint8(bpfProtocolDISPATCHER_MAGIC), DispatcherVersion: uint8(bpfProtocolDISPATCHER_VERSION),
		NumProgsEnabled: uint8(len(members)), IsXdpFrags: 1,
	}
	for i, m := range members {
		c.ChainCallActions[i], c.RunPrios[i], c.ProgramFlags[i] = m.actions, m.priority, m.flags
		if m.flags&unix.BPF_F_XDP_HAS_FRAGS == 0 {
			c.IsXdpFrags = 0
		}
	}
	return c
}

// OtherProgramError says that the program of an interface is no dispatcher.
type OtherProgramError struct {
	Name string
	ID   ebpf.ProgramID
}

func (e *OtherProgramError) Error() string {
	return fmt.Sprintf("another XDP program is attached, %s (ID %d), and not by libxdp: remove it first, and where both are to run, load it by `xdp-loader load`", e.Name, e.ID)
}

// A set are the programs that share an interface.
type set struct {
	index   int
	mode    xdp.Mode
	prog    *ebpf.Program // the dispatcher
	id      ebpf.ProgramID
	members []member
}

func (s *set) dir() dir { return dir{index: s.index, dispatcher: s.id} }

func (s *set) close() {
	for _, m := range s.members {
		_ = m.prog.Close()
	}
	_ = s.prog.Close()
}

// room returns nil if there is a place for one more.
func (s *set) room() error {
	if len(s.members) < maxPrograms {
		return nil
	}
	return fmt.Errorf("%d XDP programs share the interface, and no more can (%s): unload one by `xdp-loader unload`", maxPrograms, names(s.members))
}

// openLocked opens the programs that share an interface.
func openLocked(index int) (*set, error) {
	if err := hasDispatcher(index); err != nil {
		return nil, err
	}
	lock, err := lockPins()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return open(index)
}

// hasDispatcher returns nil if the interface has a dispatcher that we know. It leaves nothing, not even a directory for a lock.
func hasDispatcher(index int) error {
	id, _, err := xdp.Attached(index)
	if err != nil {
		return err
	}
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return fmt.Errorf("open the XDP program with ID %d: %w", id, err)
	}
	defer prog.Close()
	_, err = configOf(prog)
	return err
}

// open opens the programs that share an interface. Hold the lock of pins meanwhile.
func open(index int) (_ *set, err error) {
	id, mode, err := xdp.Attached(index)
	if err != nil {
		return nil, err
	}
	if id == 0 {
		return nil, errors.New("the interface has lost its XDP programs")
	}
	s := &set{index: index, mode: mode, id: id}
	if s.prog, err = ebpf.NewProgramFromID(id); err != nil {
		return nil, fmt.Errorf("open the XDP program with ID %d: %w", id, err)
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	c, err := configOf(s.prog)
	if err != nil {
		return nil, err
	}
	for i := range c.NumProgsEnabled {
		m, err := s.dir().open(int(i))
		if err != nil {
			return nil, fmt.Errorf("open program %d of those that share the interface: %w: unload them by `xdp-loader unload --all`, and load them again", i, err)
		}
		m.actions, m.priority, m.flags = c.ChainCallActions[i], c.RunPrios[i], c.ProgramFlags[i]
		s.members = append(s.members, m)
	}
	return s, nil
}

// configOf reads a dispatcher's configuration.
func configOf(prog *ebpf.Program) (*bpfDispatcherConfig, error) {
	info, err := prog.Info()
	if err != nil {
		return nil, fmt.Errorf("look at an XDP program: %w", err)
	}
	id, _ := info.ID()
	maps, _ := info.MapIDs()
	if info.Name != dispatcherName || len(maps) != 1 {
		return nil, &OtherProgramError{Name: info.Name, ID: id}
	}
	m, err := ebpf.NewMapFromID(maps[0])
	if err != nil {
		return nil, fmt.Errorf("open the configuration of dispatcher %d: %w", id, err)
	}
	defer m.Close()
	head := make([]byte, m.ValueSize())
	if err := m.Lookup(uint32(0), &head); err != nil || len(head) < 2 {
		return nil, errors.Join(fmt.Errorf("read the configuration of dispatcher %d", id), err)
	}
	version := 1 // which had no magic
	if bpfProtocol(head[0]) == bpfProtocolDISPATCHER_MAGIC {
		version = int(head[1])
	}
	if version != int(bpfProtocolDISPATCHER_VERSION) {
		return nil, fmt.Errorf("the interface's dispatcher of XDP programs (%s, ID %d) has version %d, and only %d can be joined: "+
			"unload its programs by `xdp-loader unload --all`, and load them by an xdp-loader of that version", info.Name, id, version, bpfProtocolDISPATCHER_VERSION)
	}
	var c bpfDispatcherConfig
	if err := m.Lookup(uint32(0), &c); err != nil {
		return nil, fmt.Errorf("read the configuration of dispatcher %d: %w", id, err)
	}
	if int(c.NumProgsEnabled) > maxPrograms {
		return nil, fmt.Errorf("dispatcher %d says that it has %d programs, and the most are %d", id, c.NumProgsEnabled, maxPrograms)
	}
	return &c, nil
}

// place puts a member into the place that it has in the dispatcher.
func (s *set) place(i int) (link.Link, error) {
	l, err := link.AttachFreplace(s.prog, fmt.Sprintf("prog%d", i), s.members[i].prog)
	if err != nil {
		return nil, kernel.Fails(fmt.Sprintf("does not let XDP program %s (ID %d) share an interface", s.members[i].name, s.members[i].id), err)
	}
	return l, nil
}

func idOf(prog *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := prog.Info()
	if err != nil {
		return 0, fmt.Errorf("look at an XDP program: %w", err)
	}
	id, _ := info.ID()
	return id, nil
}
