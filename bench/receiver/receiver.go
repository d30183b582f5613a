// Package receiver counts the datagrams that come to a UDP socket behind a NIC.
package receiver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/bench/link"
)

//go:generate go tool bpf2go -target bpfel bpf receiver.bpf.c --

// A Receiver is a UDP socket.
type Receiver struct {
	bpf  bpfObjects
	conn *net.UDPConn
}

// Open opens a socket at a port of the measured end of a pair.
func Open(p *link.Pair, port uint16) (*Receiver, error) {
	r := new(Receiver)
	if err := loadBpfObjects(&r.bpf, nil); err != nil {
		return nil, fmt.Errorf("load the receiver's counter: %w", err)
	}
	err := p.In(func() (err error) {
		r.conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Peer.Addr, port)))
		return err
	})
	if err == nil {
		err = r.attach()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("receive at port %d of %s: %w", port, p.Peer.Name, err), r.Close())
	}
	return r, nil
}

// attach has the socket's filter count.
func (r *Receiver) attach() error {
	raw, err := r.conn.SyscallConn()
	if err != nil {
		return err
	}
	var attached error
	err = raw.Control(func(fd uintptr) {
		attached = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_BPF, r.bpf.Receive.FD())
	})
	return errors.Join(err, attached)
}

// Received is how many datagrams have come since Open.
func (r *Receiver) Received() (total uint64, err error) {
	var perCPU []uint64
	if err := r.bpf.Received.Lookup(uint32(0), &perCPU); err != nil {
		return 0, fmt.Errorf("read the receiver's counter: %w", err)
	}
	for _, n := range perCPU {
		total += n
	}
	return total, nil
}

// Close closes the socket.
func (r *Receiver) Close() error {
	var err error
	if r.conn != nil {
		err = r.conn.Close()
	}
	return errors.Join(err, r.bpf.Close())
}
