package demux

import (
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
