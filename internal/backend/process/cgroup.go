package process

import (
	"crypto/sha256"
	"fmt"

	"github.com/lambdanic/lambdanic/internal/supervise"
)

// groupOf returns the cgroup of a run directory, which has a child for each workload.
func groupOf(runDir string) supervise.Cgroup {
	return supervise.NewCgroup(fmt.Sprintf("lambdanic-%.6x", sha256.Sum256([]byte(runDir))))
}

// removeGroup ends what is left in a workload's cgroup and removes it, and the run directory's cgroup if that is empty now. A cgroup
// that cannot be removed goes with the next one.
func (b *Backend) removeGroup(group supervise.Cgroup) {
	group.Kill()
	_ = group.Remove()
	_ = b.groups.Remove()
}
