package suite

import (
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
)

// The suites that need no NIC, with less to do.
func TestSuitesOnOneCore(t *testing.T) {
	o := measure.Options{Rounds: 1}
	if err := checkPerft(t.Context(), o, 8); err != nil {
		t.Error(err)
	}
	perft, err := comparePerft(t.Context(), o, 8)
	if err != nil || perft.Value <= 0 || perft.Ratio["plain bitboards"] <= 0 {
		t.Errorf("%+v, %v", perft, err)
	}
	searches, err := timeSearches(t.Context(), o)
	if err != nil || len(searches) != 2 || searches[0].Value > searches[1].Value {
		t.Errorf("%+v, %v", searches, err)
	}
	tails, err := dispatchTails(t.Context(), 100_000)
	if err != nil || tails.Ratio["rss"] < 3 {
		t.Errorf("%+v, %v", tails, err)
	}
}
