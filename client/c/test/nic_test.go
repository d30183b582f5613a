package test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/patient"
)

const (
	webServer = iota + 1
	kvClient
	imageTransformer
)

// nicWithLambdas brings a NIC up with the bundled lambdas, and a memcached that has one value.
func nicWithLambdas(t *testing.T) *nic.NIC {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	cfg := nic.Config{Instance: fmt.Sprintf("c-%d", os.Getpid()), RunDir: t.TempDir(), UnknownError: true}
	n, err := nic.Up(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), nic.Down(context.Background(), cfg)); err != nil {
			t.Error(err)
		}
	})
	m, err := memcached.Start(t.Context(), []netip.Addr{n.HostAddr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop() })
	if err := m.Client.Set(&memcache.Item{Key: "key", Value: []byte("set by an ordinary client")}); err != nil {
		t.Fatal(err)
	}
	services := map[string]netip.AddrPort{"memcached": netip.AddrPortFrom(n.HostAddr(), m.Port)}
	lambdas := patient.Lambdas(t, "../../../lambdas")
	for i, name := range []string{"web_server", "kv_client", "image_transformer"} {
		a, err := compiler.Build(t.Context(), filepath.Join(lambdas, name), compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Deploy(t.Context(), stand.Deployment(a, uint32(i+1), services)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// The bundled lambdas answer on a NIC, at once and over a bad network.
func TestNIC(t *testing.T) {
	n := nicWithLambdas(t)
	pixels, grey := measure.Image(256, 256)
	calls := []struct {
		request
		status int
		want   string
	}{
		{request{workload: webServer, body: []byte("/hello")}, 0, "Hello from the NIC.\n"},
		{request{workload: webServer, body: []byte("/nothing")}, 1, ""},
		{request{workload: webServer, body: []byte("/long"), room: 300}, 0, ""}, // pulled
		{request{workload: kvClient, body: []byte("key")}, 0, "key=set by an ordinary client"},
		{request{workload: kvClient, method: 1, body: []byte("\x03newvalue")}, 0, "STORED"},
		{request{workload: kvClient, body: []byte("no such key")}, 2, ""},
		{request{workload: imageTransformer, body: pixels}, 0, string(grey)},
	}
	var requests []request
	for _, c := range calls {
		requests = append(requests, c.request)
	}
	ask := func(network, address string, some []request) {
		t.Helper()
		for _, way := range ways {
			replies, st := drive(t, address, way, append(some[:len(some):len(some)], request{workload: 99}), "timeout=60000")
			for i, r := range replies[:len(some)] {
				c := calls[i]
				if r.result != 0 || r.status != c.status || r.revision != 1 || c.want != "" && string(r.body) != c.want {
					t.Errorf("%s network, %s: request %d: result %d, status %d, %d bytes", network, way, i, r.result, r.status, len(r.body))
				}
			}
			if last := replies[len(some)]; last.result != 1 {
				t.Errorf("an unknown workload: %+v", last)
			}
			if long := replies[2].body; len(long) != 30*66 {
				t.Errorf("%s network, %s: the long page has %d bytes: %+v", network, way, len(long), st)
			}
		}
	}
	ask("good", n.Addr().String(), requests)
	faults := impair.Faults{Seed: 8, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: time.Millisecond}
	r, err := impair.Start(impair.Config{Listen: "127.0.0.1:0", Server: n.Addr(), Up: faults, Down: faults})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ask("bad", r.Addr().String(), requests)
	if c := r.Counts(impair.ToServer); c.Dropped == 0 || c.Reordered == 0 {
		t.Errorf("the network was good: %+v", c)
	}
}
