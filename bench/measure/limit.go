package measure

import (
	"context"

	"github.com/lambdanic/lambdanic/bench/echo"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// EchoRate measures the limit once: a bare echo in the place of the NIC program, under the load of a web server. It is the
// best over the sets of CPUs that generate.
func EchoRate(ctx context.Context, s *stand.Stand) (best float64, err error) {
	a, err := echo.Attach(s.Fast)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	g, err := gen.New(s.Fast, gen.Options{})
	if err != nil {
		return 0, err
	}
	defer g.Close()
	for _, cpus := range GeneratorCPUs() {
		l := *WebServer().Open
		l.CPUs = cpus
		r, err := g.Run(ctx, l)
		if err != nil {
			return 0, err
		}
		best = max(best, r.Rate())
	}
	return best, nil
}
