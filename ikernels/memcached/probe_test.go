package memcached

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/internal/memcached"
)

// TestProbe asks a real memcached.
func TestProbe(t *testing.T) {
	addr := netip.MustParseAddr("127.0.0.1")
	s, err := memcached.Start(t.Context(), []netip.Addr{addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	tcp := dial(t, s.Port)
	if _, err := io.WriteString(tcp, "set a 7 0 0\r\n\r\nset b 0 100 5\r\n\r\n\n\r\n\r\nset c 0 0 1\r\nx\r\nmd c I\r\n"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(tcp)
	for range 4 {
		_, _ = lines.ReadString('\n')
	}
	p, err := dialProbe(netip.AddrPortFrom(addr, s.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if addrs, err := p.addresses(s.Port); err != nil || fmt.Sprint(addrs) != "[127.0.0.1]" {
		t.Errorf("listens at %v, %v", addrs, err)
	}
	if _, err := p.addresses(s.Port + 1); err == nil || !strings.Contains(err.Error(), "-U") {
		t.Errorf("another UDP port: %v", err)
	}
	var got []string
	if err := p.get([][]byte{[]byte("a"), []byte("nothing"), []byte("b"), []byte("c")}, func(i int, a *answer) {
		got = append(got, fmt.Sprintf("%s %v %q %d %v %v", a.key, a.found, a.data, a.flags, a.left < 0, a.won))
	}); err != nil {
		t.Fatal(err)
	}
	want := `[a true "" 7 true false nothing false "" 0 false false b true "\r\n\n\r\n" 0 false false c true "x" 0 true true]`
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestProbeRefuses has something else than a memcached that can be asked.
func TestProbeRefuses(t *testing.T) {
	for answer, want := range map[string]string{
		"":                                      "EOF",
		"CLIENT_ERROR unauthenticated\r\n":      "is no answer to mg",
		"ERROR\r\n":                             "without TLS and passwords",
		"VA 5 f0 c1 t-1\r\nabc\r\nxxx":          "no line ends",
		"VA x f0 c1 t-1\r\n":                    "names no size",
		"VA -1 f0 c1 t-1\r\n":                   "names no size",
		"VA 99999999999999999999 f0 c1 t-1\r\n": "names no size",
		"VA 1 f0 c1\r\nx\r\n":                   "lacks flags",
		"VA 1 fx c1 t-1\r\nx\r\n":               `flag "fx"`,
		"VA 1 f4294967296 c1 t-1\r\nx\r\n":      "flag",
		"EN\r\nSTAT oldest x\r\nEND\r\nEND\r\n": "does not say when it flushes",
		"EN\r\nERROR\r\n":                       "to stats",
		"EN\r\nSTAT oldest 0\r\nEND\r\nSTAT uptime 1\r\nEND\r\nSTAT udpport PORT\r\nSTAT inter 127.0.0.1:PORT,127.0.0.1:1\r\nEND\r\n": "listens at port 1, too",
	} {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 100))
			_, port, _ := net.SplitHostPort(l.Addr().String())
			_, _ = io.WriteString(c, strings.ReplaceAll(answer, "PORT", port))
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
		addr := l.Addr().(*net.TCPAddr).AddrPort()
		p, err := dialProbe(addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.addresses(addr.Port()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", answer, err, want)
		}
		_, _ = p.close(), l.Close()
	}
}
