// Package examples sends a lambda the requests of its examples.yml and checks the replies, on an instance brought up for that.
package examples

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/instance"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/daemon"
)

// Options say where lambdas are asked.
type Options struct {
	Targets  []api.Target                   // each in turn; if empty, those of a lambda's spec
	Services map[string]string              // addresses of external services, as deploy has them
	Progress func(what string) (end func()) // tells what takes its time; may be nil
	Log      func(text string)              // gets the compiler's warnings; may be nil
}

// A Result is the result of one example on one target.
type Result struct {
	Lambda  string     `json:"lambda"`
	Target  api.Target `json:"target"`
	Example string     `json:"example,omitempty"`
	Error   string     `json:"error,omitempty"`   // how the answer differs, or why it is missing; empty where it is right
	Skipped string     `json:"skipped,omitempty"` // why the lambda does not run on this target, though its spec names it
}

// Run builds the lambdas in dirs, deploys each on every target, and sends it its examples. The error says why it could not
// do that; wrong answers are in the results.
func Run(ctx context.Context, dirs []string, o Options) (results []Result, err error) {
	lists := make([][]api.Example, len(dirs))
	for i, dir := range dirs {
		if lists[i], err = read(dir); err != nil {
			return nil, err
		}
	}
	err = instance.With(ctx, "test", func(ctx context.Context, c *daemon.Client, p daemon.Paths) error {
		for i, dir := range dirs {
			more, err := o.try(ctx, c, p, dir, lists[i])
			results = append(results, more...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return results, err
}

// Failed is an error where an answer is not what the example says.
func Failed(results []Result) error {
	wrong := 0
	for _, r := range results {
		if r.Error != "" {
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d answers are not what the examples say", wrong, len(results))
}

func read(dir string) ([]api.Example, error) {
	path := filepath.Join(dir, api.ExamplesFile)
	list, err := api.ReadExamples(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s: write down what the lambda answers, as `lambdanic new` does for its own", path)
	case err == nil && len(list) == 0:
		return nil, fmt.Errorf("%s has no example: add one", path)
	}
	return list, err
}

func (o Options) progress(what string) (end func()) {
	if o.Progress == nil {
		return func() {}
	}
	return o.Progress(what)
}

func (o Options) try(ctx context.Context, c *daemon.Client, p daemon.Paths, dir string, list []api.Example) (results []Result, err error) {
	end := o.progress("building " + dir)
	a, err := daemon.Build(ctx, p, dir)
	end()
	if err != nil {
		return nil, err
	}
	if o.Log != nil {
		o.Log(a.Log)
	}
	targets := o.Targets
	if len(targets) == 0 {
		targets = a.Spec.Targets
	}
	for _, target := range targets {
		refused := slices.IndexFunc(a.Refused, func(r api.Refusal) bool { return r.Target == target })
		if refused >= 0 && len(o.Targets) == 0 {
			results = append(results, Result{Lambda: a.Spec.Name, Target: target, Skipped: a.Refused[refused].Reason})
			continue
		}
		more, err := o.ask(ctx, c, a, target, list)
		results = append(results, more...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// ask deploys an artifact on one target, sends it the examples' requests, and removes it.
func (o Options) ask(ctx context.Context, c *daemon.Client, a *api.Artifact, target api.Target, list []api.Example) (results []Result, err error) {
	annotations := map[string]string{api.AnnotationTargets: string(target)}
	for service, addr := range o.Services {
		annotations[api.AnnotationService+service] = addr
	}
	end := o.progress(fmt.Sprintf("asking %s on %s", a.Spec.Name, target))
	defer end()
	f, err := c.Deploy(ctx, types.FunctionDeployment{Service: a.Spec.Name, Image: a.Image, Annotations: &annotations})
	if err != nil {
		return nil, fmt.Errorf("deploy %s on %s: %w", a.Spec.Name, target, err)
	}
	client, err := lambdanic.Dial(f.Endpoint.String())
	if err != nil {
		return nil, fmt.Errorf("call %s on %s: %w", a.Spec.Name, target, err)
	}
	defer client.Close()
	invoke := func(ctx context.Context, method uint32, request []byte) (api.Status, []byte, error) {
		answer, err := client.Call(ctx, lambdanic.Request{Workload: f.Workload, Method: method, Body: request})
		return answer.Status, answer.Body, err
	}
	for _, e := range list {
		r := Result{Lambda: a.Spec.Name, Target: target, Example: e.Name}
		if err := compiler.RunExample(ctx, e, invoke); err != nil {
			r.Error = err.Error()
		}
		results = append(results, r)
	}
	return results, c.Remove(ctx, f.Namespace, f.Name)
}
