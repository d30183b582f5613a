package gateway

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lambdanic/lambdanic/api"
)

// serve runs the gateway's own server.
func serve(t *testing.T, g *Gateway) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = g.Server(g.Public())
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestServerHeaders(t *testing.T) {
	server := serve(t, newGateway(t))
	for body, typ := range map[string]string{
		"hello": "text/plain; charset=utf-8", "<!doctype html><p>hello": "text/html; charset=utf-8", "\x89PNG\r\n\x1a\n": "image/png",
	} {
		r, err := http.Post(server.URL+"/function/echo", "", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(t, r); got != body || r.ContentLength != int64(len(body)) || len(r.TransferEncoding) != 0 {
			t.Errorf("%q: %q, of length %d, as %v", body, got, r.ContentLength, r.TransferEncoding)
		}
		_ = r.Body.Close()
		for name, want := range map[string]string{
			"Content-Type": typ, api.HeaderServedBy: "n1/nic", api.HeaderRevision: "7",
			"Content-Security-Policy": "sandbox", "X-Content-Type-Options": "nosniff",
		} {
			if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%q: %s is %q, want %q once", body, name, got, want)
			}
		}
		for _, name := range []string{api.HeaderCallID, api.HeaderStartTime, api.HeaderDuration} {
			if got := r.Header.Values(name); len(got) != 1 || got[0] == "" {
				t.Errorf("%q: %s is %q, want one value", body, name, got)
			}
		}
		id, err := uuid.Parse(r.Header.Get(api.HeaderCallID))
		if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
			t.Errorf("call ID %v (%v), of version %v and variant %v", id, err, id.Version(), id.Variant())
		}
	}
}

// A caller who asks on and on and takes no answer loses the connection, though each answer is short.
func TestServerEndsStalledCaller(t *testing.T) {
	g := newGateway(t)
	g.stall = 100 * time.Millisecond
	server := httptest.NewUnstartedServer(nil)
	server.Config = g.Server(g.Public())
	closed := make(chan struct{}, 1)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer func() { _ = conn.Close() }() // before the server waits for it
	go func() {
		many := []byte(strings.Repeat("GET /function/broken HTTP/1.1\r\nHost: x\r\n\r\n", 1000))
		for err := error(nil); err == nil; {
			_, err = conn.Write(many)
		}
	}()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the connection is still there")
	}
}
