package sourcefilter

import (
	"testing"

	"github.com/lambdanic/lambdanic/internal/counters"
	"github.com/lambdanic/lambdanic/internal/counters/counterstest"
)

func TestCountersDocs(t *testing.T) {
	counterstest.Documented(t, counters.Describe(verdicts))
	if len(verdicts) != int(FilterSfVerdictSF_VERDICTS) {
		t.Errorf("%d verdicts are counted, and there are %d", len(verdicts), FilterSfVerdictSF_VERDICTS)
	}
}
