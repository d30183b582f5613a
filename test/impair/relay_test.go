package impair

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net"
	"net/netip"
	"testing"
	"time"
)

// mirror sends every datagram back, and counts what it saw in the numbers that they begin with.
func mirror(t *testing.T, address string, heard chan<- int) netip.AddrPort {
	t.Helper()
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	bigBuffers(conn)
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, peer, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			heard <- int(binary.BigEndian.Uint32(buf))
			_, _ = conn.WriteToUDPAddrPort(buf[:n], peer)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Every datagram meets its fate, over both families, for several clients at once.
func TestRelay(t *testing.T) {
	const n = 2000
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		heard := make(chan int, 4*n)
		f := Faults{Seed: 11, Drop: 0.2, Duplicate: 0.1}
		down := f
		down.Seed, down.Corrupt = 12, 0.1
		r, err := Start(Config{Listen: address, Server: mirror(t, address, heard), Up: f, Down: down})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		bigBuffers(conn)
		i := 0
		up := map[int]int{} // copies that the server has to see
		corrupted := uint64(0)
		for fate := range f.Fates(ToServer) {
			if i == n {
				break
			}
			if _, err := conn.Write(content(i)); err != nil {
				t.Fatal(err)
			}
			if !fate.Drop {
				up[i] = 1
				if fate.Duplicate {
					up[i]++
				}
			}
			if i++; i%50 == 0 { // a few at a time: no buffer overflows
				wait(t, func() bool { return r.Counts(ToServer).Packets == uint64(i) })
			}
		}
		// Fates of the way back belong to datagrams in the order of their arrival there.
		total := 0
		for _, copies := range up {
			total += copies
		}
		wait(t, func() bool { return r.Counts(ToClient).Packets == uint64(total) })
		for range total {
			number := <-heard
			if up[number]--; up[number] < 0 {
				t.Errorf("%s: the server heard packet %d too often", address, number)
			}
		}
		c := r.Counts(ToClient)
		buf := make([]byte, 2048)
		for got := range c.Delivered {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			size, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("%s: %d of %d came back: %v", address, got, c.Delivered, err)
			}
			corrupted += flipped(t, buf[:size])
		}
		if c.Packets != uint64(total) || c.Delivered != c.Packets-c.Dropped+c.Duplicated || corrupted < c.Corrupted {
			t.Errorf("%s: %+v, %d with a wrong bit, of %d", address, c, corrupted, total)
		}
		within(t, "dropped on the way back", c.Dropped, total, down.Drop)
		conn.Close()
		r.Close()
	}
}

// flipped says whether one bit is wrong; content repeats itself, so a bit that differs from most is.
func flipped(t *testing.T, p []byte) uint64 {
	t.Helper()
	votes := map[uint32]int{}
	for at := 0; at < len(p); at += 4 {
		votes[binary.BigEndian.Uint32(p[at:])]++
	}
	for number, n := range votes {
		if n >= 15 {
			want, wrong := content(int(number)), 0
			for i := range p {
				wrong += bits.OnesCount8(p[i] ^ want[i])
			}
			if wrong > 1 || len(p) != len(want) {
				t.Errorf("%d bits of packet %d are wrong", wrong, number)
			}
			return uint64(wrong)
		}
	}
	t.Errorf("came back as % x", p)
	return 0
}

func wait(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(10 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v", patience)
		}
	}
}

func TestClientsAreToldApart(t *testing.T) {
	heard := make(chan int, 100)
	var tapped [2]int
	r, err := Start(Config{
		Listen: "127.0.0.1:0", Server: mirror(t, "127.0.0.1:0", heard),
		Tap: func(d Direction, _ netip.AddrPort, _ []byte) { tapped[d]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(content(i)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2048)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		n, err := conn.Read(buf)
		if err != nil || !bytes.Equal(buf[:n], content(i)) {
			t.Errorf("client %d: %x, %v", i, buf[:n], err)
		}
	}
	r.Close()
	if tapped != [2]int{3, 3} {
		t.Errorf("the tap saw %v", tapped)
	}
}
