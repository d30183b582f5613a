package ikernels

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNotesNonsense writes what is no note. Deliver says so.
func TestNotesNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		end    uint64 // of what is written
		length uint64
		want   string
	}{
		"an end within a word":         {end: 3, want: "invalid argument"},
		"a note longer than its bytes": {end: 16, length: 100, want: "invalid argument"},
		"an end far beyond":            {end: 1 << 40, length: 1 << 20, want: "argument list too long"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSite(t).create("steering")
			notes, err := k.OpenNotes()
			if err != nil {
				t.Fatal(err)
			}
			page := os.Getpagesize()
			memory, err := unix.Mmap(notes.FD(), int64(page), page+int(notes.MaxEntries()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Munmap(memory) }()
			binary.NativeEndian.PutUint64(memory[page:], c.length)
			binary.NativeEndian.PutUint64(memory, c.end)
			if n, err := k.Deliver(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d, %v, want %q", n, err, c.want)
			}
		})
	}
}
