package memcached

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/lambdanic/lambdanic/internal/demux"
)

// locate connects to the server that accepts TCP at the port in the calling thread's network namespace, and returns at which address it does.
func locate(port uint16) (*probe, netip.AddrPort, error) {
	candidates := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	own, err := demux.Addresses(nil)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	var failed error
	for _, a := range append(candidates, own...) {
		server := netip.AddrPortFrom(a, port)
		p, err := dialProbe(server)
		if err == nil {
			return p, server, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, netip.AddrPort{}, fmt.Errorf("no server answers by TCP at port %d of the network namespace: %w: start it there with -p %d and -U %d, and set lo up", port, failed, port, port)
}
