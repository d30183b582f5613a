// Package fence keeps the processes of a control group from sending datagrams to whom they like.
package fence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

//go:generate go tool bpf2go -target bpfel -no-strip -type fence_peer raw fence.bpf.c

const (
	// maxServices is how many servers a group may call.
	maxServices = 1 << 12
	// clients is how many clients a group remembers, and so can answer: many more than a process works for at once.
	clients = 1 << 14
)

// A Fence lets the processes of one control group send only to who sent to them, and to services. It stays when it is closed, and goes with the
// group.
type Fence struct{ services *ebpf.Map }

// Open puts a fence around the control group in this directory, unless it has one.
func Open(group string) (*Fence, error) {
	dir, err := os.Open(group)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := find(int(dir.Fd()))
	if f == nil && err == nil {
		f, err = build(int(dir.Fd()))
	}
	if err != nil {
		return nil, fmt.Errorf("fence control group %s: %w", group, err)
	}
	return f, nil
}

// last is what build attaches last: a group that has it has all programs.
const last = ebpf.AttachCGroupInetEgress

// build loads the programs and attaches them.
func build(group int) (*Fence, error) {
	spec, err := loadRaw()
	if err != nil {
		return nil, err
	}
	spec.Maps[rawMapFenceClients].MaxEntries = clients
	spec.Maps[rawMapFenceServices].MaxEntries = maxServices
	var objs rawObjects
	if err := spec.LoadAndAssign(&objs, nil); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		at   ebpf.AttachType
		prog *ebpf.Program
	}{
		{ebpf.AttachCGroupUDP4Recvmsg, objs.FenceRecvmsg4},
		{ebpf.AttachCGroupUDP6Recvmsg, objs.FenceRecvmsg6},
		{last, objs.FenceEgress},
	} {
		// A link would end with us. What is attached without flags is alone in the group, and is replaced by the next one.
		if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: group, Program: p.prog, Attach: p.at}); err != nil {
			return nil, errors.Join(fmt.Errorf("attach %s: %w", p.at, err), objs.Close())
		}
	}
	services, err := objs.FenceServices.Clone()
	return &Fence{services}, errors.Join(err, objs.Close())
}

// find returns the fence that the group has; nil if it has none.
func find(group int) (*Fence, error) {
	attached, err := link.QueryPrograms(link.QueryOptions{Target: group, Attach: last})
	if err != nil || len(attached.Programs) == 0 {
		return nil, err
	}
	prog, err := ebpf.NewProgramFromID(attached.Programs[0].ID)
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, err
		}
		about, err := m.Info()
		if err == nil && about.Name == rawMapFenceServices {
			return &Fence{m}, nil
		}
		if err = errors.Join(err, m.Close()); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Allow has these servers, and no others, as the group's services.
func (f *Fence) Allow(services []netip.AddrPort) error {
	allowed := make(map[rawFencePeer]bool)
	for _, s := range services {
		allowed[peer(s)] = true
		if err := f.services.Put(peer(s), uint8(1)); err != nil {
			return fmt.Errorf("let a function call %s: %w", s, err)
		}
	}
	var p rawFencePeer
	var gone []rawFencePeer
	all := f.services.Iterate()
	for all.Next(&p, new(uint8)) {
		if !allowed[p] {
			gone = append(gone, p)
		}
	}
	err := all.Err()
	for _, p := range gone {
		err = errors.Join(err, f.services.Delete(p))
	}
	return err
}

// Close leaves the fence where it is.
func (f *Fence) Close() error { return f.services.Close() }

// peer is an address as the programs compare it.
func peer(a netip.AddrPort) (p rawFencePeer) {
	b := a.Addr().As16()
	for i := range p.Addr {
		p.Addr[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	p.Port = uint32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, a.Port())))
	return p
}
