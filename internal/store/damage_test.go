package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/shortdir"
)

// wreck is a store's directory that can be damaged in many ways, and what it acknowledged.
type wreck struct {
	dir          string
	acknowledged string
}

// newWreck deploys and removes functions, and leaves what is on disk after the store was closed, or after its process was killed.
func newWreck(t *testing.T, killed bool) wreck {
	t.Helper()
	w := wreck{dir: shortdir.New(t)}
	live := shortdir.New(t)
	s, err := Open(t.Context(), config(live))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for i := range 12 {
		if _, err := deploy(ctx, s, fmt.Sprintf("f%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if _, err := s.Delete(ctx, "default", fmt.Sprintf("f%d", 11-i)); err != nil {
			t.Fatal(err)
		}
		if _, err := deploy(ctx, s, fmt.Sprintf("f%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.acknowledged = holds(t, s)
	if killed {
		copyDir(t, config(live).DataDir, w.dir)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !killed {
		copyDir(t, config(live).DataDir, w.dir)
	}
	return w
}

// holds is everything that a store holds.
func holds(t *testing.T, s *Store) string {
	t.Helper()
	functions, err1 := s.List(t.Context(), "")
	draining, err2 := s.Draining(t.Context())
	out, err3 := json.Marshal([]any{functions, draining})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// copyDir copies files with their holes: etcd's are mostly that.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		if err := errors.Join(err, relErr); err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the next segment, on its way
		} else if err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(to, rel))
		if err != nil {
			return err
		}
		defer f.Close()
		const block = 4096
		for at := 0; at < len(data); at += block {
			if part := data[at:min(at+block, len(data))]; len(bytes.Trim(part, "\x00")) > 0 {
				if _, err := f.WriteAt(part, int64(at)); err != nil {
					return err
				}
			}
		}
		return f.Truncate(int64(len(data)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// opens opens a damaged copy. The store has to report the damage, or to hold all that was acknowledged and take more. opens returns which.
func (w wreck) opens(t *testing.T, damage func(t *testing.T, f files)) (right bool) {
	t.Helper()
	return w.opensWith(t, damage, func(ctx context.Context, s *Store) {
		if got := holds(t, s); got != w.acknowledged {
			t.Errorf("it holds %s, want %s", got, w.acknowledged)
		}
		next, err := deploy(ctx, s, "next")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Delete(ctx, "default", "next"); err != nil {
			t.Error(err)
		}
		if err := s.Free(ctx, next.Workload); err != nil {
			t.Error(err)
		}
	})
}

// opensWith opens a damaged copy twice, the second time after what the first one did, and works with what opens.
func (w wreck) opensWith(t *testing.T, damage func(*testing.T, files), work func(context.Context, *Store)) (opened bool) {
	t.Helper()
	dir := shortdir.New(t)
	f := files{config(dir).DataDir}
	copyDir(t, w.dir, f.dir)
	damage(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		s, err := Open(ctx, config(dir))
		if err != nil {
			for _, part := range []string{f.dir, "restore the data directory from a backup, or move " + f.dir + " away"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if !errors.Is(err, ErrDamaged) || ctx.Err() != nil {
				t.Errorf("it says %v", err)
			}
			return false
		}
		work(ctx, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return true
}

// edit changes a file's content.
func edit(path func(files) string, change func(data []byte) []byte) func(*testing.T, files) {
	return func(t *testing.T, f files) {
		t.Helper()
		data, err := os.ReadFile(path(f))
		if err == nil {
			err = os.WriteFile(path(f), change(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func remove(path func(files) string) func(*testing.T, files) {
	return func(t *testing.T, f files) {
		t.Helper()
		if err := os.RemoveAll(path(f)); err != nil {
			t.Fatal(err)
		}
	}
}

func segment(f files) string { return filepath.Join(f.log(), "0000000000000000-0000000000000000.wal") }

// used is how much of a file has visibly been written to.
func used(data []byte) int { return len(bytes.TrimRight(data, "\x00")) }

func fill(data []byte, with byte) { copy(data, bytes.Repeat([]byte{with}, len(data))) }

func TestDamage(t *testing.T) {
	member := func(f files) string { return filepath.Join(f.dir, "member") }
	database := files.database
	const page = 4096
	cases := map[string]struct {
		damage func(*testing.T, files)
		harm   bool // the data may be unreadable
	}{
		"nothing":                 {func(*testing.T, files) {}, false},
		"no member":               {remove(member), true},
		"no database":             {remove(database), true},
		"no snap":                 {remove(func(f files) string { return filepath.Dir(database(f)) }), true},
		"empty database":          {edit(database, func([]byte) []byte { return nil }), true},
		"one page":                {edit(database, func(d []byte) []byte { return d[:page] }), true},
		"half a database":         {edit(database, func(d []byte) []byte { return d[:used(d)/2/page*page] }), true},
		"database of garbage":     {edit(database, func(d []byte) []byte { fill(d, 0xa5); return d }), true},
		"database of zeros":       {edit(database, func(d []byte) []byte { clear(d); return d }), true},
		"first page zero":         {edit(database, func(d []byte) []byte { clear(d[:page]); return d }), false},
		"second page zero":        {edit(database, func(d []byte) []byte { clear(d[page : 2*page]); return d }), false},
		"first pages zero":        {edit(database, func(d []byte) []byte { clear(d[:2*page]); return d }), true},
		"pages of garbage":        {edit(database, func(d []byte) []byte { fill(d[2*page:used(d)], 0xa5); return d }), true},
		"unused pages":            {edit(database, func(d []byte) []byte { fill(d[len(d)-page:], 0xa5); return d }), false},
		"no log":                  {remove(files.log), true},
		"no segment":              {remove(segment), true},
		"empty segment":           {edit(segment, func([]byte) []byte { return nil }), true},
		"half a log":              {edit(segment, func(d []byte) []byte { return d[:used(d)/2] }), true},
		"log without its reserve": {edit(segment, func(d []byte) []byte { return d[:used(d)+8] }), false},
		"half a log of zeros":     {edit(segment, func(d []byte) []byte { clear(d[used(d)/2:]); return d }), true},
		"half a log of garbage":   {edit(segment, func(d []byte) []byte { fill(d[used(d)/2:], 0xa5); return d }), true},
		"garbage amid the log":    {edit(segment, func(d []byte) []byte { fill(d[used(d)/2:][:64], 0xa5); return d }), true},
		"garbage after the log":   {edit(segment, func(d []byte) []byte { fill(d[used(d)+64:][:64], 0xa5); return d }), false},
		"log of garbage":          {edit(segment, func(d []byte) []byte { fill(d, 0xa5); return d }), true},
		"flipped bit in the log":  {edit(segment, func(d []byte) []byte { d[used(d)/2] ^= 1; return d }), true},
	}
	for how, killed := range map[string]bool{"closed": false, "killed": true} {
		w := newWreck(t, killed)
		for name, c := range cases {
			if killed && strings.HasPrefix(name, "half a log") {
				continue // the database may not have had it yet, and a log that ends early looks like that of a store with fewer writes
			}
			t.Run(how+" "+name, func(t *testing.T) {
				right := w.opens(t, c.damage)
				// When the store was killed, the first half of its database may hold an earlier state, to which the log adds the rest.
				if right == c.harm && !(killed && name == "half a database") {
					t.Errorf("opened rightly: %v", right)
				}
			})
		}
	}
}

// Whatever bit of a page in use is flipped, the store reports it or serves. etcd has no checksum of values, so these may change. The
// bits are spread evenly over all that has been written.
func TestDamageOfAnyBit(t *testing.T) {
	w := newWreck(t, false)
	file, err := os.ReadFile(files{w.dir}.database())
	if err != nil {
		t.Fatal(err)
	}
	var written []int
	for at := range used(file) {
		if file[at] != 0 {
			written = append(written, at)
		}
	}
	const flips = 12
	for i := range flips {
		at := written[i*len(written)/flips]
		flip := edit(files.database, func(d []byte) []byte { d[at] ^= 1 << (i % 8); return d })
		w.opensWith(t, flip, func(ctx context.Context, s *Store) {
			_, _ = s.List(ctx, "") // the result depends on the bit
			_, _ = deploy(ctx, s, "next")
			if ctx.Err() != nil {
				t.Error("it waits for ever")
			}
		})
		if t.Failed() {
			t.Fatalf("with bit %d of byte %d of page %d flipped", i%8, at%4096, at/4096)
		}
	}
}
