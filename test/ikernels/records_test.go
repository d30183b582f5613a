package ikernels

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// TestRingRecords has applications read a ring whose kernel is the test. Of its records some are not finished, some are discarded, and one wraps around the
// ring's end.
func TestRingRecords(t *testing.T) {
	const want = `first from 2001:db8::1 1234
none
third from 192.0.2.1 1234
none
none
at the end from 192.0.2.1 1234
none
`
	if err := build(); err != nil {
		t.Fatal(err)
	}
	for name, args := range programs("rings") {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			cmd := (&site{t: t, path: f.path}).command(nil, append(args, f.path, "records")...)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if err := cmd.Run(); err != nil || out.String() != want || stderr.Len() > 0 {
				t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, &stderr, &out, want)
			}
			f.hasRead(f.written)
		})
	}
}

// A fake is a daemon whose ring is a file.
type fake struct {
	t       *testing.T
	path    string
	ring    int    // the file
	memory  []byte // as wire.go has it. What the kernel maps twice is there twice
	page    int
	written int
	steps   []func() // what is done to the ring each time that an application asks for its counts
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, path: shortdir.New(t) + "/s", page: os.Getpagesize()}
	var err error
	if f.ring, err = unix.MemfdCreate("ring", unix.MFD_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(f.ring) })
	if err := unix.Ftruncate(f.ring, int64(4*f.page)); err != nil {
		t.Fatal(err)
	}
	if f.memory, err = unix.Mmap(f.ring, 0, 4*f.page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(f.memory) })
	f.post("first", 0)
	copy(f.memory[2*f.page+16:], net.ParseIP("2001:db8::1"))
	f.memory[2*f.page+8+44] = 1
	second := f.written
	f.post("second", unix.BPF_RINGBUF_BUSY_BIT)
	f.steps = []func(){
		func() {
			f.written = second
			f.post("second", unix.BPF_RINGBUF_DISCARD_BIT)
			f.post("third", 0)
		},
		func() {
			f.post(string(make([]byte, f.page-16-f.written-8-wire.RingHeadLen)), unix.BPF_RINGBUF_DISCARD_BIT)
		},
		func() {
			f.hasRead(f.page - 16) // with what is discarded
			f.post("at the end", 0)
		},
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: f.path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		f.serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return f
}

// post writes a record.
func (f *fake) post(message string, bits uint32) {
	n := wire.RingHeadLen + len(message)
	to := f.memory[2*f.page+f.written:]
	binary.NativeEndian.PutUint32(to, uint32(n)|bits)
	head := to[unix.BPF_RINGBUF_HDR_SZ:]
	copy(head[8:], []byte{192, 0, 2, 1})
	binary.BigEndian.PutUint16(head[40:], 1234)
	copy(head[wire.RingHeadLen:], message)
	f.written += (unix.BPF_RINGBUF_HDR_SZ + n + 7) &^ 7
	binary.NativeEndian.PutUint64(f.memory[f.page:], uint64(f.written))
}

// hasRead has the application have released all up to a position.
func (f *fake) hasRead(want int) {
	if got := binary.NativeEndian.Uint64(f.memory); got != uint64(want) {
		f.t.Errorf("the application has read up to %d, want %d", got, want)
	}
}

// serve answers one application.
func (f *fake) serve(l *net.UnixListener) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return
	}
	defer conn.Close()
	request := make([]byte, wire.MaxPacket)
	for {
		n, err := conn.Read(request)
		if err != nil || n < wire.HeaderLen {
			return
		}
		reply := binary.NativeEndian.AppendUint32(make([]byte, 4), 1) // success, and the number of the ikernel
		var rights []byte
		switch wire.Operation(binary.NativeEndian.Uint32(request)) {
		case wire.OperationRings:
			rights = unix.UnixRights(f.ring)
		case wire.OperationRingCounts:
			counts := make([]byte, wire.RingCountsLen)
			if len(f.steps) > 0 {
				f.steps[0]()
				f.steps = f.steps[1:]
				counts[0] = 1
			}
			reply = append(reply, counts...)
		}
		if _, _, err := conn.WriteMsgUnix(reply, rights, nil); err != nil {
			return
		}
	}
}
