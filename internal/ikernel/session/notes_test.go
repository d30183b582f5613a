package session

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// TestNotes writes notes of random lengths and delivers some at a time: the ikernel gets all, whole and in order, however they wrap. A message with the key of
// the last one comes by the ring that this one names.
func TestNotes(t *testing.T) {
	const rounds, rings, key = 400, 3, 6
	s := steer(t, "steering", lambdanic.Rings{Count: rings, Size: os.Getpagesize()}, map[string]int64{"length": key})
	notes, err := s.k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	client, rnd := s.dial(), rand.New(rand.NewPCG(3, 4))
	message := make([]byte, key)
	for round := range rounds {
		wrote, ring := 1+rnd.IntN(8), uint32(0)
		for range wrote {
			b, err := notes.Reserve(4 + key + rnd.IntN(3000))
			if err != nil {
				t.Fatal(err)
			}
			ring = rnd.Uint32N(rings)
			for i := range message {
				message[i] = byte(rnd.Uint32())
			}
			binary.NativeEndian.PutUint32(b, ring)
			copy(b[4:], message)
		}
		if n, err := notes.Deliver(); n != wrote || err != nil {
			t.Fatalf("round %d: %d notes are delivered of %d, %v", round, n, wrote, err)
		}
		s.send(client, message)
		if m, err := s.rings[ring].Read(); err != nil || string(m.Data) != string(message) {
			t.Fatalf("round %d: got %q, %v", round, m.Data, err)
		}
	}
	if _, refused := s.settle(); refused != 0 {
		t.Errorf("%d messages are refused", refused)
	}
}

// TestNotesFull writes notes until there is no room. All are delivered, and then there is room.
func TestNotesFull(t *testing.T) {
	a := open(t, serve(t))
	k := create(t, a, "steering")
	notes, err := k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wrote := 0
		for ; ; wrote++ {
			b, err := notes.Reserve(1000)
			if errors.Is(err, lambdanic.ErrNotesFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			clear(b)
		}
		if n, err := notes.Deliver(); n != wrote || wrote != 65536/1008 || err != nil {
			t.Errorf("%d notes are delivered of %d, %v", n, wrote, err)
		}
	}
	if b, err := notes.Reserve(65536 - 8); err != nil || len(b) != 65536-8 {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	if n, err := notes.Deliver(); n != 1 || err != nil {
		t.Errorf("%d notes are delivered, %v", n, err)
	}
	if n, err := notes.Deliver(); n != 0 || err != nil {
		t.Errorf("%d notes are delivered of none, %v", n, err)
	}
	if _, err := notes.Reserve(65536); err == nil || !strings.Contains(err.Error(), "up to 65528") {
		t.Errorf("got %v for a note that never fits", err)
	}
	if _, err := k.OpenNotes(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v for notes that are open", err)
	}
	if _, err := create(t, a, "threshold").OpenNotes(); err == nil || !strings.Contains(err.Error(), "takes no notes") {
		t.Errorf("got %v for an ikernel that takes no notes", err)
	}
	if err := k.Destroy(); err != nil {
		t.Error(err)
	}
	if _, err := notes.Reserve(1); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v after the ikernel's end", err)
	}
	if _, err := notes.Deliver(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v after the ikernel's end", err)
	}
}
