package ikernels

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// An Ikernel serves sockets that are attached to it. Its state lasts as long as itself.
type Ikernel struct {
	host      *Host
	name      string
	owner     Owner
	number    uint32
	coll      *ebpf.Collection
	types     *btf.Spec
	at        demux.Ikernel
	registers []Register
	ports     map[portKey]*port
	rings     []*ebpf.Map
	notes     bool       // are open
	generator *generator // nil: it does not send by itself
	metered   *metered   // nil: it is of no namespace

	fault    *Fault  // nil: it has none, or it is not noticed
	told     *[2]int // a socket's ends, the daemon's and the application's; nil: nobody asks for the fault
	isTold   bool
	leftover error // what failed when the fault detached the sockets
}

type portKey struct {
	namespace uint64
	name      string // of the interface
	port      uint16
}

// A port is where the ikernel gets datagrams, by one interface or several.
type port struct {
	*demux.Attachment
	places int // that use it
}

// Create makes an ikernel that has no socket yet. It is of a namespace, or of none if that is nil.
func (h *Host) Create(name string, of *Namespace) (*Ikernel, error) {
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
	k := &Ikernel{host: h, name: name, number: h.numbers, types: spec.Types, ports: map[portKey]*port{}}
	if err := spec.Variables["ik_number"].Set(k.number); err != nil {
		return nil, fmt.Errorf("number the ikernel: %w", err)
	}
	if k.registers, err = registersOf(spec.Types); err != nil {
		return nil, fmt.Errorf("read the registers of ikernel %s: %w", name, err)
	}
	shared := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"ik_flows": h.flows, "ik_sockets": h.sockets, "ik_faults": h.faults}}
	if spec.Maps["ik_connections"] != nil {
		shared.MapReplacements["ik_connections"] = h.connections
	}
	xdp.Untie(spec)
	if k.coll, err = ebpf.NewCollectionWithOptions(spec, shared); err != nil {
		return nil, kernel.Fails("does not load ikernel "+name, err)
	}
	k.at = demux.Ikernel{Program: k.coll.Programs["ik_datagram"], Next: k.coll.Maps["ln_next"], Order: lastOrder}
	if of != nil {
		if err := k.join(*of); err != nil {
			k.coll.Close()
			return nil, err
		}
	}
	h.all[k] = true
	return k, nil
}

// lastOrder has what the operator put before a server come before the server's own ikernels.
const lastOrder = math.MaxInt64

// Attach has the ikernel get the datagrams to a UDP socket, or the messages of a TCP socket, before the socket does and after the ikernels that it has. It ends
// when the socket closes.
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
	if err := k.serves(); err != nil {
		return err
	}
	if err := h.sweep(); err != nil {
		return err
	}
	if _, _, ok := h.find(k, s.cookie); ok {
		return errors.New("the socket has the ikernel")
	}
	if err := h.checkOthers(k, s); err != nil {
		return err
	}
	if err := k.mayGenerate(s); err != nil {
		return err
	}
	number, err := h.placeOf(k, s)
	if err != nil {
		return err
	}
	if err := h.enter(number, s); err != nil {
		return err
	}
	if err := k.generate(s, number); err != nil {
		return errors.Join(err, h.leave(number))
	}
	return nil
}

var errDestroyed = errors.New("the ikernel is destroyed")

// Detach has the socket get its datagrams or messages again. The ikernel keeps its state.
func (k *Ikernel) Detach(fd int) error {
	cookie, err := cookieOf(fd)
	if err != nil {
		return err
	}
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := k.serves(); err != nil {
		return err
	}
	if isStream(fd) {
		return k.detachStream(cookie)
	}
	number, i, ok := h.find(k, cookie)
	if !ok {
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
	errs := []error{h.leaveAll(k), k.leftover, k.closeFault(), k.leaveNamespace()}
	k.coll.Close()
	for _, ring := range k.rings {
		errs = append(errs, ring.Close())
	}
	return errors.Join(errs...)
}

// open has the ikernel get the datagrams to the socket's port by interfaces of the thread's network namespace.
func (k *Ikernel) open(s *socket, interfaces []string) (ports []*port, err error) {
	var missing []string
	for _, name := range interfaces {
		p := k.ports[portKey{s.namespace, name, s.own.Port()}]
		switch {
		case p == nil:
			missing = append(missing, name)
		case !slices.Contains(ports, p):
			ports = append(ports, p)
		}
	}
	if missing != nil {
		a, err := k.host.demux.Attach(&k.at, missing, xdp.ModeAuto, s.own.Port())
		if err != nil {
			return nil, err
		}
		p := &port{Attachment: a}
		for _, name := range missing {
			k.ports[portKey{s.namespace, name, s.own.Port()}] = p
		}
		ports = append(ports, p)
	}
	for _, p := range ports {
		p.places++
	}
	return ports, nil
}

// leave gives a port up if no other place uses it.
func (k *Ikernel) leave(p *port) error {
	if p.places--; p.places > 0 {
		return nil
	}
	maps.DeleteFunc(k.ports, func(_ portKey, at *port) bool { return at == p })
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
	if int32(differs) < 0 {
		return nil, k.notice()
	}
	if differs != 0 {
		return nil, ErrDiffers
	}
	if k.generator != nil && t.Write != 0 {
		k.generator.obey(t)
	}
	return out.Values[:len(k.registers)], nil
}
