package lambdanic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
)

// IkernelSocket is where the daemon of this machine serves applications that have ikernels.
const IkernelSocket = "/run/lambdanic/default/ikernel.sock"

// Ikernels is an application's connection to the daemon. Its ikernels end with it. It may be used by several goroutines.
type Ikernels struct {
	mu     sync.Mutex
	conn   *net.UnixConn
	memory map[uint32][]io.Closer // that each ikernel shares with the application
}

// OpenIkernels connects to the daemon's socket, such as IkernelSocket.
func OpenIkernels(path string) (*Ikernels, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("connect to the daemon: %w: start it with `lambdanic up -d`, and ask as root", err)
	}
	return &Ikernels{conn: conn, memory: map[uint32][]io.Closer{}}, nil
}

// Close ends all ikernels of the connection, and their rings and notes. Their sockets get all of their datagrams again.
func (a *Ikernels) Close() error {
	err := a.conn.Close()
	a.mu.Lock()
	numbers := slices.Collect(maps.Keys(a.memory))
	a.mu.Unlock()
	for _, number := range numbers {
		err = errors.Join(err, a.unmap(number))
	}
	return err
}

// Ikernel serves sockets that are attached to it, before the application does.
type Ikernel struct {
	all       *Ikernels
	number    uint32
	registers []string
	watching  sync.Mutex
	watched   *watch // nil until somebody asks for a fault
}

// Create makes an ikernel that has no socket yet. ikernels/README.md names those that there are.
func (a *Ikernels) Create(name string) (*Ikernel, error) { return a.CreateFor(name, "") }

// CreateFor makes one that is kept in the share and the quotas of a namespace that there is, and charged to it; "": of none. It takes UDP sockets alone.
func (a *Ikernels) CreateFor(name, namespace string) (*Ikernel, error) {
	request := []byte(name)
	if namespace != "" {
		request = append(append(request, 0), namespace...)
	}
	reply, err := a.exchange(wire.OperationCreate, 0, request, nil)
	if err != nil {
		return nil, fmt.Errorf("create ikernel %s: %w", name, err)
	}
	k := &Ikernel{all: a, number: reply.number}
	for register := range slices.Chunk(reply.body, wire.RegisterLen) {
		k.registers = append(k.registers, strings.TrimRight(string(register[wire.RegisterLen-wire.MaxName:]), "\x00"))
	}
	return k, nil
}

// Destroy ends the ikernel, its rings and notes, and forgets its registers.
func (k *Ikernel) Destroy() error {
	_, err := k.all.exchange(wire.OperationDestroy, k.number, nil, nil)
	return errors.Join(err, k.all.unmap(k.number))
}

// Attach has the ikernel get the datagrams to a UDP socket, before the socket does and after the ikernels that it has. That ends when the socket closes.
// threshold takes TCP sockets, too: a connection, or one that listens, for all connections that it accepts.
func (k *Ikernel) Attach(socket syscall.Conn) error {
	return k.withSocket(wire.OperationAttach, socket)
}

// Detach has a socket get its datagrams again. The ikernel keeps its registers.
func (k *Ikernel) Detach(socket syscall.Conn) error {
	return k.withSocket(wire.OperationDetach, socket)
}

func (k *Ikernel) withSocket(o wire.Operation, socket syscall.Conn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { _, failed = k.all.exchange(o, k.number, nil, unix.UnixRights(int(fd))) }); err != nil {
		return err
	}
	return failed
}

// ErrDiffers says that a register had not the value that a transaction expected. Nothing was written.
var ErrDiffers = errors.New("a register has another value than the transaction expects")

// Read returns all registers, as they are at one moment. One of unsigned numbers is converted as by int64().
func (k *Ikernel) Read() (map[string]int64, error) { return k.Transact(nil, nil) }

// Write writes registers in one step.
func (k *Ikernel) Write(values map[string]int64) error {
	_, err := k.Transact(nil, values)
	return err
}

