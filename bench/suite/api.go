package suite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/instance"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/internal/daemon"
)

const (
	sourceDeployAPI = "through a daemon: the API compiles and deploys a source that it never saw, and the gateway answers"
	sourceSwapAPI   = "through a daemon: the API deploys the other of two built revisions, and the gateway answers with it"
)

// operator deploys a web server by the management API, as `lambdanic deploy` does.
type operator struct {
	client *daemon.Client
	paths  daemon.Paths
	dir    string // of the source
}

// operate runs f beside a daemon of its own.
func operate(ctx context.Context, o measure.Options, f func(context.Context, *operator) error) error {
	return measure.WithSource(o, func(dir string) error {
		return instance.With(ctx, "timed", func(ctx context.Context, c *daemon.Client, p daemon.Paths) error {
			return f(ctx, &operator{c, p, dir})
		})
	})
}

// deploy returns when the gateway answers with the revision that it deployed.
func (u *operator) deploy(ctx context.Context, image string) error {
	targets := map[string]string{api.AnnotationTargets: string(api.TargetNIC)}
	fn, err := u.client.Deploy(ctx, types.FunctionDeployment{Service: "web_server", Image: image, Annotations: &targets})
	if err != nil {
		return err
	}
	call := measure.WebServer().Calls[0]
	answer, err := u.client.Invoke(ctx, "web_server", call.Method, bytes.NewReader(call.Body), http.Header{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	revision := answer.Header.Get(api.HeaderRevision)
	if !bytes.Equal(body, call.Want) || revision != strconv.FormatUint(uint64(fn.Revision), 10) {
		return fmt.Errorf("%w: status %d, revision %s, %q after revision %d was deployed", measure.ErrWrong, answer.StatusCode, revision, body, fn.Revision)
	}
	return nil
}

// deployByAPI times a deployment from a source on. The function is removed between rounds.
func deployByAPI(ctx context.Context, o measure.Options) (report.Result, error) {
	var times report.Samples
	err := operate(ctx, o, func(ctx context.Context, u *operator) error {
		for round := range o.Rounds {
			o.Log("deploy by API: round %d of %d", round+1, o.Rounds)
			if err := measure.Edit(u.dir, round); err != nil {
				return err
			}
			start := time.Now()
			a, err := daemon.Build(ctx, u.paths, u.dir)
			if err != nil {
				return err
			}
			if err := u.deploy(ctx, a.Image); err != nil {
				return err
			}
			times = append(times, measure.Milliseconds(start))
			if err := u.client.Remove(ctx, "", "web_server"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return report.Result{}, fmt.Errorf("deploy by API: %w", err)
	}
	return report.Compare("deploy by API", "ms", report.Lower, sourceDeployAPI, times, nil), nil
}

// swapByAPI times the swap from one of two built versions to the other.
func swapByAPI(ctx context.Context, o measure.Options) (report.Result, error) {
	var times report.Samples
	err := operate(ctx, o, func(ctx context.Context, u *operator) error {
		var images [2]string
		for i := range images {
			if err := measure.Edit(u.dir, i); err != nil {
				return err
			}
			a, err := daemon.Build(ctx, u.paths, u.dir)
			if err != nil {
				return err
			}
			images[i] = a.Image
		}
		if err := u.deploy(ctx, images[1]); err != nil {
			return err
		}
		for round := range o.Rounds {
			o.Log("swap by API: round %d of %d", round+1, o.Rounds)
			start := time.Now()
			if err := u.deploy(ctx, images[round%2]); err != nil {
				return err
			}
			times = append(times, measure.Milliseconds(start))
		}
		return nil
	})
	if err != nil {
		return report.Result{}, fmt.Errorf("swap by API: %w", err)
	}
	return report.Compare("swap by API", "ms", report.Lower, sourceSwapAPI, times, nil), nil
}
