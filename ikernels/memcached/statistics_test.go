package memcached

import (
	"testing"

	"github.com/lambdanic/lambdanic/internal/counters/counterstest"
)

func TestCountersDocs(t *testing.T) {
	counterstest.Documented(t, new(Statistics).list())
}
