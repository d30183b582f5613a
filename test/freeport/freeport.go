// Package freeport finds UDP ports for servers that tests start.
package freeport

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
)

// The ports lie below those that the kernel gives to clients' sockets (ip_local_port_range in ip(7)): such a socket may take a port at all
// addresses at once.
const (
	first = 20000
	ports = 10000
)

var taken atomic.Uint32

// UDP finds a free port at an address of loopback that only this process uses, so that the port is still free when a server takes it. It
// has the signature of process.Config.Listen, and does not use the workload.
func UDP(uint32) (addr netip.AddrPort, err error) {
	pid := os.Getpid()
	own := netip.AddrFrom4([4]byte{127, byte(1 + pid>>16), byte(pid >> 8), byte(pid)})
	for range ports {
		addr = netip.AddrPortFrom(own, uint16(first+taken.Add(1)%ports))
		var conn *net.UDPConn
		if conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr)); err == nil {
			return addr, conn.Close()
		}
	}
	return addr, fmt.Errorf("find a free port at %v: %w", own, err)
}
