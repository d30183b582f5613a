package memcached

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReceiveBuffer gives every UDP socket of the server room for so many bytes. memcached asks the kernel for the default, which
// is meant for packets that take little more memory than their bytes. A packet that a driver received, or the NIC program sent,
// takes a page. This does for one server what sysctl net.core.rmem_default does for the whole machine (pidfd_getfd(2)).
func (s *Server) ReceiveBuffer(bytes int) error {
	pid := s.PID()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open memcached's process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(pidfd) }()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return err
	}
	for _, path := range fds {
		name, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(name, "socket:") {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			return err
		}
		if err := enlarge(pidfd, fd, bytes); err != nil {
			return fmt.Errorf("give memcached a larger receive buffer: %w", err)
		}
	}
	return nil
}

// enlarge sets the receive buffer of another process's file descriptor, if that is a UDP socket.
func enlarge(pidfd, fd, bytes int) error {
	own, err := unix.PidfdGetfd(pidfd, fd, 0)
	if errors.Is(err, unix.EBADF) {
		return nil // closed meanwhile: it was a connection
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(own) }()
	typ, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || typ != unix.SOCK_DGRAM {
		return err
	}
	return unix.SetsockoptInt(own, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes)
}
