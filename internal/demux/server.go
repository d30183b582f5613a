package demux

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/xdp"
)

// SetServer tells an ikernel's program, before it is loaded, at which addresses its server listens (bpf/server.h). What comes to others it leaves alone.
func SetServer(spec *ebpf.CollectionSpec, addrs []netip.Addr, log *slog.Logger) error {
	v := spec.Variables["ln_server_addresses"]
	words := make([][2]uint64, v.Size()/16)
	if len(addrs) > len(words) {
		log.Warn("the server listens at more addresses than an ikernel knows: it serves the first ones", "addresses", len(addrs), "known", len(words))
		addrs = addrs[:len(words)]
	}
	for i, a := range addrs {
		words[i] = xdp.Words(a)
	}
	if err := errors.Join(v.Set(words), spec.Variables["ln_server_address_count"].Set(uint32(len(addrs)))); err != nil {
		return fmt.Errorf("set the server's addresses: %w", err)
	}
	return nil
}

// A Server is a running one, in front of which an ikernel is put. The zero value of all but the port is a default.
type Server struct {
	Port       uint16   // at which it listens
	Interfaces []string // whose packets the ikernel gets; default: Ethernet interfaces that have an address at which the server listens, or else lo
	Mode       xdp.Mode // default: xdp.ModeAuto
	Order      int64    // among the ikernels that share the port: see Ikernel
	Demux      *Demux   // shares the interfaces; default: one that shares them with no other
	Meter      *Meter   // of the ikernel's namespace; nil: it is of none
	Log        *slog.Logger

	reached []netip.Addr // by Reach
}

// Reach fills in what is left to defaults for a server that listens at these addresses. It returns those at which clients reach it. Call
// it on a thread of the server's network namespace.
func (s *Server) Reach(listens []netip.Addr) (_ []netip.Addr, err error) {
	s.Mode = cmp.Or(s.Mode, xdp.ModeAuto)
	if s.Demux == nil {
		s.Demux = New(nil)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if len(s.Interfaces) == 0 {
		if s.Interfaces, err = Interfaces(listens); err != nil {
			return nil, err
		}
	}
	s.reached, err = Reached(s.Interfaces, listens)
	return s.reached, err
}

// Attach puts an ikernel in front of the server: its program and its ln_next (bpf/chain.h), behind its meter. Call it after Reach, on such a thread.
func (s *Server) Attach(program *ebpf.Program, next *ebpf.Map) (*Attachment, error) {
	if s.Meter != nil {
		var err error
		if program, err = s.Meter.load(program, s.reached, s.Log); err != nil {
			return nil, err
		}
	}
	return s.Demux.Attach(&Ikernel{Program: program, Next: next, Order: s.Order}, s.Interfaces, s.Mode, s.Port)
}
