package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeBwrap makes Run start a script in place of bubblewrap.
func fakeBwrap(t *testing.T, script string) (dir string) {
	t.Helper()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // the script runs as nobody
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+filepath.Dir(prlimit))
	return dir
}

// However many callers there are, no more run at once than there are slots, and all get their turn.
func TestRunTakesTurns(t *testing.T) {
	dir := fakeBwrap(t, "echo begin >> $(dirname $0)/log; sleep 0.02; echo end >> $(dirname $0)/log\n")
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(log, 0o666); err != nil {
		t.Fatal(err)
	}
	runs := 10 * int(slotCount)
	var all sync.WaitGroup
	for range runs {
		all.Go(func() {
			if _, _, err := Run(t.Context(), shell("true")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 2*runs {
		t.Errorf("%d runs left %d lines", runs, len(lines))
	}
	var now int64
	for _, line := range lines {
		if line == "end" {
			now--
			continue
		}
		if now++; now > slotCount {
			t.Fatalf("%d at once, for %d slots", now, slotCount)
		}
	}
}

// A caller that gives up while others run does not wait for them.
func TestRunWaitsNoLongerThanItsCaller(t *testing.T) {
	if err := slots.Acquire(t.Context(), slotCount); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Run(ctx, shell("true"))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "wait for other compilations") {
		t.Errorf("got %v", err)
	}
	slots.Release(slotCount)
	if _, _, err := Run(t.Context(), shell("true")); err != nil {
		t.Error(err)
	}
}

// A run that fails on a busy machine is blamed neither on the sandbox nor on the source.
func TestRunOnABusyMachine(t *testing.T) {
	waits := shell("sleep 1000")
	waits.Limits.Wall = 50 * time.Millisecond
	for name, err := range map[string]error{
		"waits":            func() error { _, _, err := Run(t.Context(), waits); return err }(),
		"output held open": (&Command{}).classify(exec.ErrWaitDelay, nil),
		"killed":           func() error { fakeBwrap(t, "kill -9 $$\n"); _, _, err := Run(t.Context(), shell("true")); return err }(),
	} {
		if !errors.Is(err, ErrBusy) || errors.Is(err, ErrUnavailable) || errors.As(err, new(*ExitError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
