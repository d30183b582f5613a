package lambdanic

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	mu   sync.Mutex
	conn *net.UnixConn
}

// OpenIkernels connects to the daemon's socket, such as IkernelSocket.
func OpenIkernels(path string) (*Ikernels, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("connect to the daemon: %w: start it with `lambdanic up -d`", err)
	}
	return &Ikernels{conn: conn}, nil
}

// Close ends all ikernels of the connection. Their sockets get all of their datagrams again.
func (a *Ikernels) Close() error { return a.conn.Close() }

// Ikernel serves sockets that are attached to it, before the application does.
type Ikernel struct {
	all       *Ikernels
	number    uint32
	registers []string
}

// Create makes an ikernel that has no socket yet. ikernels/README.md names those that there are.
func (a *Ikernels) Create(name string) (*Ikernel, error) {
	reply, number, err := a.exchange(wire.OperationCreate, 0, []byte(name), nil)
	if err != nil {
		return nil, fmt.Errorf("create ikernel %s: %w", name, err)
	}
	k := &Ikernel{all: a, number: number}
	for register := range slices.Chunk(reply, wire.RegisterLen) {
		k.registers = append(k.registers, strings.TrimRight(string(register[wire.RegisterLen-wire.MaxName:]), "\x00"))
	}
	return k, nil
}

// Destroy ends the ikernel and forgets its registers.
func (k *Ikernel) Destroy() error {
	_, _, err := k.all.exchange(wire.OperationDestroy, k.number, nil, nil)
	return err
}

// Attach has the ikernel get the datagrams to a UDP socket, before the socket does. That ends when the socket closes.
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
	if err := raw.Control(func(fd uintptr) { _, _, failed = k.all.exchange(o, k.number, nil, unix.UnixRights(int(fd))) }); err != nil {
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
	reply, _, err := k.all.exchange(wire.OperationTransact, k.number, body, nil)
	if err != nil {
		return nil, err
	}
	all := make(map[string]int64, len(k.registers))
	for i, name := range k.registers {
		all[name] = int64(binary.NativeEndian.Uint64(reply[8*i:]))
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

// exchange sends a request, and returns what its reply gives.
func (a *Ikernels) exchange(o wire.Operation, ikernel uint32, body, rights []byte) (reply []byte, number uint32, err error) {
	request := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(o)), ikernel)
	a.mu.Lock()
	defer a.mu.Unlock()
	packet, n := make([]byte, wire.MaxPacket), 0
	if _, _, err = a.conn.WriteMsgUnix(append(request, body...), rights, nil); err == nil {
		n, err = a.conn.Read(packet)
	}
	if err == nil && n < wire.HeaderLen {
		err = fmt.Errorf("its reply has %d bytes", n)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("ask the daemon: %w: is it still running? See `lambdanic list`", err)
	}
	text := packet[wire.HeaderLen:n]
	switch errno := unix.Errno(binary.NativeEndian.Uint32(packet)); errno {
	case 0:
		return text, binary.NativeEndian.Uint32(packet[4:]), nil
	case unix.EAGAIN:
		return nil, 0, ErrDiffers
	default:
		return nil, 0, fmt.Errorf("%s (%w)", text, errno)
	}
}
