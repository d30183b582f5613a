package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/test/shortdir"
	"github.com/lambdanic/lambdanic/test/smalldisk"
)

// A store that writes more than it has reserved on a full disk ends in good order, and has all that it acknowledged.
func TestFailure(t *testing.T) {
	dir, ctx := smalldisk.New(t, "48m"), t.Context()
	s, err := Open(ctx, config(dir))
	if err != nil {
		t.Fatal(err)
	}
	f, err := deploy(ctx, s, "web")
	if err != nil {
		t.Fatal(err)
	}
	empty := smalldisk.Fill(t, dir)
	acknowledged := ""
	for i := 0; err == nil; i++ {
		status := Status{Workload: f.Workload, Reason: string(rune('a'+i%26)) + strings.Repeat("x", 100<<10)}
		if err = s.Report(ctx, "n", status); err == nil {
			acknowledged = status.Reason
		}
	}
	if !errors.Is(err, ErrUnknown) || !errors.Is(err, unix.ENOSPC) || s.Err() == nil {
		t.Errorf("writing ends with %v; the store says %v", err, s.Err())
	}
	<-s.Failed()
	if _, err := s.List(ctx, ""); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("reading says %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty()
	// As another process, which has no locks of this one.
	again := smalldisk.New(t, "48m")
	copyDir(t, config(dir).DataDir, config(again).DataDir)
	all, err := open(t, again).Statuses(ctx, "n")
	if err != nil || all[f.Workload].Reason[0] != acknowledged[0] {
		t.Errorf("afterwards it has %.1q (%v), want %.1q", all[f.Workload].Reason, err, acknowledged)
	}
}

// Another daemon's store is neither waited for nor taken for a damaged one.
func TestOpenTwice(t *testing.T) {
	dir := shortdir.New(t)
	cfg := config(dir)
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg.SocketDir = filepath.Join(dir, "other")
	if _, err := Open(t.Context(), cfg); err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("it says %v", err)
	}
}
