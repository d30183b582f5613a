package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ikernel"
)

// fakeIkernels has one ikernel, "cache", and refuses certain ports.
type fakeIkernels struct{}

func (fakeIkernels) List() ([]api.Ikernel, error) {
	return []api.Ikernel{{IkernelRequest: api.IkernelRequest{Ikernel: "fast", Name: "cache", Port: 9}, State: api.IkernelAttached}}, nil
}

func (fakeIkernels) Attach(_ context.Context, r api.IkernelRequest) (*api.Ikernel, error) {
	switch r.Port {
	case 0:
		return nil, fmt.Errorf("%w: no port", ikernel.ErrInvalid)
	case 1:
		return nil, fmt.Errorf("%w: no server", ikernel.ErrRefused)
	case 2:
		return nil, fmt.Errorf("%w: cache", ikernel.ErrExists)
	case 3: // as when a kernel map is full
		return nil, fmt.Errorf("%w: %w", ikernel.ErrRefused, unix.ENOSPC)
	}
	return &api.Ikernel{IkernelRequest: r, State: api.IkernelAttached}, nil
}

func (fakeIkernels) Detach(_ context.Context, name string) error {
	if name != "cache" {
		return fmt.Errorf("%w: %s", ikernel.ErrNotFound, name)
	}
	return nil
}

func (fakeIkernels) ChangeKeys(_ context.Context, name string, r api.IkernelKeysRequest) (*api.Ikernel, error) {
	if name != "cache" {
		return nil, fmt.Errorf("%w: %s", ikernel.ErrNotFound, name)
	}
	if len(r.Add) == 0 {
		return nil, fmt.Errorf("%w: no key", ikernel.ErrInvalid)
	}
	return &api.Ikernel{IkernelRequest: api.IkernelRequest{Name: name, Keys: r.Add}}, nil
}

func TestIkernels(t *testing.T) {
	h := New(Config{Ikernels: fakeIkernels{}}).Private()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/system/ikernels", "", 200, `[{"ikernel":"fast","name":"cache","port":9,"state":"attached","attached":null,"counters":null}]`},
		{"POST", "/system/ikernels", `{"ikernel":"fast","port":9}`, 201, `{"ikernel":"fast","port":9,"state":"attached","attached":null,"counters":null}`},
		{"POST", "/system/ikernels", `{"ikernel":"fast","prot":9}`, 400, `{"error":"invalid request: read the body: json: unknown field \"prot\""}`},
		{"POST", "/system/ikernels", `{"port":70000}`, 400, `{"error":"invalid request: read the body: json: cannot unmarshal number 70000 into Go struct field IkernelRequest.port of type uint16"}`},
		{"POST", "/system/ikernels", `{"port":0}`, 400, `{"error":"invalid request: no port"}`},
		{"POST", "/system/ikernels", `{"port":1}`, 422, `{"error":"cannot attach: no server"}`},
		{"POST", "/system/ikernels", `{"port":2}`, 409, `{"error":"an ikernel of this name is attached: cache"}`},
		{"POST", "/system/ikernels", `{"port":3}`, 422, `{"error":"cannot attach: no space left on device"}`},
		{"POST", "/system/ikernels/cache/keys", `{"remove":["a"]}`, 400, `{"error":"invalid request: no key"}`},
		{
			"POST", "/system/ikernels/cache/keys", `{"add":[{"kid":"a","file":"/a"},{"file":"/b"}]}`, 200,
			`{"ikernel":"","name":"cache","keys":[{"kid":"a","file":"/a"},{"file":"/b"}],"state":"","attached":null,"counters":null}`,
		},
		{"DELETE", "/system/ikernels/cache", "", 204, ""},
		{"DELETE", "/system/ikernels/cash", "", 404, `{"error":"no such ikernel: cash"}`},
	} {
		answer := do(t, h, c.method, c.path, c.body)
		body, err := io.ReadAll(answer.Body)
		want := c.want
		if want != "" {
			want += "\n"
		}
		if err != nil || answer.StatusCode != c.status || string(body) != want {
			t.Errorf("%s %s %s: %d %q, %v, want %d %q", c.method, c.path, c.body, answer.StatusCode, body, err, c.status, want)
		}
	}
}

// TestApplications lists the ikernels of applications behind the others.
func TestApplications(t *testing.T) {
	of := func() ([]api.Ikernel, error) {
		a := &api.IkernelApplication{PID: 7, Command: "server", Sockets: []api.IkernelSocket{{Protocol: "udp", Own: netip.MustParseAddrPort("192.0.2.1:9")}}}
		return []api.Ikernel{{IkernelRequest: api.IkernelRequest{Ikernel: "echo", Name: "echo-1"}, State: api.IkernelAttached, Application: a}}, nil
	}
	h := New(Config{Ikernels: fakeIkernels{}, Applications: of}).Private()
	const want = `{"ikernel":"echo","name":"echo-1","state":"attached","attached":null,"counters":null,` +
		`"application":{"pid":7,"command":"server","sockets":[{"protocol":"udp","own":"192.0.2.1:9"}]}}]`
	r := do(t, h, "GET", "/system/ikernels", "")
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 || !strings.HasSuffix(strings.TrimSpace(string(body)), want) {
		t.Errorf("got %d, %s, %v", r.StatusCode, body, err)
	}
	for name, want := range map[string]string{
		"echo-1": `409 {"error":"the ikernel is an application's: process 7 (server) has echo-1 until it detaches it, or ends"}`,
		"echo-2": `404 {"error":"no such ikernel: echo-2"}`,
	} {
		path := "/system/ikernels/" + name
		for what, r := range map[string]*http.Response{"detach": do(t, h, "DELETE", path, ""), "change keys": do(t, h, "POST", path+"/keys", `{"remove":["a"]}`)} {
			body, err := io.ReadAll(r.Body)
			if got := fmt.Sprint(r.StatusCode, " ", strings.TrimSpace(string(body))); err != nil || got != want {
				t.Errorf("%s of %s: %s, %v, want %s", what, name, got, err, want)
			}
		}
	}
}
