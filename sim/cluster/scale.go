package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/internal/placement"
)

// Scale is applications on a large cluster of Type2-SmartNIC servers, deployed one after the other: the catalogue's in turn, until they have at
// least so many microservices (section 5.6).
type Scale struct {
	Servers, Microservices int
	How
}

// ScaleOutcome is how placing went.
type ScaleOutcome struct {
	Microservices, Applications int
	Took                        time.Duration // of this machine, for all; the only result that differs from run to run
}

// PerMicroservice is in ms, as in Table 6.
func (o *ScaleOutcome) PerMicroservice() float64 {
	return o.Took.Seconds() * 1000 / float64(o.Microservices)
}

const (
	maxMicroservices = 10_000_000
	scaleRate        = 10_000 // requests/s of each application. It is assumed: the paper does not say.
)

// Place places them. Progress is told how many microservices are placed.
func (c *Catalogue) Place(ctx context.Context, s Scale, progress func(done, all int)) (o ScaleOutcome, err error) {
	switch {
	case s.Servers < 1 || s.Servers > MaxServers:
		return o, fmt.Errorf("servers: %d is not between 1 and %d", s.Servers, MaxServers)
	case s.Microservices < 1 || s.Microservices > maxMicroservices:
		return o, fmt.Errorf("microservices: %d is not between 1 and %d", s.Microservices, maxMicroservices)
	}
	topo, err := placement.Type2(s.Servers).Topology()
	if err != nil {
		return o, err
	}
	state := placement.NewState(topo)
	for o.Microservices < s.Microservices {
		a := c.Applications[o.Applications%len(c.Applications)]
		a.Name = fmt.Sprintf("%s/%d", a.Name, o.Applications)
		app, err := a.app(scaleRate, min(1, s.Servers-1), true)
		if err != nil {
			return o, err
		}
		d, err := state.Add(app)
		if err != nil {
			return o, err
		}
		begin := time.Now()
		if err := s.How.Place(ctx, state, d); err != nil {
			return o, fmt.Errorf("after %d microservices: %w", o.Microservices, err)
		}
		o.Took += time.Since(begin)
		o.Microservices += len(app.Services)
		o.Applications++
		progress(min(o.Microservices, s.Microservices), s.Microservices)
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
	}
	return o, nil
}
