package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// listenTCP makes a listening socket of plain TCP.
func listenTCP(t testing.TB) *net.TCPListener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// stream makes a connection in a network namespace of its own, whose listening socket an ikernel has, or else the connection itself where the kernel does not
// let it. The server has sent a byte, and the client has it.
func stream(t testing.TB, k *lambdanic.Ikernel) (server, client net.Conn) {
	t.Helper()
	ns := isolated.Namespace(t, fmt.Sprintf("lnses%d", os.Getpid()))
	if err := veth.In(ns, func() error {
		l := listenTCP(t)
		var refused error
		if k != nil {
			if refused = k.Attach(l); refused != nil && !errors.Is(refused, unix.EOPNOTSUPP) {
				return refused
			}
		}
		var err error
		if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
			return err
		}
		if server, err = l.Accept(); err == nil && refused != nil {
			err = k.Attach(server.(*net.TCPConn))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	if _, err := server.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return server, client
}

// TestStreamSession has an application attach a listening socket. Its ikernel averages what comes by a connection, and posts the alerts to a ring.
func TestStreamSession(t *testing.T) {
	a := open(t, serve(t))
	k := create(t, a, "threshold")
	if err := k.Write(map[string]int64{"limit": 100}); err != nil {
		t.Fatal(err)
	}
	rings, err := k.OpenRings(lambdanic.Rings{Count: 1, Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	server, client := stream(t, k)
	deadline := time.Now().Add(patience)
	if err := errors.Join(server.SetDeadline(deadline), client.SetDeadline(deadline)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte{0, 0, 0, 200, 0, 0, 0, 1}); err != nil {
		t.Fatal(err)
	}
	_ = rings[0].SetReadDeadline(deadline)
	m, err := rings[0].Read()
	if err != nil {
		t.Fatal(err)
	}
	if value := binary.NativeEndian.Uint64(m.Data); value != 200 || m.From.String() != client.LocalAddr().String() {
		t.Errorf("the alert is %d from %v, want 200 from %v", value, m.From, client.LocalAddr())
	}
	if _, err := client.Write([]byte{0, 0}); err != nil { // an unfinished message
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); err != nil || string(got) != "\x00\x00" {
		t.Errorf("the server gets %q, %v", got, err)
	}
	if r, err := k.Read(); err != nil || r["count"] != 2 || r["sum"] != 201 || r["alerts"] != 1 {
		t.Errorf("the registers are %v, %v", r, err)
	}
}

// TestStreamErrors asks for what cannot be. The error has its number.
func TestStreamErrors(t *testing.T) {
	a := open(t, serve(t))
	if err := create(t, a, "echo").Attach(listenTCP(t)); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("got %v", err)
	}
}
