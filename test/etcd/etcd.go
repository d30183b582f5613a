// Package etcd runs a real etcd for tests, as a process of its own.
package etcd

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/internal/child"
)

// Server is one member that serves alone, until the test ends.
type Server struct {
	URL string
	// Files of those who sign, and of a client's certificate and key; "" where the server has no TLS.
	CA, Certificate, Key string

	host  string
	args  []string
	cmd   *exec.Cmd
	ended <-chan struct{}
	said  bytes.Buffer
}

var servers atomic.Uint32

// Start starts a server without TLS.
func Start(t testing.TB) *Server {
	t.Helper()
	s := prepare(t, "http")
	s.Again(t)
	return s
}

// StartTLS starts a server that asks its clients for certificates.
func StartTLS(t testing.TB) *Server {
	t.Helper()
	s := prepare(t, "https")
	dir := t.TempDir()
	ca := newAuthority(t)
	s.CA = ca.write(t, dir)
	s.Certificate, s.Key = ca.issue(t, dir, "client", nil)
	certificate, key := ca.issue(t, dir, "server", net.ParseIP(s.host))
	s.args = append(s.args, "--client-cert-auth", "--trusted-ca-file", s.CA, "--cert-file", certificate, "--key-file", key)
	s.Again(t)
	return s
}

func prepare(t testing.TB, scheme string) *Server {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Fatal("etcd is not installed: run `make deps`")
	}
	// An address that only this process uses, so that its ports are free.
	pid, n := os.Getpid(), servers.Add(1)
	s := &Server{host: fmt.Sprintf("127.%d.%d.%d", 128+pid>>16&63, pid>>8&255, pid&255)}
	if pid&255 == 0 || pid&255 == 255 {
		s.host = fmt.Sprintf("127.%d.%d.1", 192+pid>>16&63, pid>>8&255)
	}
	s.URL = fmt.Sprintf("%s://%s:%d", scheme, s.host, 22000+2*n)
	peer := fmt.Sprintf("http://%s:%d", s.host, 22001+2*n)
	s.args = []string{
		"--name", "test", "--data-dir", filepath.Join(t.TempDir(), "data"), "--listen-client-urls", s.URL, "--advertise-client-urls", s.URL,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "test=" + peer, "--log-level", "error",
	}
	t.Cleanup(s.Kill)
	return s
}

// Again starts the server, or starts it again after Kill, with what it had.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	s.said.Reset()
	s.cmd = exec.Command("etcd", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	var err error
	if s.ended, err = child.Start(s.cmd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		if conn, err := net.Dial("tcp", s.URL[len(s.URL)-len(s.host)-6:]); err == nil {
			conn.Close()
			return
		}
		select {
		case <-s.ended:
			t.Fatalf("etcd ended: %s", &s.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
}
