package ikernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A keyedSite has a server's socket in a namespace of its own, and files of keys.
type keyedSite struct {
	*node
	netns string
	conn  *net.UDPConn // of the server
	dir   string
}

func newKeyedSite(t *testing.T) *keyedSite {
	t.Helper()
	s := &keyedSite{netns: fmt.Sprintf("lnkey%d", os.Getpid()), dir: t.TempDir()}
	isolated.Namespace(t, s.netns)
	s.node = newNode(t)
	if err := veth.InNamed(s.netns, func() (err error) {
		s.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	for _, id := range []string{"a", "b", "c"} {
		s.write(id)
	}
	return s
}

func secretOf(id string) []byte { return bytes.Repeat([]byte("secret "+id+" "), 8) }

func (s *keyedSite) write(id string) {
	s.t.Helper()
	if err := os.WriteFile(s.key(id).File, secretOf(id), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *keyedSite) key(id string) api.IkernelKey {
	return api.IkernelKey{ID: id, File: filepath.Join(s.dir, id)}
}

func (s *keyedSite) request(ids ...string) api.IkernelRequest {
	r := api.IkernelRequest{Ikernel: "coap-jwt", Name: "guard", Netns: s.netns, Port: uint16(s.conn.LocalAddr().(*net.UDPAddr).Port)}
	for _, id := range ids {
		r.Keys = append(r.Keys, s.key(id))
	}
	return r
}

// passes checks which keys' tokens pass.
func (s *keyedSite) passes(want ...string) {
	s.t.Helper()
	var got []string
	for _, id := range []string{"a", "b", "c"} {
		before := s.counters()
		s.send(id)
		var after map[string]uint64
		s.await("counting", func([]api.Ikernel) bool {
			after = s.counters()
			return after["passed"]+after["dropped_signature"] > before["passed"]+before["dropped_signature"]
		})
		if after["passed"] > before["passed"] {
			got = append(got, id)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Fatalf("tokens of %q pass, want %q", got, want)
	}
}

func (s *keyedSite) counters() map[string]uint64 {
	s.t.Helper()
	list, err := s.List()
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	all := map[string]uint64{}
	for _, c := range list[0].Counters {
		all[c.Name] = c.Value
	}
	return all
}

// send sends a request with a token of this key.
func (s *keyedSite) send(id string) {
	s.t.Helper()
	token, err1 := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{}).SignedString(secretOf(id))
	payload, err2 := cbor.Marshal(map[string]string{"token": token})
	err3 := veth.InNamed(s.netns, func() error {
		conn, err := net.Dial("udp", s.conn.LocalAddr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write(append([]byte{0x40, 2, 0, 1, 0xff}, payload...))
		return err
	})
	if err := errors.Join(err1, err2, err3); err != nil {
		s.t.Fatal(err)
	}
}

// change changes the keys.
func (s *keyedSite) change(r api.IkernelKeysRequest) error {
	_, err := s.ChangeKeys(s.t.Context(), "guard", r)
	return err
}

func (s *keyedSite) changes(r api.IkernelKeysRequest) {
	s.t.Helper()
	if err := s.change(r); err != nil {
		s.t.Fatal(err)
	}
}

// TestChangeKeys changes the keys of a guard, which another daemon then attaches with the same.
func TestChangeKeys(t *testing.T) {
	s := newKeyedSite(t)
	if _, err := s.Attach(t.Context(), s.request("a")); err != nil {
		t.Fatal(err)
	}
	s.passes("a")
	s.changes(api.IkernelKeysRequest{Add: []api.IkernelKey{s.key("b")}})
	s.passes("a", "b")
	s.changes(api.IkernelKeysRequest{Remove: []string{"a"}})
	s.passes("b")
	s.changes(api.IkernelKeysRequest{Remove: []string{"b"}, Add: []api.IkernelKey{s.key("a"), {File: s.key("c").File}}})
	s.passes("a", "c")
	s.changes(api.IkernelKeysRequest{Remove: []string{s.key("c").File}, Add: []api.IkernelKey{s.key("b")}})
	s.passes("a", "b")

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.open()
	s.tend()
	s.await("attached", attached)
	s.passes("a", "b")
	if err := os.WriteFile(s.key("a").File, secretOf("c"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.passes("a", "b")
	s.changes(api.IkernelKeysRequest{Add: []api.IkernelKey{s.key("a")}}) // reads it anew
	s.passes("b", "c")
}

// TestRefusedKeys has a change fail, and change nothing.
func TestRefusedKeys(t *testing.T) {
	s := newKeyedSite(t)
	if _, err := s.Attach(t.Context(), s.request("a", "b")); err != nil {
		t.Fatal(err)
	}
	nine := api.IkernelKeysRequest{}
	for i := range 7 {
		nine.Add = append(nine.Add, api.IkernelKey{ID: fmt.Sprint(i), File: s.key("c").File})
	}
	for want, r := range map[string]api.IkernelKeysRequest{
		"no such file":               {Remove: []string{"a"}, Add: []api.IkernelKey{s.key("none")}},
		`has no key "c"`:             {Remove: []string{"a", "c"}},
		"would have no key left":     {Remove: []string{"a", "b"}},
		`a key "a" of another file`:  {Add: []api.IkernelKey{{ID: "a", File: s.key("c").File}}},
		`"a b" is not the ID`:        {Add: []api.IkernelKey{{ID: "a b", File: "/a"}}},
		`"" is not where`:            {Add: []api.IkernelKey{{ID: "c"}}},
		"takes 1 to 8 keys, not 9":   nine,
		`"c" is not where a key's f`: {Add: []api.IkernelKey{{File: "c"}}},
	} {
		if err := s.change(r); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	s.passes("a", "b")
	if _, err := s.ChangeKeys(t.Context(), "none", api.IkernelKeysRequest{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want %v", err, ErrNotFound)
	}
	records, err := s.store.Ikernels(t.Context(), "here")
	if err != nil || len(records) != 1 || len(records[0].Keys) != 2 {
		t.Errorf("%+v, %v is kept", records, err)
	}
}

// TestKeysComeBack has a change fail that cannot be recorded, after another key was written into a file.
func TestKeysComeBack(t *testing.T) {
	s := newKeyedSite(t)
	if _, err := s.Attach(t.Context(), s.request("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.key("a").File, secretOf("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ChangeKeys(ended, "guard", api.IkernelKeysRequest{Add: []api.IkernelKey{s.key("c")}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	s.passes("a")
}

// TestLostKey starts a daemon when the file of a key is gone: the guard waits, and is attached once the key is replaced.
func TestLostKey(t *testing.T) {
	s := newKeyedSite(t)
	if _, err := s.Attach(t.Context(), s.request("a")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Remove(s.key("a").File)); err != nil {
		t.Fatal(err)
	}
	s.open()
	s.tend()
	s.await("waiting for the key", func(list []api.Ikernel) bool {
		return len(list) == 1 && list[0].State == api.IkernelWaiting && strings.Contains(list[0].Reason, "no such file")
	})
	s.changes(api.IkernelKeysRequest{Remove: []string{"a"}, Add: []api.IkernelKey{s.key("b")}})
	s.await("attached", attached)
	s.passes("b")
}

// TestSecrets looks for keys in all that the daemon keeps.
func TestSecrets(t *testing.T) {
	s := newKeyedSite(t)
	i, err := s.Attach(t.Context(), s.request("a"))
	if err != nil {
		t.Fatal(err)
	}
	s.changes(api.IkernelKeysRequest{Add: []api.IkernelKey{s.key("b")}})
	if text := fmt.Sprintf("%+v", i); strings.Contains(text, "secret") || !strings.Contains(text, s.key("a").File) {
		t.Errorf("it is described by %s", text)
	}
	read := 0
	err = filepath.WalkDir(s.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("secret a")) || bytes.Contains(content, []byte("secret b")) {
			t.Errorf("%s has a key", path)
		}
		read += len(content)
		return err
	})
	if err != nil || read == 0 {
		t.Errorf("%d bytes are kept, %v", read, err)
	}
}
