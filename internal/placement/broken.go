package placement

import (
	"errors"
	"fmt"
	"slices"
)

// Violations are constraints that a placement of an app would break.
type Violations []Violation

// Error lists some in words.
func (v Violations) Error() string { return violations(v) }

// breaks says what a placement of an app would break, nil if nothing. It changes nothing.
func (s *State) breaks(d *Deployment, at []NodeID) error {
	before := d.Nodes()
	for i := range at {
		s.Place(d, i, at[i])
	}
	broken := slices.DeleteFunc(s.Check(), func(v Violation) bool { return !s.concerns(v, d) })
	for i := range before {
		s.Place(d, i, before[i])
	}
	if len(broken) == 0 {
		return nil
	}
	return Violations(broken)
}

// concerns says whether a violation has to do with an app.
func (s *State) concerns(v Violation, d *Deployment) bool {
	if v.App == d.App.Name {
		return true
	}
	if _, short := v.Constraint.Resource(); v.App != "" && !short && v.Constraint != Colocated {
		return false // it is another app's own
	}
	return slices.Contains(d.at, s.topo.ids[v.Node])
}

// because adds to an error of the ILP what is short, or else what the nearest placement breaks that annealing finds.
func (s *State) because(d *Deployment, err error) error {
	if !errors.Is(err, ErrInfeasible) && !errors.Is(err, ErrTimeout) {
		return err
	}
	if why := s.Shortage(d); why != "" {
		return fmt.Errorf("%w: %s", ErrInfeasible, why)
	}
	if !errors.Is(err, ErrInfeasible) {
		return err
	}
	a, failed := newAnnealer(s, d, AnnealOptions{Weights: DefaultWeights})
	if failed != nil {
		return err
	}
	if _, failed = a.run(nearMoves * len(d.at)); failed == nil {
		return err
	}
	return fmt.Errorf("%w; the nearest that annealing finds: %w", err, s.breaks(d, a.nearest))
}

// nearMoves is how many moves for each microservice look for the nearest placement.
const nearMoves = 200
