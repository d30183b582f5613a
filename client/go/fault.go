package lambdanic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
)

// A Fault is why an ikernel gave up. Its sockets get all of their datagrams again, and its registers and rings can still be read. It is an unix.EIO, as all
// errors of the daemon are that come from it.
type Fault struct {
	Code uint32
	Text string
}

// Error implements error.
func (f *Fault) Error() string { return f.Text }

// Unwrap says that it is an unix.EIO.
func (f *Fault) Unwrap() error { return unix.EIO }

// A watch waits for an ikernel's fault, or for its end, which is one of os.ErrClosed.
type watch struct {
	file  *os.File
	ended chan struct{}

	mu    sync.Mutex
	why   error // nil: it has not ended
	rings []*Ring
}

// Fault returns the ikernel's fault; nil: it has none. The error says that the ikernel is destroyed, or that the daemon does not answer.
func (k *Ikernel) Fault() (*Fault, error) {
	w, err := k.watch()
	if err != nil {
		return nil, err
	}
	why, err := w.peek()
	if errors.Is(err, unix.EAGAIN) {
		return nil, nil
	}
	return faultIn(errors.Join(why, err))
}

// WaitFault waits until the ikernel has a fault, and returns it. The error says that the ikernel is destroyed, or that the daemon does not answer, or it is ctx's.
func (k *Ikernel) WaitFault(ctx context.Context) (*Fault, error) {
	w, err := k.watch()
	if err != nil {
		return nil, err
	}
	select {
	case <-w.ended:
		return faultIn(w.why)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func faultIn(err error) (*Fault, error) {
	var f *Fault
	if errors.As(err, &f) {
		return f, nil
	}
	return nil, err
}

// watch begins to wait for the ikernel's fault, unless it does already.
func (k *Ikernel) watch() (*watch, error) {
	k.watching.Lock()
	defer k.watching.Unlock()
	if k.watched != nil {
		return k.watched, nil
	}
	reply, err := k.all.exchange(wire.OperationFault, k.number, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("watch for a fault: %w", err)
	}
	if len(reply.descriptors) != 1 {
		closeDescriptors(reply.descriptors)
		return nil, errors.New("watch for a fault: the daemon does not say where")
	}
	if err := unix.SetNonblock(reply.descriptors[0], true); err != nil { // has Go's runtime wait for it
		closeDescriptors(reply.descriptors)
		return nil, fmt.Errorf("watch for a fault: %w", err)
	}
	w := &watch{file: os.NewFile(uintptr(reply.descriptors[0]), "fault"), ended: make(chan struct{})}
	k.watched = w
	k.keep(w)
	go w.run()
	return w, nil
}

// Close ends the watch.
func (w *watch) Close() error { return w.file.Close() }

// run waits, and then tells those who read rings.
func (w *watch) run() {
	why := fmt.Errorf("wait for a fault: %w", os.ErrClosed)
	raw, err := w.file.SyscallConn()
	if err == nil {
		_ = raw.Read(func(fd uintptr) bool {
			got, err := peek(int(fd))
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			why = errors.Join(got, err)
			return true
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = why
	close(w.ended)
	for _, r := range w.rings {
		r.end(why)
	}
}

// tell has rings end when the ikernel does.
func (w *watch) tell(rings []*Ring) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rings = rings
	for _, r := range rings {
		if w.why != nil {
			r.end(w.why)
		}
	}
}

// peek returns why the ikernel has ended. With unix.EAGAIN it has not.
func (w *watch) peek() (why, err error) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) { why, err = peek(int(fd)) }); e != nil {
		return nil, fmt.Errorf("the ikernel is destroyed: %w", os.ErrClosed)
	}
	return why, err
}

// peek reads the fault, and leaves it there.
func peek(fd int) (why, err error) {
	packet := make([]byte, wire.MaxPacket)
	n, _, err := unix.Recvfrom(fd, packet, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case err != nil:
		return nil, err
	case n < 4:
		return fmt.Errorf("the ikernel is destroyed, or the daemon ended: %w", os.ErrClosed), nil
	}
	return &Fault{binary.NativeEndian.Uint32(packet), string(packet[4:n])}, nil
}
