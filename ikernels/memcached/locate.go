package memcached

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/lambdanic/lambdanic/internal/demux"
)

// locate connects to the server that accepts TCP at the port in the calling thread's network namespace.
func locate(port uint16) (*probe, error) {
	candidates := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	own, err := demux.Addresses(nil)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range append(candidates, own...) {
		p, err := dialProbe(netip.AddrPortFrom(a, port))
		if err == nil {
			return p, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, fmt.Errorf("no server answers by TCP at port %d of the network namespace: %w: start it there with -p %d and -U %d, and set lo up", port, failed, port, port)
}
