package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A guarded server is a socket in a network namespace, to which requests with tokens come.
type guarded struct {
	t     *testing.T
	netns string
	conn  *net.UDPConn
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t, netns: fmt.Sprintf("lnguard%d", os.Getpid())}
	isolated.Namespace(t, g.netns)
	if err := veth.InNamed(g.netns, func() (err error) {
		g.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.conn.Close() })
	return g
}

func (g *guarded) port() string { return fmt.Sprint(g.conn.LocalAddr().(*net.UDPAddr).Port) }

// gets has requests by these secrets be sent in this order, and checks which come. The last must be one that does.
func (g *guarded) gets(want []string, sent ...string) {
	g.t.Helper()
	if err := veth.InNamed(g.netns, func() error {
		client, err := net.Dial("udp", g.conn.LocalAddr().String())
		if err != nil {
			return err
		}
		defer client.Close()
		for _, secret := range sent {
			token, err1 := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{}).SignedString([]byte(secret))
			payload, err2 := cbor.Marshal(map[string]string{"token": token, "body": secret})
			_, err3 := client.Write(append([]byte{0x40, 2, 0, 1, 0xff}, payload...))
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		g.t.Fatal(err)
	}
	var got []string
	buffer := make([]byte, 2048)
	for len(got) < len(want) {
		_ = g.conn.SetReadDeadline(time.Now().Add(patience))
		n, err := g.conn.Read(buffer)
		if err != nil {
			g.t.Fatalf("%v, after %q", err, got)
		}
		var request struct{ Body string }
		if err := cbor.Unmarshal(buffer[5:n], &request); err != nil {
			g.t.Fatal(err)
		}
		got = append(got, request.Body)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		g.t.Fatalf("the server got %q, want %q", got, want)
	}
}

// A guard is attached, its keys change, the daemon dies, and the next one attaches it with the same keys. No key is shown or kept.
func TestGuard(t *testing.T) {
	i, g := up(t), newGuarded(t)
	dir := t.TempDir()
	secrets := map[string]string{}
	file := func(id string) string {
		secrets[id] = strings.Repeat("secret of "+id+" ", 4)
		path := filepath.Join(dir, id)
		if err := os.WriteFile(path, []byte(secrets[id]+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	first, second := file("first"), file("second")
	var shown []byte
	run := func(args ...string) { shown = append(shown, i.run(args...)...) }
	g.gets([]string{secrets["second"]}, secrets["second"])
	run("ik", "attach", "coap-jwt", "--port", g.port(), "--netns", g.netns, "--name", "guard", "--key", "2026-11="+first)
	g.gets([]string{secrets["first"]}, secrets["second"], secrets["first"])
	run("ik", "keys", "guard", "--add", second)
	g.gets([]string{secrets["second"], secrets["first"]}, secrets["second"], secrets["first"])
	run("ik", "keys", "guard", "--remove", "2026-11")
	g.gets([]string{secrets["second"]}, secrets["first"], secrets["second"])
	if keys := query[[]api.IkernelKey](i, "ik", "keys", "guard"); len(keys) != 1 || keys[0] != (api.IkernelKey{File: second}) {
		t.Errorf("its keys are %+v", keys)
	}
	if out, err := i.try("ik", "keys", "guard", "--remove", second); err == nil || !strings.Contains(out, "would have no key left") {
		t.Errorf("the last key is removed: %s", out)
	}
	if out, err := i.try("ik", "keys", "guard", "--add", "third="+filepath.Join(dir, "third")); err == nil || !strings.Contains(out, "no such file") {
		t.Errorf("a missing key is added: %s", out)
	}

	i.kill()
	i.start()
	i.awaitAttached()
	g.gets([]string{secrets["second"]}, secrets["first"], secrets["second"])
	run("ik", "keys", "guard")
	run("ik", "list", "--json")
	run("ik", "stats")
	if metrics := i.scrape(); metrics["lambdanic_ikernel_coap_jwt_dropped_signature_total"] == nil {
		t.Error("dropped requests are no metric")
	}
	i.findNowhere(shown, "secret of")
	run("ik", "detach", "guard")
	g.gets([]string{secrets["first"]}, secrets["first"])
}

// findNowhere looks for a text in what was shown, and in all that the instance keeps.
func (i *instance) findNowhere(shown []byte, text string) {
	i.t.Helper()
	if bytes.Contains(shown, []byte(text)) {
		i.t.Errorf("%q is shown: %s", text, shown)
	}
	err := filepath.WalkDir(i.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			i.t.Errorf("%s has %q", path, text)
		}
		return err
	})
	if err != nil {
		i.t.Error(err)
	}
}
