package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/lambdanic/lambdanic/internal/memcached"
)

// startMemcached runs a real memcached at loopback and at the address that the NIC reaches.
func startMemcached(t *testing.T, host string) *memcached.Server {
	t.Helper()
	m, err := memcached.Start(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr(host)}, "-m", "16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop() })
	return m
}

// silentUDP gives the address of a socket that takes requests and never answers.
func silentUDP(t *testing.T, host string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort("0.0.0.0", "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return fmt.Sprintf("%s:%d", host, conn.LocalAddr().(*net.UDPAddr).Port)
}
