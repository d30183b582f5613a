package nic

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/test/seed"
)

// startMemcached runs a real memcached on the host's end of the link, and gives an ordinary client of it.
func startMemcached(t testing.TB, n *NIC, args ...string) (netip.AddrPort, *memcache.Client) {
	t.Helper()
	m, err := memcached.Start(t.Context(), []netip.Addr{n.HostAddr()}, append([]string{"-t", "1"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop() })
	return netip.AddrPortFrom(n.HostAddr(), m.Port), m.Client
}

// kvMemcached brings up NIC, kv_client and memcached.
func kvMemcached(t testing.TB, args ...string) (*kvConn, *memcache.Client, netip.AddrPort) {
	t.Helper()
	n := newTestNIC(t)
	addr, tcp := startMemcached(t, n, args...)
	deploy(t, n, kvRevision(t, 1, addr, longest))
	return dialNIC(t, n.Addr()), tcp, addr
}

// commands are memcached's counts of the commands that it saw.
func commands(t testing.TB, addr netip.AddrPort) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("stats\r\n")); err != nil {
		t.Fatal(err)
	}
	var counts []string
	lines := bufio.NewScanner(conn)
	for lines.Scan() && lines.Text() != "END" {
		if strings.HasPrefix(lines.Text(), "STAT cmd_") {
			counts = append(counts, lines.Text())
		}
	}
	if len(counts) == 0 {
		t.Fatalf("memcached gives no statistics: %v", lines.Err())
	}
	return strings.Join(counts, ", ")
}

// randomKey has n bytes of what memcached's text protocol lets a key have.
func randomKey(r *rand.Rand, n int) string {
	key := make([]byte, n)
	for i := range key {
		for key[i] <= ' ' || key[i] == 127 {
			key[i] = byte(r.Uint32())
		}
	}
	return string(key)
}

