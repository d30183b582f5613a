package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/lambdanic/lambdanic/internal/backend/process/fence"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

// groupOf returns the cgroup of a run directory, which has a child for each workload.
func groupOf(runDir string) supervise.Cgroup {
	return supervise.NewCgroup(fmt.Sprintf("lambdanic-%.6x", sha256.Sum256([]byte(runDir))))
}

// How many clients a fence remembers, and so can be answered. Most functions answer a datagram before they take the next ones, but one that calls
// services may have as many answers outstanding as it has calls.
const (
	clientsOfMost    = 1 << 12
	clientsOfCallers = 1 << 16
)

// fence keeps the workload's processes from sending to others than their clients and these services: those of the next process, and of the one
// that it replaces.
func (in *instance) fence(services, before []netip.AddrPort) {
	if in.group == "" || os.Geteuid() != 0 {
		return
	}
	clients := uint32(clientsOfMost)
	if len(services) > 0 {
		clients = clientsOfCallers
	}
	err := in.group.Make()
	var f *fence.Fence
	if err == nil {
		f, err = fence.Open(string(in.group), clients)
	}
	if err == nil {
		err = errors.Join(f.Allow(slices.Concat(services, before)), f.Close())
	}
	if err != nil {
		in.b.cfg.Logger.Warn("a function's process can send datagrams to anybody", "workload", fmt.Sprintf("%#x", in.workload), "because", err)
	}
}

// removeGroup ends what is left in a workload's cgroup and removes it, and the run directory's cgroup if that is empty now. A cgroup
// that cannot be removed goes with the next one.
func (b *Backend) removeGroup(group supervise.Cgroup) {
	group.Kill()
	_ = group.Remove()
	_ = b.groups.Remove()
}
