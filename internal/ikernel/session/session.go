// Package session serves applications that have ikernels for their sockets (api/ikernel).
package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
	"github.com/lambdanic/lambdanic/ikernels"
)

// A Server serves all applications.
type Server struct {
	Host *ikernels.Host
	Log  *slog.Logger
	// Enter has an ikernel of this name be of a namespace, until it leaves.
	Enter func(ctx context.Context, namespace, ikernel string) (_ *ikernels.Namespace, leave func(context.Context) error, _ error)
}

// A Listener accepts applications, as net.UnixListener does.
type Listener interface {
	AcceptUnix() (*net.UnixConn, error)
	Close() error
}

// acceptPause is how long an application waits at least that cannot be accepted, as the daemon has no file descriptor or memory left for it.
const acceptPause = 50 * time.Millisecond

// Serve serves those who connect, until ctx ends. Then it ends their ikernels.
func (s *Server) Serve(ctx context.Context, l Listener) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for waits := false; ; {
		conn, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept applications: %w", err)
		}
		if err != nil { // those that are served already are served on
			if !waits {
				s.Log.Warn("an application that asks for ikernels has to wait", "because", err)
			}
			waits = true
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		waits = false
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			s.serve(conn)
		})
	}
}

// A session is one application's connection.
type session struct {
	*Server
	conn *net.UnixConn
	user uint32 // who the application is
	is   ikernels.Owner
	all  map[uint32]*owned
	last uint32 // number given to an ikernel
}

// An owned ikernel is the application's.
type owned struct {
	*ikernels.Ikernel
	leave func(context.Context) error // its namespace; nil: it is of none
}

// leavePatience is how long it may take to note that ikernels are of no namespace any more.
const leavePatience = 5 * time.Second

// end ends the ikernel.
func (k *owned) end(ctx context.Context) error {
	err := k.Close()
	if k.leave != nil {
		err = errors.Join(err, k.leave(ctx))
	}
	return err
}

func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	a := &session{Server: s, conn: conn, all: map[uint32]*owned{}}
	defer func() {
		if err := a.end(); err != nil {
			s.Log.Warn("not all of an application's ikernels were ended", "error", err)
		}
	}()
	if err := a.identify(); err != nil {
		s.Log.Warn("an application is not served", "error", err)
		return
	}
	for a.answer() {
	}
}

// end ends the application's ikernels.
func (a *session) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	var errs []error
	for _, k := range a.all {
		errs = append(errs, k.end(ctx))
	}
	return errors.Join(errs...)
}

// identify finds out who the application is.
func (a *session) identify() error {
	raw, err := a.conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("find the user of an application: %w", failed)
	}
	a.user = peer.Uid
	a.is.PID = int(peer.Pid)
	// It may have ended already. Then its ikernels do so at once.
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", peer.Pid))
	a.is.Command = strings.TrimSpace(string(command))
	return nil
}

// A request is what an application asks for.
type request struct {
	operation wire.Operation
	ikernel   uint32
	body      []byte
	sockets   []int
	gives     []int // descriptors that go with the reply
}

// answer answers one request; false: the connection ends.
func (a *session) answer() bool {
	packet, rights := make([]byte, wire.MaxPacket), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, flags, _, err := a.conn.ReadMsgUnix(packet, rights)
	r := request{sockets: descriptors(rights[:oobn])} // also of a packet without a byte, which is io.EOF
	defer func() {
		for _, fd := range r.sockets {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return false
	}
	reply := make([]byte, wire.HeaderLen, wire.MaxPacket)
	if n < wire.HeaderLen || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = fail(unix.EBADMSG, "a request of %d bytes is none", n)
	} else {
		r.operation = wire.Operation(binary.NativeEndian.Uint32(packet))
		r.ikernel, r.body = binary.NativeEndian.Uint32(packet[4:]), packet[wire.HeaderLen:n]
		reply, err = a.do(&r, reply)
	}
	binary.NativeEndian.PutUint32(reply[4:], r.ikernel)
	if err != nil {
		binary.NativeEndian.PutUint32(reply, uint32(errnoOf(err)))
		text := err.Error()
		reply = append(reply, text[:min(len(text), wire.MaxPacket-len(reply))]...)
	}
	var with []byte
	if r.gives != nil {
		with = unix.UnixRights(r.gives...)
	}
	_, _, err = a.conn.WriteMsgUnix(reply, with, nil)
	return err == nil
}

