package program

import (
	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// Extension loads the root a second time, with the same maps, to take the place of a function of another XDP program. It is for a Program that Load
// returned. The root itself stays: the kernel runs no such program by BPF_PROG_TEST_RUN.
func (p *Program) Extension(c Config, target *ebpf.Program, function string) (*ebpf.Program, error) {
	spec, err := root.prepare(c, nil) // its constants are in maps
	if err != nil {
		return nil, err
	}
	if c.Alter != nil {
		c.Alter(spec)
	}
	const name = "ln_root"
	prog := spec.Programs[name]
	prog.Type, prog.AttachTarget, prog.AttachTo = ebpf.Extension, target, function
	spec.Programs = map[string]*ebpf.ProgramSpec{name: prog}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: p.shared})
	if err != nil {
		return nil, kernel.Fails("does not take the NIC program beside other XDP programs", err)
	}
	defer coll.Close()
	return coll.DetachProgram(name), nil
}
