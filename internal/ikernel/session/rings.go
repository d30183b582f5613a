package session

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
	"github.com/lambdanic/lambdanic/ikernels"
)

// openRings opens an ikernel's rings (wire.RingsLen), which go with the reply.
func openRings(k *ikernels.Ikernel, r *request) error {
	if len(r.body) != wire.RingsLen {
		return fail(unix.EBADMSG, "a request for rings of %d bytes is none", len(r.body))
	}
	flags := binary.NativeEndian.Uint32(r.body[8:])
	if flags&^wire.RingsPolled != 0 {
		return fail(unix.ENOSYS, "the daemon does not know what %#x means for rings: is it older than the application's library?", flags)
	}
	rings, err := k.OpenRings(ikernels.Rings{
		Count: binary.NativeEndian.Uint32(r.body), Size: binary.NativeEndian.Uint32(r.body[4:]), Polled: flags&wire.RingsPolled != 0,
	})
	for _, ring := range rings {
		r.gives = append(r.gives, ring.FD())
	}
	return err
}

func countRings(k *ikernels.Ikernel, reply []byte) ([]byte, error) {
	counts, err := k.RingCounts()
	if err != nil {
		return reply, err
	}
	for _, c := range counts {
		reply = binary.NativeEndian.AppendUint64(reply, c.Posted)
		reply = binary.NativeEndian.AppendUint64(reply, c.Refused)
	}
	return reply, nil
}

// openNotes gives where the application writes notes.
func openNotes(k *ikernels.Ikernel, r *request, reply []byte) ([]byte, error) {
	notes, err := k.OpenNotes()
	if err != nil {
		return reply, err
	}
	r.gives = append(r.gives, notes.FD())
	return binary.NativeEndian.AppendUint32(reply, notes.MaxEntries()), nil
}

func deliver(k *ikernels.Ikernel, reply []byte) ([]byte, error) {
	n, err := k.Deliver()
	if err != nil {
		return reply, err
	}
	return binary.NativeEndian.AppendUint32(reply, n), nil
}
