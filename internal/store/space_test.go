package store

import (
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/smalldisk"
)

// On a disk without a free byte, what is deployed can be reported on and removed, and the store lives on.
func TestFullDisk(t *testing.T) {
	dir, ctx := smalldisk.New(t, "48m"), t.Context()
	s, err := Open(ctx, config(dir))
	if err != nil {
		t.Fatal(err)
	}
	web, err := deploy(ctx, s, "web")
	if err != nil {
		t.Fatal(err)
	}
	empty := smalldisk.Fill(t, dir)
	const writes, size = 400, 8 << 10 // together more than etcd's database has pages for at first
	for range writes {
		if err := s.Report(ctx, "n", Status{Workload: web.Workload, Reason: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Delete(ctx, "default", "web"); err != nil {
		t.Fatal(err)
	}
	if err := s.Free(ctx, web.Workload); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // which commits
		t.Fatal(err)
	}
	empty()
	s = open(t, dir)
	if all, err := s.List(ctx, ""); err != nil || len(all) > 0 {
		t.Errorf("after all were removed, there are %d (%v)", len(all), err)
	}
	if _, err := deploy(ctx, s, "web"); err != nil {
		t.Error(err)
	}
}
