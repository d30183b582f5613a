package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/lambdanic/lambdanic/internal/backend/process/fence"
	"github.com/lambdanic/lambdanic/internal/supervise"
)

// groupOf returns the cgroup of a run directory, which has a child for each workload.
func groupOf(runDir string) supervise.Cgroup {
	return supervise.NewCgroup(fmt.Sprintf("lambdanic-%.6x", sha256.Sum256([]byte(runDir))))
}

// fence keeps the workload's processes from sending to others than their clients and these services.
func (in *instance) fence(services []netip.AddrPort) {
	if in.group == "" || os.Geteuid() != 0 {
		return
	}
	err := in.group.Make()
	var f *fence.Fence
	if err == nil {
		f, err = fence.Open(string(in.group))
	}
	if err == nil {
		err = errors.Join(f.Allow(services), f.Close())
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
