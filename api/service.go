package api

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Servers are the addresses of the service's servers.
func (svc ServiceSpec) Servers() []string {
	if svc.Address != "" {
		return []string{svc.Address}
	}
	return svc.Addresses
}

// At returns the service at other addresses, separated by white space. Weights stay where there are as many.
func (svc ServiceSpec) At(addresses string) ServiceSpec {
	svc.Address, svc.Addresses = "", strings.Fields(addresses)
	if len(svc.Addresses) != len(svc.Weights) {
		svc.Weights = nil
	}
	if len(svc.Addresses) == 1 {
		svc.Address, svc.Addresses, svc.Weights = svc.Addresses[0], nil, nil
	}
	return svc
}

func (svc ServiceSpec) validate(bad func(field, format string, args ...any), at string) {
	if !identifierRE.MatchString(svc.Name) {
		bad(at+".name", "%q is not a C identifier", svc.Name)
	}
	if svc.Protocol != ProtocolMemcached && svc.Protocol != ProtocolRaw {
		bad(at+".protocol", "%q is unknown: use %q or %q", svc.Protocol, ProtocolMemcached, ProtocolRaw)
	}
	svc.validateServers(bad, at)
	if d := time.Duration(svc.Timeout); d < time.Millisecond || d > time.Minute {
		bad(at+".timeout", "%v is not between 1ms and 1m", d)
	}
	if svc.Retries < 0 || svc.Retries > MaxRetries {
		bad(at+".retries", "%d is not between 0 and %d", svc.Retries, MaxRetries)
	}
	if id := svc.ID; id != nil {
		if svc.Protocol != ProtocolRaw {
			bad(at+".id", "protocol %q has a request ID of its own: leave it out", svc.Protocol)
		}
		if id.Bytes != 2 && id.Bytes != 4 && id.Bytes != 8 {
			bad(at+".id.bytes", "%d is not 2, 4 or 8", id.Bytes)
		} else if id.At < 0 || id.At > RPCMaxPayload-id.Bytes {
			bad(at+".id.at", "%d is not between 0 and %d", id.At, RPCMaxPayload-id.Bytes)
		}
	}
}

func (svc ServiceSpec) validateServers(bad func(field, format string, args ...any), at string) {
	if svc.Address != "" && len(svc.Addresses) > 0 {
		bad(at+".addresses", "there is an address, too: give one of the two")
	}
	seen := map[string]bool{}
	for _, address := range svc.Servers() {
		if _, _, err := HostPort(address); err != nil {
			bad(at+".address", "%v", err)
		}
		if seen[address] {
			bad(at+".addresses", "%s stands twice: give it a weight", address)
		}
		seen[address] = true
	}
	if len(seen) == 0 {
		bad(at+".address", "is missing: give IP:PORT or host:PORT")
	}
	if len(svc.Weights) > 0 && len(svc.Weights) != len(svc.Addresses) {
		bad(at+".weights", "%d weights are not one for each of %d addresses", len(svc.Weights), len(svc.Addresses))
	}
	for _, w := range svc.Weights {
		if w < 1 || w > MaxWeight {
			bad(at+".weights", "%d is not between 1 and %d", w, MaxWeight)
		}
	}
}

// HostPort splits the address of a server. The zero Addr stands for "host".
func HostPort(address string) (netip.Addr, uint16, error) {
	if port, ok := strings.CutPrefix(address, "host:"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return netip.Addr{}, 0, fmt.Errorf("%q has no valid port", address)
		}
		return netip.Addr{}, uint16(n), nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil || ap.Port() == 0 {
		return netip.Addr{}, 0, fmt.Errorf("%q is not IP:PORT or host:PORT", address)
	}
	return ap.Addr(), ap.Port(), nil
}
