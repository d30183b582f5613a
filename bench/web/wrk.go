// Package web measures HTTP servers from outside, by wrk (https://github.com/wg/wrk), and runs nginx for comparison.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// ErrLoad says that wrk got other answers than 2xx and 3xx, or no answer.
var ErrLoad = errors.New("the load was not answered")

// Figures of one run: what arrived at wrk.
type Figures struct {
	P50  time.Duration // as wrk takes it, from writing a request to having read its answer
	Rate float64       // answers per second
}

var (
	median = regexp.MustCompile(`(?m)^\s+50%\s+(\S+)$`)
	rate   = regexp.MustCompile(`(?m)^Requests/sec:\s+(\S+)$`)
	failed = regexp.MustCompile(`(?m)^\s*(Socket errors: .*|Non-2xx or 3xx responses: .*)$`)
)

// Load asks url over this many connections, each with one request in flight, from one thread.
func Load(ctx context.Context, url string, connections int, d time.Duration) (Figures, error) {
	seconds := strconv.Itoa(max(1, int(d.Seconds()))) + "s"
	out, err := exec.CommandContext(ctx, "wrk", "--threads=1", "--connections="+strconv.Itoa(connections), "--duration="+seconds, "--latency", url).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return Figures{}, fmt.Errorf("load %s: %w: install package wrk", url, err)
	} else if err != nil {
		return Figures{}, fmt.Errorf("load %s: %w: %s", url, err, out)
	}
	return figures(url, out)
}

func figures(url string, out []byte) (f Figures, err error) {
	if m := failed.FindSubmatch(out); m != nil {
		return f, fmt.Errorf("%w: %s: %s", ErrLoad, url, m[1])
	}
	p, r := median.FindSubmatch(out), rate.FindSubmatch(out)
	if p == nil || r == nil {
		return f, fmt.Errorf("%w: %s: wrk printed %q", ErrLoad, url, out)
	}
	if f.P50, err = time.ParseDuration(string(p[1])); err != nil {
		return f, fmt.Errorf("read the median that wrk printed: %w", err)
	}
	if f.Rate, err = strconv.ParseFloat(string(r[1]), 64); err != nil {
		return f, fmt.Errorf("read the rate that wrk printed: %w", err)
	}
	if f.Rate == 0 {
		return f, fmt.Errorf("%w: %s: no answers", ErrLoad, url)
	}
	return f, nil
}

// Get is the page at url.
func Get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", url, answer.Status)
	}
	return io.ReadAll(answer.Body)
}
