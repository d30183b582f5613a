package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"
)

// What wrk 4.1.0 prints (Debian 12).
const printed = `Running 1s test @ http://127.0.0.1:8080/page
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   101.40us  160.20us   5.18ms   96.75%
    Req/Sec    29.57k     2.61k   33.20k    72.73%
  Latency Distribution
     50%   75.00us
     75%   96.00us
     90%  141.00us
     99%  797.00us
  32362 requests in 1.10s, 4.51MB read
Requests/sec:  29424.66
Transfer/sec:      4.10MB
`

func TestFigures(t *testing.T) {
	f, err := figures("url", []byte(printed))
	if want := (Figures{75 * time.Microsecond, 29424.66}); err != nil || f != want {
		t.Errorf("got %+v, %v, want %+v", f, err, want)
	}
	for name, out := range map[string]string{
		"other statuses": printed + "  Non-2xx or 3xx responses: 5\n",
		"socket errors":  "  Socket errors: connect 0, read 3, write 0, timeout 0\n" + printed,
		"nothing":        "Requests/sec:      0.00\n     50%    0.00us\n",
		"something else": "hello",
	} {
		if _, err := figures("url", []byte(out)); !errors.Is(err, ErrLoad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Real servers are loaded by a real wrk: nginx, where it is installed, and one that refuses.
func TestLoad(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := Load(t.Context(), server.URL, 1, time.Second); !errors.Is(err, ErrLoad) {
		t.Errorf("a server that refuses: %v", err)
	}
	n, err := StartNginx(t.Context(), []byte("page\n"))
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	f, err := Load(t.Context(), n.URL, 2, time.Second)
	if err != nil || f.P50 <= 0 || f.Rate <= 0 {
		t.Errorf("got %+v, %v", f, err)
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
}
