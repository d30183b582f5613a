package ordinary_test

import (
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// abort() ends one request with the error "lambda fault", and nothing else, on the NIC and as a process.
func TestAbort(t *testing.T) {
	r := put(t, "aborted")
	for n := range uint32(8) {
		if n%2 == 0 {
			agree(t, r, words(n))
			continue
		}
		fault(t, r, words(n))
		p, err := r.AskProcess(0, words(n))
		if err != nil || p.Type != api.TypeError || api.Code(p.Code) != api.CodeLambdaFault {
			t.Errorf("process: %v, %v", p, err)
		}
	}
}
