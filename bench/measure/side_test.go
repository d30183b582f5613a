package measure_test

import (
	"context"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/test/patient"
)

func TestSidesAnswerCorrectly(t *testing.T) {
	o := measuretest.Options(t)
	o.Lambdas = patient.Lambdas(t, o.Lambdas)
	ctx := context.Background()
	s, err := stand.New(ctx, o.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, work := range []func() measure.Work{measure.WebServer, measure.KVClient, measure.ImageTransformer} {
		w := work()
		w.Open = nil // its rate is a benchmark's business
		w.Duration = 20 * time.Millisecond
		a, err := s.Build(ctx, w.Lambda)
		if err != nil {
			t.Fatal(err)
		}
		m, err := measure.Compare(ctx, s, a, w, 1, o.Log)
		if err != nil {
			t.Errorf("%s: %v", w.Lambda, err)
			continue
		}
		for name, f := range m.Sides {
			if len(f.P50) != 1 || f.P50[0] <= 0 || f.CPU[0] <= 0 || f.Histogram.TotalCount() == 0 {
				t.Errorf("%s on %s: got %+v", w.Lambda, name, f)
			}
		}
		if rs := m.Results(); len(rs) != 6 {
			t.Errorf("%s: got %d results, want 6: %+v", w.Lambda, len(rs), rs)
		}
	}
}
