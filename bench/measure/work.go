package measure

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/internal/memcached"
)

// ErrWrong says that a lambda's answer differs from the independent computation.
var ErrWrong = errors.New("wrong answer")

// Work is a bundled lambda and its requests.
type Work struct {
	Lambda   string
	Calls    []Call
	Open     *gen.Load // nil where single packets make no sense
	Ceiling  float64   // requests per second that are never exceeded; 0 for none
	Duration time.Duration
	// Services starts the services that the lambda calls and returns their addresses for the NIC and for a process; stop ends them.
	Services func(ctx context.Context, s *stand.Stand) (fast, plain map[string]netip.AddrPort, stop func() error, err error)
}

// Workload is the ID of whatever is measured.
const Workload = 1

// WebServer asks for the pages. The texts stand here as well, typed anew: they are the check.
func WebServer() Work {
	w := Work{Lambda: "web_server", Duration: 400 * time.Millisecond, Calls: []Call{
		{Body: []byte("/hello"), Want: []byte("Hello from the NIC.\n")},
		{Body: []byte("/about"), Want: []byte("One C function, matched by a workload ID, run to completion, answered in place.\n")},
	}}
	w.Open = openLoad(w.Calls, 96)
	return w
}

// openLoad offers the calls as single packets, padded to room.
func openLoad(calls []Call, room int) *gen.Load {
	l := &gen.Load{Room: room}
	for _, c := range calls {
		l.Requests = append(l.Requests, gen.Request{Header: api.Header{Workload: Workload, Method: c.Method}, Payload: c.Body})
	}
	return l
}

// KVClient gets values that were set in a real memcached.
func KVClient() Work {
	const keys = 64
	w := Work{Lambda: "kv_client", Duration: 400 * time.Millisecond}
	values := map[string][]byte{}
	for i := range keys {
		key, value := fmt.Sprintf("bench-%03d", i), fmt.Appendf(nil, "value of %d, %032d", i, i*i)
		values[key] = value
		w.Calls = append(w.Calls, Call{Body: []byte(key), Want: append([]byte(key+"="), value...)})
	}
	w.Open = openLoad(w.Calls, 128)
	// A call that memcached loses occupies the NIC until it times out, so send small bursts, and no flood.
	w.Open.Batch, w.Ceiling = 16, 250_000
	w.Services = func(ctx context.Context, s *stand.Stand) (fast, plain map[string]netip.AddrPort, stop func() error, err error) {
		m, err := memcached.Start(ctx, []netip.Addr{s.NIC.HostAddr(), s.Plain.Host.Addr}, "-t", "2")
		if err != nil {
			return nil, nil, nil, err
		}
		// memcached at its best, for both sides: by default it holds 52 packets that take a page each.
		if err := m.ReceiveBuffer(4 << 20); err != nil {
			return nil, nil, nil, errors.Join(err, m.Stop())
		}
		for key, value := range values {
			if err := m.Client.Set(&memcache.Item{Key: key, Value: value}); err != nil {
				return nil, nil, nil, errors.Join(fmt.Errorf("fill memcached: %w", err), m.Stop())
			}
		}
		at := func(host netip.Addr) map[string]netip.AddrPort {
			return map[string]netip.AddrPort{"memcached": netip.AddrPortFrom(host, m.Port)}
		}
		return at(s.NIC.HostAddr()), at(s.Plain.Host.Addr), m.Stop, nil
	}
	return w
}

// ImageTransformer turns an image of random pixels grey.
func ImageTransformer() Work {
	pixels, grey := Image(256, 256)
	return Work{
		Lambda: "image_transformer", Duration: 800 * time.Millisecond, Calls: []Call{{Body: pixels, Want: grey}},
	}
}

// Image makes random pixels and their grey values. The check is Go's own image types and the formula of ITU-R BT.601 in
// integers, one pixel at a time.
func Image(width, height int) (rgba, grey []byte) {
	r := rand.New(rand.NewPCG(3, 1))
	in := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range in.Pix {
		in.Pix[i] = byte(r.Uint32())
	}
	out := image.NewGray(in.Bounds())
	for y := range height {
		for x := range width {
			p := in.NRGBAAt(x, y)
			out.SetGray(x, y, color.Gray{Y: uint8((77*uint(p.R) + 150*uint(p.G) + 29*uint(p.B) + 128) / 256)})
		}
	}
	return in.Pix, out.Pix
}
