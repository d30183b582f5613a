package gateway

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// askPatience is the deadline that a lambda sees of a caller without one: longer than a lambda may run on the NIC.
const askPatience = time.Minute

// ask has a lambda answer in this thread. ok is false where the lambda has to be called instead.
func ask(ctx context.Context, a backend.Asker, req *lambdanic.Request) (response lambdanic.Response, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return response, false, err
	}
	left := askPatience
	if until, bounded := ctx.Deadline(); bounded {
		left = time.Until(until)
	}
	h, body, ok, err := a.Ask(api.Header{
		Workload: req.Workload, Method: req.Method, Request: rand.Uint64(), DeadlineUS: uint32(max(left.Microseconds(), 1)),
	}, req.Body, nil)
	if err != nil || !ok {
		return response, false, err
	}
	if h.Type == api.TypeError {
		return response, true, lambdanic.ErrorOf(&h)
	}
	return lambdanic.Response{Status: api.Status(h.Code), Revision: h.Revision, Body: body, Length: len(body)}, true, nil
}
