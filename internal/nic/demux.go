package nic

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// Demux returns the NIC program for ikernels to share its interface; nil if it is not the program with this ID.
func (n *NIC) Demux(id ebpf.ProgramID) (*demux.Root, error) {
	info, err := n.root.program().Info()
	if err != nil {
		return nil, fmt.Errorf("look at the NIC program on %s: %w", n.rec.Interface, err)
	}
	if own, _ := info.ID(); own != id {
		return nil, nil
	}
	ikernels, err := n.prog.LnIkernels.Clone() // which stays when the NIC is closed: the kernel must not empty it then
	if err != nil {
		return nil, fmt.Errorf("share the NIC program on %s: %w", n.rec.Interface, err)
	}
	return &demux.Root{Ikernels: ikernels, Takes: takes, Attached: n.Attached, Close: ikernels.Close}, nil
}

// takes says whether the NIC program serves a port itself (ln_root in bpf/root.bpf.c).
func takes(port uint16) bool {
	call := port - uint16(program.RootLnLimitLN_CALL_PORT)
	return port == api.RPCPort || port == roce.Port ||
		call < uint16(program.RootLnLimitLN_CALL_PORTS)+uint16(program.RootLnLimitLN_MAX_RAW_CALLS)
}
