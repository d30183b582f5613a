package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

var loopback = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}

// patience ends tests that hang: no test passes or fails by how long anything takes on a busy machine.
const patience = time.Minute

// orphan, where it is set, makes this binary start a memcached, print its port and wait.
const orphan = "LAMBDANIC_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphan) == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), loopback)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Port)
	select {}
}

func TestDiesWithItsOwner(t *testing.T) {
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), orphan+"=1")
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var port uint16
	_, scanned := fmt.Fscan(out, &port)
	if err := errors.Join(scanned, owner.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // says that it was killed
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", netip.AddrPortFrom(loopback[0], port).String())
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatalf("memcached on port %d outlives its owner", port)
		}
	}
}

// It speaks TCP, and UDP on its other address too.
func TestStart(t *testing.T) {
	s, err := Start(context.Background(), loopback, "-m", "16")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if c, err := net.Dial("tcp", netip.AddrPortFrom(loopback[0], s.Port).String()); err == nil {
			c.Close()
			t.Error("it listens after it was stopped")
		}
	}()
	if err := s.Client.Set(&memcache.Item{Key: "k", Value: []byte("value")}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", netip.AddrPortFrom(loopback[1], s.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// The frame header of memcached's doc/protocol.txt: request ID, sequence number, datagrams, reserved.
	if _, err := conn.Write([]byte("\x00\x07\x00\x00\x00\x01\x00\x00get k\r\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1500)
	n, err := conn.Read(b)
	if want := "\x00\x07\x00\x00\x00\x01\x00\x00VALUE k 0 5\r\nvalue\r\nEND\r\n"; err != nil || string(b[:n]) != want {
		t.Errorf("got %q, %v; want %q", b[:n], err, want)
	}
}

func TestStartSaysThatItEnded(t *testing.T) {
	s, err := Start(context.Background(), loopback, "--no-such-option")
	if err == nil {
		t.Fatal("it runs with an option that it does not know", s.Stop())
	}
	if !strings.Contains(err.Error(), "ended at once") {
		t.Errorf("got %v", err)
	}
}
