// Package memcached starts a real memcached for benchmarks, demo and tests.
package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/internal/child"
)

// Server is a memcached that listens by TCP and UDP, on one port of several addresses.
type Server struct {
	Port   uint16
	Client *memcache.Client // an ordinary client, by TCP
	cmd    *exec.Cmd
	done   <-chan struct{}
}

// Start starts a memcached on a free port of the addresses, with further command-line arguments, and returns when it answers. It
// dies with this process.
func Start(ctx context.Context, addrs []netip.Addr, args ...string) (*Server, error) {
	port, err := freePort(addrs[0])
	if err != nil {
		return nil, err
	}
	return StartAt(ctx, port, addrs, args...)
}

// StartAt is Start on this port.
func StartAt(ctx context.Context, port uint16, addrs []netip.Addr, args ...string) (*Server, error) {
	var listen []string
	for _, a := range addrs {
		listen = append(listen, a.String())
	}
	p := strconv.Itoa(int(port))
	s := &Server{Port: port, Client: memcache.New(netip.AddrPortFrom(addrs[0], port).String())}
	s.cmd = exec.Command("memcached", append([]string{"-l", strings.Join(listen, ","), "-p", p, "-U", p}, args...)...)
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("start memcached: %w: install package memcached", err)
	}
	if err := s.await(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Restart ends the server and starts it again, in the calling thread's network namespace. Then it has no values.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return err
	}
	s.cmd = exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
	if err := s.start(); err != nil {
		return fmt.Errorf("start memcached again: %w", err)
	}
	return s.await(ctx)
}

// nobody is the user that memcached runs as. It is the kernel's overflowuid, too.
const nobody = 65534

// start starts the process as nobody. It does not use memcached's own option for that: a process that changes its user loses
// the setting that has it die with this process.
func (s *Server) start() (err error) {
	if os.Geteuid() == 0 {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	s.done, err = child.Start(s.cmd, syscall.SIGKILL)
	return err
}

// await returns when memcached answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for s.Client.Ping() != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for memcached on port %d: %w", s.Port, ctx.Err())
		case <-s.done:
			return fmt.Errorf("memcached ended at once: %s", s.cmd.ProcessState)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// PID is the number of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Kill() // no error unless it has ended already
	<-s.done
	return s.Client.Close()
}

func freePort(addr netip.Addr) (uint16, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), nil
}
