package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/instance"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/memcached"
)

// use brings an instance up, deploys the lambdas on both targets as a user would, invokes each through the gateway on real
// input, and takes everything down again. It says for each lambda whether every answer was what Go computes.
func (o Options) use(ctx context.Context) (correct map[string]bool, err error) {
	err = instance.With(ctx, "demo", func(ctx context.Context, c *daemon.Client, p daemon.Paths) (err error) {
		correct, err = user{Options: o, client: c, paths: p}.try(ctx)
		return err
	})
	return correct, err
}

// user is a user at the command line.
type user struct {
	Options
	client *daemon.Client
	paths  daemon.Paths
}

var targets = []api.Target{api.TargetNIC, api.TargetProcess}

func (u user) try(ctx context.Context) (map[string]bool, error) {
	correct := map[string]bool{}
	for lambda, check := range map[string]func(context.Context, *api.Function) error{
		"web_server": u.tryPages, "image_transformer": u.tryImages, "kv_client": u.tryValues,
	} {
		correct[lambda] = true
		a, err := daemon.Build(ctx, u.paths, filepath.Join(u.Lambdas, lambda))
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", lambda, err)
		}
		for _, target := range targets {
			f, err := u.deploy(ctx, lambda+"-"+string(target), a.Image, target, nil)
			if err != nil {
				return nil, err
			}
			switch err := check(ctx, f); {
			case errors.Is(err, measure.ErrWrong):
				u.log("%s on %s: %v", lambda, target, err)
				correct[lambda] = false
			case err != nil:
				return nil, fmt.Errorf("%s on %s: %w", lambda, target, err)
			default:
				u.log("%s on %s answers correctly", lambda, target)
			}
		}
	}
	return correct, nil
}

// deploy deploys an artifact on one target.
func (u user) deploy(ctx context.Context, name, image string, target api.Target, services map[string]string) (*api.Function, error) {
	annotations := map[string]string{api.AnnotationTargets: string(target)}
	for service, addr := range services {
		annotations[api.AnnotationService+service] = addr
	}
	f, err := u.client.Deploy(ctx, types.FunctionDeployment{Service: name, Image: image, Annotations: &annotations})
	if err != nil {
		return nil, fmt.Errorf("deploy %s on %s: %w", name, target, err)
	}
	return f, nil
}

// invoke calls a function by the gateway and compares.
func (u user) invoke(ctx context.Context, name string, method uint32, body, want []byte) error {
	answer, err := u.client.Invoke(ctx, name, method, bytes.NewReader(body), http.Header{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", name, err)
	}
	if answer.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
		return fmt.Errorf("%w of %s: status %d and %d bytes, want 200 and %d bytes", measure.ErrWrong, name, answer.StatusCode, len(got), len(want))
	}
	return nil
}

func (u user) tryPages(ctx context.Context, f *api.Function) error {
	long := strings.Repeat("All work and no sleep makes a lambda answer in microseconds. 0123\n", 30) // takes two packets
	calls := append(measure.WebServer().Calls, measure.Call{Body: []byte("/long"), Want: []byte(long)})
	for _, c := range calls {
		if err := u.invoke(ctx, f.Name, c.Method, c.Body, c.Want); err != nil {
			return err
		}
	}
	return nil
}

func (u user) tryImages(ctx context.Context, f *api.Function) error {
	for _, size := range [][2]int{{256, 256}, {1920, 1080}} {
		rgba, grey := measure.Image(size[0], size[1])
		if err := u.invoke(ctx, f.Name, 0, rgba, grey); err != nil {
			return fmt.Errorf("%dx%d: %w", size[0], size[1], err)
		}
	}
	return nil
}

// tryValues sets through the lambda and gets by TCP, and the reverse.
func (u user) tryValues(ctx context.Context, f *api.Function) error {
	host, err := localAddr(f.Endpoint)
	if err != nil {
		return err
	}
	m, err := memcached.Start(ctx, []netip.Addr{host})
	if err != nil {
		return err
	}
	defer func() { _ = m.Stop() }()
	if err := m.Client.Set(&memcache.Item{Key: "by-tcp", Value: []byte("one")}); err != nil {
		return fmt.Errorf("set by TCP: %w", err)
	}
	// Its address is known only now that a link to it exists.
	at := netip.AddrPortFrom(host, m.Port).String()
	f, err = u.deploy(ctx, f.Name, f.Image, f.Target, map[string]string{"memcached": at})
	if err != nil {
		return err
	}
	const key, value = "by-lambda", "two"
	set := append([]byte{byte(len(key))}, key+value...)
	if err := u.invoke(ctx, f.Name, 1, set, []byte("STORED")); err != nil {
		return err
	}
	item, err := m.Client.Get(key)
	if err != nil {
		return fmt.Errorf("%w: get what %s set by TCP: %w", measure.ErrWrong, f.Name, err)
	}
	if string(item.Value) != value {
		return fmt.Errorf("%w: %s set %q, by TCP it reads as %q", measure.ErrWrong, f.Name, value, item.Value)
	}
	return u.invoke(ctx, f.Name, 0, []byte("by-tcp"), []byte("by-tcp=one"))
}

// localAddr is this machine's address towards an endpoint.
func localAddr(to netip.AddrPort) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the way to %s: %w", to, err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