// descriptors are those that came with a packet.
func descriptors(oob []byte) (all []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// A failure is an error with its errno.
type failure struct {
	errno unix.Errno
	error
}

func (f failure) Unwrap() error { return f.error }

func fail(errno unix.Errno, format string, args ...any) error {
	return failure{errno, fmt.Errorf(format, args...)}
}

func errnoOf(err error) unix.Errno {
	var f failure
	var errno unix.Errno
	switch {
	case errors.As(err, &f):
		return f.errno
	case errors.Is(err, ikernels.ErrDiffers):
		return unix.EAGAIN
	case errors.Is(err, ikernels.ErrOpen):
		return unix.EBUSY
	case errors.As(err, &errno):
		return errno
	}
	return unix.EINVAL
}

// do does what is asked for, and appends what it gives to the reply.
func (a *session) do(r *request, reply []byte) ([]byte, error) {
	if r.operation == wire.OperationCreate {
		return a.create(r, reply)
	}
	k := a.all[r.ikernel]
	if k == nil {
		return reply, fail(unix.ENOENT, "the application has no ikernel %d", r.ikernel)
	}
	switch r.operation {
	case wire.OperationDestroy:
		delete(a.all, r.ikernel)
		ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
		defer cancel()
		return reply, k.end(ctx)
	case wire.OperationAttach:
		return reply, a.withSocket(r, k.Attach)
	case wire.OperationDetach:
		return reply, a.withSocket(r, k.Detach)
	case wire.OperationTransact:
		return transact(k.Ikernel, r.body, reply)
	case wire.OperationRings:
		return reply, openRings(k.Ikernel, r)
	case wire.OperationRingCounts:
		return countRings(k.Ikernel, reply)
	case wire.OperationNotes:
		return openNotes(k.Ikernel, r, reply)
	case wire.OperationDeliver:
		return deliver(k.Ikernel, reply)
	case wire.OperationFault:
		return reply, openFault(k.Ikernel, r)
	}
	return reply, fail(unix.ENOSYS, "the daemon knows no operation %d: is it older than the application's library?", r.operation)
}

func (a *session) create(r *request, reply []byte) ([]byte, error) {
	if len(a.all) == maxIkernels {
		return reply, fail(unix.EMFILE, "the application has %d ikernels, and can have no more: destroy some", len(a.all))
	}
	name, namespace, _ := strings.Cut(string(r.body), "\x00")
	k, err := a.make(name, namespace)
	if err != nil {
		return reply, err
	}
	k.SetOwner(a.is)
	a.last++
	r.ikernel = a.last
	a.all[a.last] = k
	for _, register := range k.Registers() {
		var signed uint32
		if register.Signed {
			signed = 1
		}
		var name [wire.MaxName]byte
		copy(name[:], register.Name)
		reply = append(binary.NativeEndian.AppendUint32(reply, signed), name[:]...)
	}
	return reply, nil
}

// make makes an ikernel of a namespace, or of none if that is "".
func (a *session) make(name, namespace string) (*owned, error) {
	if namespace == "" {
		k, err := a.Host.Create(name, nil)
		return &owned{Ikernel: k}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	of, leave, err := a.Enter(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	k, err := a.Host.Create(name, of)
	if err != nil {
		return nil, errors.Join(err, leave(ctx))
	}
	return &owned{k, leave}, nil
}

// maxIkernels is how many an application can have.
const maxIkernels = 64

// withSocket calls f with the request's socket, if it is the application's.
func (a *session) withSocket(r *request, f func(fd int) error) error {
	if len(r.sockets) != 1 {
		return fail(unix.EBADMSG, "the request has %d sockets instead of one", len(r.sockets))
	}
	var st unix.Stat_t
	if err := unix.Fstat(r.sockets[0], &st); err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	if a.user != 0 && st.Uid != a.user {
		return fail(unix.EPERM, "the socket is another user's")
	}
	return f(r.sockets[0])
}

// openFault gives where the application learns of the ikernel's fault.
func openFault(k *ikernels.Ikernel, r *request) error {
	fd, err := k.OpenFault()
	if err == nil {
		r.gives = append(r.gives, fd)
	}
	return err
}

// transact runs a transaction (wire.TransactionLen).
func transact(k *ikernels.Ikernel, body, reply []byte) ([]byte, error) {
	if len(body) != wire.TransactionLen {
		return reply, fail(unix.EBADMSG, "a transaction of %d bytes is none", len(body))
	}
	var t ikernels.Transaction
	if err := binary.Read(bytes.NewReader(body), binary.NativeEndian, &t); err != nil {
		return reply, err
	}
	values, err := k.Transact(&t)
	if err != nil {
		return reply, err
	}
	for _, v := range values {
		reply = binary.NativeEndian.AppendUint64(reply, v)
	}
	return reply, nil
}
