package process

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFuzzedPackets runs the fuzzer of lambda-host's packet entry (host/fuzz.c) for a number of inputs; give it more time
// by build/lambda-host-fuzz -max_total_time=SECONDS.
func TestFuzzedPackets(t *testing.T) {
	cmd := exec.Command(filepath.Join(filepath.Dir(plainHost), "lambda-host-fuzz"),
		"-runs=50000", "-seed=1", "-max_len=6000", "-len_control=0", "-verbosity=0", "-artifact_prefix="+t.TempDir()+"/")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
