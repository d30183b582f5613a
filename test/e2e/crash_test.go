package e2e

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// load calls a function over and over, without a gateway, until it is told to stop. Every call must be answered rightly, and none
// is sent a second time.
func (i *instance) load(function string, callers int) (stop func() (calls int64)) {
	i.t.Helper()
	f := i.describe(function)
	client, err := lambdanic.Dial(f.Endpoint.String(), lambdanic.WithoutResend(), lambdanic.WithTimeout(time.Minute))
	if err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(i.t.Context())
	var calls atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				answer, err := client.Call(context.WithoutCancel(ctx), lambdanic.Request{Workload: f.Workload, Body: []byte("/hello")})
				if err != nil || string(answer.Body) != hello {
					i.t.Errorf("call %d: %q, %v", calls.Load(), answer.Body, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	return func() int64 {
		cancel()
		wg.Wait()
		_ = client.Close()
		return calls.Load()
	}
}

// The data path outlives its control plane: requests go on while the daemon is dead, and while the next one adopts.
func TestKill(t *testing.T) {
	i := up(t)
	onEachTarget(t, i, "lambdas/web_server", nil, func(t *testing.T, name string) {
		i := i.on(t)
		stop := i.load(name, 4)
		before := i.describe(name)
		i.kill()
		if out, err := i.try("list"); err == nil {
			t.Errorf("a dead daemon lists its functions: %s", out)
		}
		i.start()
		after := i.describe(name)
		if after.Workload != before.Workload || after.Revision != before.Revision || after.Endpoint != before.Endpoint {
			t.Errorf("before: %+v\nafter:  %+v", before, after)
		}
		i.run("deploy", "lambdas/web_server", "--name", name, "--target", string(before.Target))
		i.expect(name, "0", "/hello", 200, hello)
		if n := stop(); n == 0 {
			t.Error("no call was made")
		}
	})
}

// A swap loses nothing and mixes nothing.
func TestSwapUnderLoad(t *testing.T) {
	i := up(t)
	onEachTarget(t, i, "lambdas/web_server", nil, func(t *testing.T, name string) {
		i := i.on(t)
		target := i.describe(name).Target
		stop := i.load(name, 4)
		for range 5 {
			i.run("deploy", "lambdas/web_server", "--name", name, "--target", string(target))
		}
		if n := stop(); n == 0 {
			t.Error("no call was made")
		}
	})
}

// down works without a daemon as well, and up begins anew after it.
func TestDownAfterKill(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/web_server")
	i.kill()
	i.run("down")
	i.checkGone()
	i.start()
	poll(t, "the store's functions serve again", func() error {
		_, err := i.try("invoke", "web_server", "--data", "/hello")
		return err
	})
}
