package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
)

// startMemcached runs a real memcached, over UDP and TCP, at loopback and at the address that the NIC reaches.
func startMemcached(t *testing.T, host string) (*memcache.Client, int) {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddr(t, host))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("memcached", "-l", "127.0.0.1,"+host, "-p", port, "-U", port, "-u", "nobody", "-m", "16")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start memcached: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	client := memcache.New("127.0.0.1:" + port)
	t.Cleanup(func() { _ = client.Close() })
	poll(t, "memcached answers", client.Ping)
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return client, n
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
