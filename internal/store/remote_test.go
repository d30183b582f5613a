package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/etcd"
)

func remote(s *etcd.Server, node string) Remote {
	return Remote{Endpoints: []string{s.URL}, CA: s.CA, Certificate: s.Certificate, Key: s.Key, Instance: "web", Node: node}
}

func connect(t *testing.T, r Remote) *Store {
	t.Helper()
	s, err := Connect(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Instances share an etcd without seeing each other, and each one's data is there for its next daemon, until Forget.
func TestInstancesShareAnEtcd(t *testing.T) {
	t.Parallel()
	server, ctx := etcd.StartTLS(t), t.Context()
	one, other := remote(server, "a"), remote(server, "b")
	other.Instance = "web2" // has the other's name as a prefix
	for range 2 {
		if _, err := deploy(ctx, connect(t, one), "f"); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := connect(t, other).List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("another instance has %v (%v)", list, err)
	}
	if list, err := connect(t, one).List(ctx, ""); err != nil || len(list) != 1 || list[0].Revision != 2 {
		t.Errorf("the instance has %+v (%v), want revision 2", list, err)
	}
	if _, err := deploy(ctx, connect(t, other), "g"); err != nil {
		t.Fatal(err)
	}
	if err := Forget(ctx, one); err != nil {
		t.Fatal(err)
	}
	if list, err := connect(t, one).List(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("after Forget, the instance has %v (%v)", list, err)
	}
	if list, err := connect(t, other).List(ctx, ""); err != nil || len(list) != 1 {
		t.Errorf("after another's Forget, an instance has %v (%v)", list, err)
	}
}

// An instance has one daemon. Another node's has to wait until that one has gone, and then gets the instance at once.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	server := etcd.Start(t)
	first, err := Connect(t.Context(), remote(server, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var owned *OwnedError
	if _, err := Connect(t.Context(), remote(server, "b")); !errors.As(err, &owned) || owned.Owner.Node != "a" || owned.Owner.PID != os.Getpid() {
		t.Fatalf("another node's daemon gets %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	connect(t, remote(server, "b"))
}

// A daemon that lost the instance to another writes nothing any more, and learns which daemon had it, even after that has gone.
func TestLostInstance(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{"to one that stays": true, "to one that went": false} {
		t.Run(name, func(t *testing.T) {
			server, ctx := etcd.Start(t), t.Context()
			first := connect(t, remote(server, "a"))
			lease := first.owner.lease()
			if _, err := first.client.Delete(ctx, ownerKey); err != nil { // as the end of the lease does
				t.Fatal(err)
			}
			if _, err := first.Propose(ctx, function("f")); !errors.Is(err, ErrNotOwner) {
				t.Errorf("without the instance, a write gives %v", err)
			}
			second := connect(t, remote(server, "b"))
			if _, err := first.Propose(ctx, function("f")); !errors.Is(err, ErrNotOwner) {
				t.Errorf("after another took the instance, a write gives %v", err)
			}
			if !stays {
				if err := second.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := first.client.Revoke(ctx, lease); err != nil {
				t.Fatal(err)
			}
			<-first.Failed()
			var owned *OwnedError
			if err := first.Err(); !errors.As(err, &owned) || owned.Owner.Node != "b" {
				t.Errorf("it failed with %v", err)
			}
		})
	}
}

// While etcd is away, reads and writes say so; when it is back, both work, also where the lease has ended meanwhile.
func TestEtcdGoesAndComes(t *testing.T) {
	t.Parallel()
	server, ctx := etcd.Start(t), t.Context()
	s := connect(t, remote(server, "a"))
	if _, err := deploy(ctx, s, "f"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := s.List(ctx, ""); !errors.Is(err, ErrAway) {
		t.Errorf("a read gives %v", err)
	}
	server.Again(t)
	if _, err := s.client.Revoke(ctx, s.owner.lease()); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := deploy(ctx, s, "f")
		if err == nil {
			break
		}
		if !errors.Is(err, ErrNotOwner) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrAway) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if f, err := s.Get(ctx, "default", "f"); err != nil || f.Revision < 2 {
		t.Errorf("%+v (%v)", f, err)
	}
}

// Errors of address or certificates name the cause and what to check.
func TestConnectExplains(t *testing.T) {
	t.Parallel()
	secure, plain := etcd.StartTLS(t), etcd.Start(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Remote)) Remote {
		r := remote(secure, "a")
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		remote Remote
		want   string
	}{
		"nobody there":          {Remote{Endpoints: []string{"http://127.0.0.1:1"}}, "connection refused: see that it runs there, and to --etcd"},
		"no URL":                {Remote{Endpoints: []string{"localhost:2379"}}, `"localhost:2379" is not where an etcd listens: write http://HOST:PORT`},
		"no port":               {Remote{Endpoints: []string{"http://localhost"}}, "write http://HOST:PORT"},
		"plain to TLS":          {with(func(r *Remote) { *r = Remote{Endpoints: []string{strings.Replace(secure.URL, "https", "http", 1)}} }), "connect to etcd"},
		"TLS to plain":          {Remote{Endpoints: []string{strings.Replace(plain.URL, "http", "https", 1)}}, "connect to etcd"},
		"unknown CA":            {with(func(r *Remote) { r.CA = etcd.OtherCA(t) }), "unknown authority"},
		"the system's CAs":      {with(func(r *Remote) { r.CA = "" }), "unknown authority"},
		"no certificate":        {with(func(r *Remote) { r.Certificate, r.Key = "", "" }), "certificate"},
		"certificate alone":     {with(func(r *Remote) { r.Key = "" }), "a certificate and its key go together"},
		"missing file":          {with(func(r *Remote) { r.CA = "/nowhere" }), "/nowhere"},
		"no certificate's file": {with(func(r *Remote) { r.Certificate = file }), "read the certificates"},
		"certificates for http": {with(func(r *Remote) { r.Endpoints = []string{plain.URL} }), "uses no certificates"},
	} {
		s, err := Connect(t.Context(), c.remote)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