// Transact returns all registers and writes some in the same step, if others have the values that are expected; or else it fails with ErrDiffers.
func (k *Ikernel) Transact(expect, write map[string]int64) (map[string]int64, error) {
	var values struct {
		Expect, Write    uint64
		Expected, Values [wire.MaxRegisters]int64
	}
	var err error
	if values.Expect, err = k.fill(&values.Expected, expect); err != nil {
		return nil, err
	}
	if values.Write, err = k.fill(&values.Values, write); err != nil {
		return nil, err
	}
	body, err := binary.Append(nil, binary.NativeEndian, &values)
	if err != nil {
		return nil, err
	}
	reply, err := k.all.exchange(wire.OperationTransact, k.number, body, nil)
	if err != nil {
		return nil, err
	}
	all := make(map[string]int64, len(k.registers))
	for i, name := range k.registers {
		all[name] = int64(binary.NativeEndian.Uint64(reply.body[8*i:]))
	}
	return all, nil
}

// fill puts values where their registers are, and says which these are.
func (k *Ikernel) fill(words *[wire.MaxRegisters]int64, values map[string]int64) (mask uint64, err error) {
	for name, v := range values {
		i := slices.Index(k.registers, name)
		if i < 0 {
			return 0, fmt.Errorf("the ikernel has no register %q: use %s", name, strings.Join(k.registers, ", "))
		}
		words[i] = v
		mask |= 1 << i
	}
	return mask, nil
}

// keep has memory end with the ikernel.
func (k *Ikernel) keep(memory io.Closer) {
	k.all.mu.Lock()
	defer k.all.mu.Unlock()
	k.all.memory[k.number] = append(k.all.memory[k.number], memory)
}

// unmap ends the memory that an ikernel shares.
func (a *Ikernels) unmap(ikernel uint32) error {
	a.mu.Lock()
	all := a.memory[ikernel]
	delete(a.memory, ikernel)
	a.mu.Unlock()
	var errs []error
	for _, memory := range all {
		errs = append(errs, memory.Close())
	}
	return errors.Join(errs...)
}

// A reply is what the daemon answers to a request.
type reply struct {
	number      uint32 // of the ikernel
	body        []byte
	descriptors []int
}

// exchange sends a request, and returns its reply.
func (a *Ikernels) exchange(o wire.Operation, ikernel uint32, body, rights []byte) (reply, error) {
	request := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(o)), ikernel)
	a.mu.Lock()
	defer a.mu.Unlock()
	var packet []byte
	var descriptors []int
	_, _, err := a.conn.WriteMsgUnix(append(request, body...), rights, nil)
	if err == nil {
		packet, descriptors, err = a.receive()
	}
	if err != nil {
		return reply{}, fmt.Errorf("ask the daemon: %w: is it still running? See `lambdanic list`", err)
	}
	text := packet[wire.HeaderLen:]
	switch errno := unix.Errno(binary.NativeEndian.Uint32(packet)); errno {
	case 0:
		return reply{binary.NativeEndian.Uint32(packet[4:]), text, descriptors}, nil
	case unix.EAGAIN:
		return reply{}, ErrDiffers
	default:
		return reply{}, fmt.Errorf("%s (%w)", text, errno)
	}
}

// receive receives a reply, and the descriptors that come with it.
func (a *Ikernels) receive() (packet []byte, descriptors []int, err error) {
	packet = make([]byte, wire.MaxPacket)
	oob := make([]byte, unix.CmsgSpace(4*wire.MaxRings))
	n, oobn, flags, _, err := a.conn.ReadMsgUnix(packet, oob)
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range messages {
		fds, failed := unix.ParseUnixRights(&messages[i])
		descriptors, err = append(descriptors, fds...), errors.Join(err, failed)
	}
	switch {
	case err == nil && n < wire.HeaderLen:
		err = fmt.Errorf("its reply has %d bytes", n)
	case err == nil && flags&unix.MSG_CTRUNC != 0:
		err = fmt.Errorf("open what it gives: %w: raise the limit on open files", unix.EMFILE)
	}
	if err != nil {
		closeDescriptors(descriptors)
		return nil, nil, err
	}
	return packet[:n], descriptors, nil
}

func closeDescriptors(all []int) {
	for _, fd := range all {
		_ = unix.Close(fd)
	}
}