func randomValue(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// throughTCP checks that a value set by the NIC is what TCP gets, and the reverse. Requests have exactly as much room as
// their replies need.
func throughTCP(t *testing.T, c *kvConn, tcp *memcache.Client, key, value, back string) {
	t.Helper()
	h, body := c.call(methodSet, append([]byte{byte(len(key))}, key+value...), len("STORED"))
	if h.Type != api.TypeResponse || api.Status(h.Code) != api.StatusOK || string(body) != "STORED" {
		t.Fatalf("set %d-byte key, %d-byte value: %+v %q", len(key), len(value), h, body)
	}
	item, err := tcp.Get(key)
	if err != nil || string(item.Value) != value {
		t.Fatalf("get %d-byte key by TCP: %v, want %d bytes", len(key), err, len(value))
	}
	if err := tcp.Set(&memcache.Item{Key: key, Value: []byte(back), Flags: uint32(len(key)) << 20}); err != nil {
		t.Fatal(err)
	}
	want := key + "=" + back
	h, body = c.call(methodGet, []byte(key), len(want))
	if h.Type != api.TypeResponse || api.Status(h.Code) != api.StatusOK || string(body) != want {
		t.Fatalf("get %d-byte key, %d-byte value: %+v %q", len(key), len(back), h, body)
	}
}

// A value stored by the NIC is read by TCP, and the reverse: with keys and values of every length, of any bytes.
func TestKVClient(t *testing.T) {
	c, tcp, _ := kvMemcached(t)
	r := seed.Rand(t)
	for n := 1; n <= 250; n++ {
		throughTCP(t, c, tcp, randomKey(r, n), randomValue(r, r.IntN(1025)), randomValue(r, r.IntN(1025)))
	}
	for n := range 1025 {
		throughTCP(t, c, tcp, randomKey(r, 1+r.IntN(250)), randomValue(r, n), randomValue(r, n))
	}
	throughTCP(t, c, tcp, randomKey(r, 250), randomValue(r, 1024), randomValue(r, 1024))
	for _, text := range []string{"\r\n", "\r\nEND\r\n", "\r\nset a 0 0 1\r\n", "END\r\n", "VALUE a 0 1\r\na\r\nEND\r\n", "\x00", "STORED\r\n"} {
		throughTCP(t, c, tcp, "key", text, text)
	}
}

func TestKVMiss(t *testing.T) {
	c, _, _ := kvMemcached(t)
	for _, n := range []int{1, 250} {
		if status, body := c.get(strings.Repeat("k", n)); status != api.StatusNotFound || body != "" {
			t.Errorf("get a key that is not there: status %d %q", status, body)
		}
	}
}

// A reply that the request has no room for says how much it would need, and then fits.
func TestKVRoom(t *testing.T) {
	c, _, _ := kvMemcached(t)
	if status, _ := c.set("key", strings.Repeat("v", 900)); status != api.StatusOK {
		t.Fatalf("set: status %d", status)
	}
	for _, room := range []int{3, 4, 903} {
		h, _ := c.call(methodGet, []byte("key"), room)
		if h.Type != api.TypeError || api.Code(h.Code) != api.CodeTooLarge || h.MessageLen != 904 {
			t.Errorf("room for %d: %+v", room, h)
		}
	}
	if h, body := c.call(methodGet, []byte("key"), 904); h.Type != api.TypeResponse || len(body) != 904 {
		t.Errorf("room for all: %+v %d bytes", h, len(body))
	}
}

// No request makes memcached do anything but a single get or set of one key.
func TestKVRefuses(t *testing.T) {
	c, tcp, addr := kvMemcached(t)
	if err := tcp.Set(&memcache.Item{Key: "sentinel", Value: []byte("there")}); err != nil {
		t.Fatal(err)
	}
	keyed := func(n byte, rest string) string { return string([]byte{n}) + rest }
	bad := map[string]struct {
		method uint32
		body   string
	}{
		"get of nothing":          {methodGet, ""},
		"get of a long key":       {methodGet, strings.Repeat("k", 251)},
		"get of a longer key":     {methodGet, strings.Repeat("k", 1400)},
		"set of nothing":          {methodSet, ""},
		"set without a key":       {methodSet, keyed(0, "value")},
		"set of a cut key":        {methodSet, keyed(6, "short")},
		"set of a long key":       {methodSet, keyed(251, strings.Repeat("k", 300))},
		"set of a long value":     {methodSet, keyed(1, "k"+strings.Repeat("v", 1025))},
		"a method that is not":    {2, "key"},
		"another that is not":     {1<<32 - 1, "key"},
		"get that flushes":        {methodGet, "a\r\nflush_all\r\n"},
		"get that flushes after":  {methodGet, "a\nflush_all"},
		"set that flushes":        {methodSet, keyed(16, "a\r\nflush_all\r\nb 0value")},
		"set that sets two":       {methodSet, keyed(3, "a bvalue")},
		"get of two":              {methodGet, "sentinel sentinel"},
		"set of options":          {methodSet, keyed(17, "a 0 0 1 noreply\r\nx")},
		"a key that ends in a CR": {methodGet, "sentinel\r"},
	}
	for _, b := range []byte{0, 1, '\t', '\n', '\v', '\f', '\r', 27, 31, ' ', 127} {
		for _, key := range []string{string([]byte{b}), string([]byte{b, 'k'}), string([]byte{'k', b}), string([]byte{'k', b, 'k'})} {
			bad[fmt.Sprintf("get of %q", key)] = struct {
				method uint32
				body   string
			}{methodGet, key}
			bad[fmt.Sprintf("set of %q", key)] = struct {
				method uint32
				body   string
			}{methodSet, keyed(byte(len(key)), key+"value")}
		}
	}
	before := commands(t, addr)
	for name, b := range bad {
		if status, body := c.response(b.method, []byte(b.body)); status != api.StatusBadRequest || body != "" {
			t.Errorf("%s: status %d %q", name, status, body)
		}
	}
	if after := commands(t, addr); after != before {
		t.Errorf("memcached saw commands: before %s, after %s", before, after)
	}
	if item, err := tcp.Get("sentinel"); err != nil || string(item.Value) != "there" {
		t.Errorf("sentinel: %v, %v", item, err)
	}
}

// memcached's own errors reach the client in its own words.
func TestKVMemcachedErrors(t *testing.T) {
	t.Run("too large", func(t *testing.T) {
		c, _, _ := kvMemcached(t, "-I", "1k", "-o", "slab_chunk_max=512")
		for _, n := range []int{1024, 1000} {
			status, body := c.set("key", strings.Repeat("v", n))
			if status != api.StatusServiceError || body != "SERVER_ERROR object too large for cache" {
				t.Errorf("set %d bytes: status %d %q", n, status, body)
			}
		}
		if status, body := c.set("key", "small"); status != api.StatusOK {
			t.Errorf("set a small value after that: status %d %q", status, body)
		}
	})
	t.Run("out of memory", func(t *testing.T) {
		c, _, _ := kvMemcached(t, "-M", "-m", "2")
		value := strings.Repeat("v", 1024)
		for i := range 100_000 {
			status, body := c.set(fmt.Sprint("key", i), value)
			if status == api.StatusOK {
				continue
			}
			if status != api.StatusServiceError || body != "SERVER_ERROR out of memory storing object" {
				t.Errorf("set when memory is full: status %d %q", status, body)
			}
			if status, body := c.get("key0"); status != api.StatusOK || body != "key0="+value {
				t.Errorf("get after that: status %d, %d bytes", status, len(body))
			}
			return
		}
		t.Error("memcached's memory did not fill up")
	})
}
