package memcached

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
)

// sees checks that a GET by UDP is answered at once with what a client of another kind has just stored, and also when the NIC answers it: so
// the next change is one of a value in the cache.
func (s *site) sees(udp *client, key, value string, flags uint32) {
	s.t.Helper()
	want := fmt.Sprintf("VALUE %s %d %d\r\n%s\r\nEND\r\n", key, flags, len(value), value)
	if got := udp.ask("get " + key + "\r\n"); got != want {
		s.t.Fatalf("%s is answered with %q, want %q", key, got, want)
	}
	s.hit(udp, "get "+key+"\r\n")
}

// seesNone checks that a GET by UDP finds that a client of another kind has just removed the key.
func (s *site) seesNone(udp *client, key string) {
	s.t.Helper()
	if got := udp.ask("get " + key + "\r\n"); got != "END\r\n" {
		s.t.Fatalf("%s is answered with %q, and is gone", key, got)
	}
}

// understood checks that the observer could follow all connections.
func (s *site) understood() {
	s.t.Helper()
	if stats := s.statistics(); stats.Writes.Losses() > 0 || stats.Writes.Changes == 0 {
		s.t.Errorf("connections were lost, or no writes seen: %+v", stats)
	}
}

// tool runs one of libmemcached's tools.
func (s *site) tool(name string, args ...string) string {
	s.t.Helper()
	out, err := exec.Command(name, append([]string{"--servers=" + s.addr.String()}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// TestLibmemcached changes values by libmemcached's tools.
func TestLibmemcached(t *testing.T) {
	s := newSite(t)
	s.attach()
	file := filepath.Join(t.TempDir(), "file")
	for _, protocol := range []string{"text", "binary"} {
		t.Run(protocol, func(t *testing.T) {
			s.t = t
			udp := s.client()
			var options []string
			if protocol == "binary" {
				options = []string{"--binary"}
			}
			run := func(name string, args ...string) string {
				t.Helper()
				return s.tool(name, append(options, args...)...)
			}
			write := func(value string) {
				if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("first")
			run("memccp", "--flags=7", file)
			s.sees(udp, "file", "first", 7)
			write("second")
			run("memccp", "--replace", file)
			s.sees(udp, "file", "second", 0)
			if got := run("memccat", "file"); got != "second\n" {
				t.Errorf("memccat says %q", got)
			}
			run("memcexist", "file")
			run("memctouch", "--expire=1000", "file")
			s.sees(udp, "file", "second", 0)
			run("memcrm", "file")
			s.seesNone(udp, "file")
			write("third")
			run("memccp", "--add", "--expire=1000", file)
			s.sees(udp, "file", "third", 0)
			run("memcflush")
			s.seesNone(udp, "file")
			s.understood()
		})
	}
}

// TestCapable has libmemcached's test of protocols find nothing that differs, and what it does to a value in the cache be seen.
func TestCapable(t *testing.T) {
	s := newSite(t)
	s.attach()
	tcp, udp := s.dial(), s.client()
	for _, protocol := range []string{"-a", "-b"} {
		s.text(tcp, "set a 0 0 1\r\nx\r\n", "STORED\r\n")
		s.sees(udp, "a", "x", 0)
		out, err := exec.Command("memccapable", "-h", s.addr.Addr().String(), "-p", fmt.Sprint(s.addr.Port()), "-t", "60", protocol).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "All tests passed\n") || strings.Count(string(out), "[pass]") < 20 {
			t.Errorf("memccapable %s: %v\n%s", protocol, err, out)
		}
		s.seesNone(udp, "a") // it flushes
	}
}

// TestGomemcache changes values by a client for Go.
func TestGomemcache(t *testing.T) {
	s := newSite(t)
	s.attach()
	c, udp := memcache.New(s.addr.String()), s.client()
	defer c.Close()
	item := func(value string) *memcache.Item { return &memcache.Item{Key: "go", Value: []byte(value), Flags: 5} }
	expect := func(err, want error) {
		t.Helper()
		if err != want {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	expect(c.Set(item("first")), nil)
	s.sees(udp, "go", "first", 5)
	expect(c.Add(item("refused")), memcache.ErrNotStored)
	expect(c.Replace(item("second")), nil)
	s.sees(udp, "go", "second", 5)
	expect(c.Append(item(" end")), nil)
	s.sees(udp, "go", "second end", 5)
	expect(c.Prepend(item("begin ")), nil)
	s.sees(udp, "go", "begin second end", 5)
	swap, err := c.Get("go")
	expect(err, nil)
	swap.Value = []byte("swapped")
	expect(c.CompareAndSwap(swap), nil)
	s.sees(udp, "go", "swapped", 5)
	expect(c.CompareAndSwap(swap), memcache.ErrCASConflict)
	expect(c.Touch("go", 1000), nil)
	s.sees(udp, "go", "swapped", 5)
	got, err := c.GetMulti([]string{"go", "none"})
	if expect(err, nil); len(got) != 1 || string(got["go"].Value) != "swapped" {
		t.Errorf("got %v", got)
	}
	expect(c.Set(item("99")), nil)
	s.sees(udp, "go", "99", 5)
	_, err = c.Increment("go", 1)
	expect(err, nil)
	s.sees(udp, "go", "100", 5)
	_, err = c.Decrement("go", 50)
	expect(err, nil)
	if got := udp.ask("get go\r\n"); !strings.Contains(got, "\r\n50") { // and perhaps a blank
		t.Errorf("got %q", got)
	}
	expect(c.Delete("go"), nil)
	s.seesNone(udp, "go")
	expect(c.Add(item("again")), nil)
	s.sees(udp, "go", "again", 5)
	expect(c.DeleteAll(), nil)
	s.seesNone(udp, "go")
	s.understood()
}

// follow runs a program that changes values. It says what is stored after each change, and goes on when that was seen.
func (s *site) follow(name string, args ...string) {
	s.t.Helper()
	udp := s.client()
	cmd := exec.Command(name, args...)
	var errors strings.Builder
	cmd.Stderr = &errors
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		s.t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); seen++ {
		var stored struct {
			Key   string
			Value *string
		}
		if err := json.Unmarshal(lines.Bytes(), &stored); err != nil {
			s.t.Fatalf("%q: %v", lines.Bytes(), err)
		}
		if stored.Value == nil {
			s.seesNone(udp, stored.Key)
		} else {
			s.sees(udp, stored.Key, *stored.Value, 0)
		}
		_, _ = io.WriteString(in, "seen\n")
	}
	if err := cmd.Wait(); err != nil || seen < 10 {
		s.t.Errorf("%s: %d changes were seen, %v\n%s", name, seen, err, errors.String())
	}
	s.understood()
}

// TestPymemcache changes values by a client for Python, that of Debian.
func TestPymemcache(t *testing.T) {
	s := newSite(t)
	s.attach()
	s.follow("/usr/bin/python3", "testdata/client.py", s.addr.Addr().String(), fmt.Sprint(s.addr.Port()))
}

// TestMemjs changes values by a client for Node.js.
func TestMemjs(t *testing.T) {
	if out, err := exec.Command("make", "-C", "testdata/node").CombinedOutput(); err != nil {
		t.Fatalf("install memjs: %v\n%s", err, out)
	}
	s := newSite(t)
	s.attach()
	s.follow("node", "testdata/node/client.js", s.addr.String())
}
