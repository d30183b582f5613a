package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/web"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/gateway"
)

const (
	sourceGatewayP50  = "wrk, one connection: a page of web_server on the NIC through the gateway, the same page of a bare net/http server, and of nginx"
	sourceGatewayRate = "wrk, 16 connections: the same"

	gatewayConnections = 16
	gatewayTime        = 2 * time.Second
)

// A site is one server that has the page.
type site struct {
	name, url string
	p50, rate report.Samples
}

// runGateway measures what HTTP costs, by which most people call a lambda. The gateway and the bare server run in this
// process, which has the same Go runtime for both; wrk and nginx are processes of their own.
func runGateway(ctx context.Context, _ *stand.Stand, o measure.Options) (rs []report.Result, err error) {
	page := measure.WebServer().Calls[0]
	gateway.LimitMemory() // as the daemon does
	err = operate(ctx, o, func(ctx context.Context, u *operator) (err error) {
		a, err := daemon.Build(ctx, u.paths, u.dir)
		if err != nil {
			return err
		}
		if err := u.deploy(ctx, a.Image); err != nil {
			return err
		}
		node, err := u.client.Node(ctx)
		if err != nil {
			return err
		}
		bare, stop, err := bareServer(page.Want)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		sites := []*site{{name: "gateway", url: "http://" + node.Listen + "/function/web_server" + string(page.Body)}, {name: "net/http", url: bare}}
		nginx, err := web.StartNginx(ctx, page.Want)
		switch {
		case errors.Is(err, exec.ErrNotFound):
			o.Log("gateway: %v", err)
		case err != nil:
			return err
		default:
			defer func() { err = errors.Join(err, nginx.Stop()) }()
			sites = append(sites, &site{name: "nginx", url: nginx.URL})
		}
		if err := visit(ctx, o, sites, page.Want); err != nil {
			return err
		}
		rs = compareSites(sites)
		return nil
	})
	return rs, err
}

// visit asks every site in every round, each round in the reverse order of the last.
func visit(ctx context.Context, o measure.Options, sites []*site, want []byte) error {
	order := slices.Clone(sites)
	for round := range o.Rounds {
		o.Log("gateway: round %d of %d", round+1, o.Rounds)
		for _, s := range order {
			if got, err := web.Get(ctx, s.url); err != nil || !bytes.Equal(got, want) {
				return errors.Join(fmt.Errorf("%w: %s: %q", measure.ErrWrong, s.url, got), err)
			}
			one, err := web.Load(ctx, s.url, 1, gatewayTime)
			if err != nil {
				return err
			}
			many, err := web.Load(ctx, s.url, gatewayConnections, gatewayTime)
			if err != nil {
				return err
			}
			s.p50 = append(s.p50, float64(one.P50.Nanoseconds())/1e3)
			s.rate = append(s.rate, many.Rate)
		}
		slices.Reverse(order)
	}
	return nil
}

func compareSites(sites []*site) []report.Result {
	p50, rate := map[string]report.Samples{}, map[string]report.Samples{}
	for _, s := range sites[1:] {
		p50[s.name], rate[s.name] = s.p50, s.rate
	}
	return []report.Result{
		report.Compare("http_p50", "µs", report.Lower, sourceGatewayP50, sites[0].p50, p50),
		report.Compare("http_rate", "1/s", report.Higher, sourceGatewayRate, sites[0].rate, rate),
	}
}

// bareServer answers every request with the page.
func bareServer(page []byte) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }),
		ReadHeaderTimeout: time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return "http://" + l.Addr().String() + "/page", func() error {
		err := server.Close()
		if s := <-served; !errors.Is(s, http.ErrServerClosed) {
			err = errors.Join(err, s)
		}
		return err
	}, nil
}
