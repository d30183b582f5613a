package nanoservice

import (
	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// What the authors of the paper measured of Othello on one core: how long it takes to find and evaluate all moves of a position, and how
// many there are.
var (
	OthelloMap      = othelloMap()
	OthelloBranches = othelloBranches()
)

func othelloMap() *random.Quantiles {
	var points []random.Quantile
	for _, p := range []struct {
		percent float64
		ns      event.Time
	}{
		{0, 247}, {1, 307}, {5, 370}, {10, 450}, {25, 633}, {50, 890}, {75, 1137}, {90, 1346}, {95, 1466}, {99, 1685}, {99.9, 1914}, {100, 1964},
	} {
		points = append(points, random.Quantile{P: p.percent / 100, Value: p.ns * event.Nanosecond})
	}
	q, err := random.NewQuantiles(points...)
	if err != nil {
		panic(err)
	}
	return q
}

func othelloBranches() *random.Histogram {
	h, err := random.NewHistogram(153, 141, 312, 198, 268, 331, 337, 315, 272, 236, 155, 88, 54, 37, 19, 9, 2, 1, 1)
	if err != nil {
		panic(err)
	}
	return h
}
