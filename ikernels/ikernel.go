package ikernels

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// An Ikernel serves sockets that are attached to it. Its state lasts as long as itself.
type Ikernel struct {
	host      *Host
	number    uint32
	coll      *ebpf.Collection
	registers []Register
	ports     map[portKey]*demux.Port
	places    map[*demux.Port]int // that use each port
	rings     []*ebpf.Map
	notes     bool // are open
}

type portKey struct {
	namespace uint64
	name      string // of the interface
	port      uint16
}

// Create makes an ikernel that has no socket yet.
func (h *Host) Create(name string) (*Ikernel, error) {
	load := programs[name]
	if load == nil {
		return nil, fmt.Errorf("there is no ikernel %q: use %s", name, strings.Join(Names(), ", "))
	}
	spec, err := load()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers++
	k := &Ikernel{host: h, number: h.numbers, ports: map[portKey]*demux.Port{}, places: map[*demux.Port]int{}}
	if err := spec.Variables["ik_number"].Set(k.number); err != nil {
		return nil, fmt.Errorf("number the ikernel: %w", err)
	}
	if k.registers, err = registersOf(spec.Types); err != nil {
		return nil, fmt.Errorf("read the registers of ikernel %s: %w", name, err)
	}
	shared := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"ik_flows": h.flows, "ik_sockets": h.sockets}}
	if spec.Maps["ik_connections"] != nil {
		shared.MapReplacements["ik_connections"] = h.connections
	}
	if k.coll, err = ebpf.NewCollectionWithOptions(spec, shared); err != nil {
		return nil, kernel.Fails("does not load ikernel "+name, err)
	}
	h.all[k] = true
	return k, nil
}

// Attach has the ikernel get the datagrams to a UDP socket, or the messages of a TCP socket, before the socket does. It ends when the socket closes.
func (k *Ikernel) Attach(fd int) error {
	if isStream(fd) {
		return k.attachStream(fd)
	}
	s, err := look(fd)
	if err != nil {
		return err
	}
	defer s.close()
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.all[k] {
		return errDestroyed
	}
	if err := h.sweep(); err != nil {
		return err
	}
	if _, _, ok := h.find(s.cookie); ok {
		return errors.New("the socket has an ikernel: detach it first")
	}
	number, err := h.placeOf(k, s)
	if err != nil {
		return err
	}
	return h.enter(number, s)
}

var errDestroyed = errors.New("the ikernel is destroyed")

// Detach has the socket get its datagrams or messages again. The ikernel keeps its state.
func (k *Ikernel) Detach(fd int) error {
	if isStream(fd) {
		return k.detachStream(fd)
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return fmt.Errorf("identify the socket: %w", err)
	}
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	number, i, ok := h.find(cookie)
	if !ok || h.places[number].ikernel != k {
		return errors.New("the socket is not attached to this ikernel")
	}
	return errors.Join(h.take(h.places[number], number, i), h.sweep())
}

// Close detaches all sockets and forgets the ikernel.
func (k *Ikernel) Close() error {
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.all[k] {
		return nil
	}
	delete(h.all, k)
	var errs []error
	for i, p := range h.places {
		if p != nil && p.ikernel == k {
			errs = append(errs, h.leave(i))
		}
	}
	errs = append(errs, h.leaveStreams(k))
	k.coll.Close()
	for _, ring := range k.rings {
		errs = append(errs, ring.Close())
	}
	return errors.Join(errs...)
}

// port has the ikernel get the datagrams to the socket's port by an interface of the thread's network namespace.
func (k *Ikernel) port(s *socket, name string) (*demux.Port, error) {
	key := portKey{s.namespace, name, s.own.Port()}
	p := k.ports[key]
	if p == nil {
		var err error
		if p, err = k.host.demux.Attach(k.coll.Programs["ik_datagram"], name, xdp.ModeAuto, key.port); err != nil {
			return nil, err
		}
		k.ports[key] = p
	}
	k.places[p]++
	return p, nil
}

// leave gives a port up if no other place uses it.
func (k *Ikernel) leave(p *demux.Port) error {
	if k.places[p]--; k.places[p] > 0 {
		return nil
	}
	delete(k.places, p)
	for key, at := range k.ports {
		if at == p {
			delete(k.ports, key)
		}
	}
	return p.Close()
}

// A Register is a number of 64 bits that the ikernel and its application share.
type Register struct {
	Name   string
	Signed bool
}

// registersOf reads the registers that a program has (struct ik_registers).
func registersOf(types *btf.Spec) (list []Register, err error) {
	var s *btf.Struct
	if err := types.TypeByName("ik_registers", &s); err != nil {
		return nil, err
	}
	for i, m := range s.Members {
		integer, ok := btf.UnderlyingType(m.Type).(*btf.Int)
		if !ok || integer.Size != 8 || m.Offset.Bytes() != uint32(8*i) {
			return nil, fmt.Errorf("%s is no integer of 64 bits", m.Name)
		}
		list = append(list, Register{m.Name, integer.Encoding == btf.Signed})
	}
	return list, nil
}

// Registers lists the registers.
func (k *Ikernel) Registers() []Register { return k.registers }

// A Transaction reads all registers of an ikernel, and writes some in the same step, if others have the values that are expected. Bit i of Expect and Write
// is for register i. Values of signed registers are in two's complement.
type Transaction = echoIkTransaction

// ErrDiffers says that a register had not the value that a transaction expected.
var ErrDiffers = errors.New("a register has another value than the transaction expects")

// Transact runs a transaction, and returns all registers as they were before.
func (k *Ikernel) Transact(t *Transaction) ([]uint64, error) {
	if known := uint64(1)<<len(k.registers) - 1; (t.Expect|t.Write)&^known != 0 {
		return nil, fmt.Errorf("the ikernel has %d registers, and the transaction is about others", len(k.registers))
	}
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	if !k.host.all[k] {
		return nil, errDestroyed
	}
	var out Transaction
	differs, err := k.coll.Programs["ik_transact"].Run(&ebpf.RunOptions{Context: t, ContextOut: &out})
	if err != nil {
		return nil, fmt.Errorf("run a transaction: %w", err)
	}
	if differs != 0 {
		return nil, ErrDiffers
	}
	return out.Values[:len(k.registers)], nil
}
