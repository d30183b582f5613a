package ikernels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Of TLS in the kernel (include/uapi/linux/tls.h).
const (
	tlsSend, tlsReceive = 1, 2 // TLS_TX, TLS_RX
	tls13               = 0x0304
	tlsAES128           = 51 // TLS_CIPHER_AES_GCM_128
)

// needTLS skips a test where the kernel has no TLS. Where it has, it says of a socket without a connection that this is why it has none.
func needTLS(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	switch err := setTLS(fd); {
	case errors.Is(err, unix.ENOENT):
		t.Skipf("the kernel has no TLS: %v: needs the module tls", err)
	case !errors.Is(err, unix.ENOTCONN):
		t.Fatalf("got %v", err)
	}
}

func setTLS(fd int) error { return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP, "tls") }

// prepareTLS has a connection have TLS in the kernel, without keys: what is sent and received stays as it is.
func prepareTLS(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	if err := with(t, conn, setTLS); err != nil {
		t.Fatal(err)
	}
}

// speakTLS has the kernel encrypt what the connection sends, or decrypt what it receives, by a key that both ends know.
func speakTLS(t *testing.T, conn *net.TCPConn, direction int) error {
	t.Helper()
	info := binary.NativeEndian.AppendUint16(nil, tls13)
	info = binary.NativeEndian.AppendUint16(info, tlsAES128)
	info = append(info, "8 of IV.sixteen byte keysalt"...)
	info = append(info, make([]byte, 8)...) // the number of the first record
	return with(t, conn, func(fd int) error { return unix.SetsockoptString(fd, unix.SOL_TLS, direction, string(info)) })
}

// TestStreamTLSBefore attaches a connection that has TLS in the kernel.
func TestStreamTLSBefore(t *testing.T) {
	needTLS(t)
	s := newSite(t)
	server, client := s.connect(s.listenTCP("127.0.0.1:0"))
	prepareTLS(t, server)
	prepareTLS(t, client)
	if err := errors.Join(speakTLS(t, server, tlsReceive), speakTLS(t, client, tlsSend)); err != nil {
		t.Fatal(err)
	}
	if err := with(t, server, s.sensing().Attach); !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "has no TCP_ULP") {
		t.Errorf("got %v", err)
	}
	expectAll(t, newSensor(1), server, client)
}

// expectAll sends messages, and has the server read all of them.
func expectAll(t *testing.T, from *sensor, server, client *net.TCPConn) {
	t.Helper()
	for range 100 {
		sent := from.measure(3)
		sendTCP(t, client, sent)
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("got %x, %v, want %x", got, err, sent)
		}
	}
}

// TestStreamTLSAfter has connections get TLS in the kernel when they are attached: without a key, and with one for each direction. The ikernel gets nothing more of
// them, and goes on with others. As long as the kernel refuses the key, everything passes.
func TestStreamTLSAfter(t *testing.T) {
	needTLS(t)
	for _, direction := range []int{0, tlsSend, tlsReceive} {
		t.Run(fmt.Sprint("direction ", direction), func(t *testing.T) {
			s := newSite(t)
			k, l, from, other := s.sensing(), s.listenTCP("127.0.0.1:0"), newSensor(2), newSensor(4)
			server, client := s.connect(l)
			attach(t, k, server)
			from.isFiltered(t, k, 0, server, client)
			prepareTLS(t, server)
			decrypts := false
			if direction != 0 {
				err := speakTLS(t, server, direction)
				t.Logf("the kernel says of a key: %v", err)
				decrypts = direction == tlsReceive && err == nil
			}
			if !decrypts {
				expectAll(t, newSensor(5), server, client)
			}
			neighbour, sender := s.connect(l)
			attach(t, k, neighbour)
			other.isFiltered(t, k, len(from.values), neighbour, sender)
			expectRegisters(t, k, from, other)
			if err := with(t, server, k.Detach); err != nil {
				t.Error(err)
			}
			if err := with(t, server, k.Attach); !errors.Is(err, unix.EOPNOTSUPP) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// isFiltered sends segments of one message each to an ikernel that has counted some. The server gets the alerts alone.
func (s *sensor) isFiltered(t *testing.T, k *Ikernel, before int, server, client *net.TCPConn) {
	t.Helper()
	for range 20 {
		sendTCP(t, client, s.measure(1))
		awaitCount(t, k, before+len(s.values))
	}
	got := make([]byte, s.alerts*sensorSize)
	if _, err := io.ReadFull(server, got); err != nil {
		t.Fatal(err)
	}
	if missing, err := s.check(got); err != nil || missing != len(s.values)-s.alerts {
		t.Errorf("%d of %d messages were dropped, want %d: %v", missing, len(s.values), len(s.values)-s.alerts, err)
	}
}

// TestStreamMultipath attaches sockets that speak Multipath TCP. The connection of a client that does not is one of TCP, whoever accepts it.
func TestStreamMultipath(t *testing.T) {
	s := newSite(t)
	k := s.sensing()
	var config net.ListenConfig
	config.SetMultipathTCP(true)
	var l *net.TCPListener
	s.in(func() error {
		listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err == nil {
			l = listener.(*net.TCPListener)
		}
		return err
	})
	defer l.Close()
	refuses := func(err error) {
		t.Helper()
		if !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "Multipath TCP: use TCP alone") {
			t.Errorf("got %v", err)
		}
	}
	if protocolOf(t, l) != unix.IPPROTO_MPTCP {
		t.Skip("the kernel has no Multipath TCP: needs CONFIG_MPTCP")
	}
	refuses(with(t, l, k.Attach))
	for _, multipath := range []bool{true, false} {
		var dialer net.Dialer
		dialer.SetMultipathTCP(multipath)
		var client *net.TCPConn
		s.in(func() error {
			conn, err := dialer.Dial("tcp", l.Addr().String())
			if err == nil {
				client = conn.(*net.TCPConn)
			}
			return err
		})
		defer client.Close()
		server, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if multipath {
			refuses(with(t, server, k.Attach))
			refuses(with(t, client, k.Attach))
			continue
		}
		attach(t, k, server)
		from := newSensor(5)
		from.isFiltered(t, k, 0, server, client)
		expectRegisters(t, k, from)
	}
}

func protocolOf(t *testing.T, conn syscall.Conn) (protocol int) {
	t.Helper()
	if err := with(t, conn, func(fd int) (err error) {
		protocol, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return protocol
}
