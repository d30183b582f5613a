package lambdanic

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/lambdanic/lambdanic/api"
)

// RPCError is an error packet: the NIC's or host's reason not to answer a call. Compare with errors.Is and the sentinels
// below.
type RPCError struct {
	Code api.Code
	// Need is, for ErrTooLarge, how many bytes of room one packet would need; 0 where no size is enough.
	Need int
	// Fault is, for ErrLambdaFault, why the lambda failed; 0 where the server does not say.
	Fault api.Fault
}

// The server's errors (docs/protocol.md, "Errors").
var (
	ErrUnknownWorkload = &RPCError{Code: api.CodeUnknownWorkload}
	ErrOverQuota       = &RPCError{Code: api.CodeOverQuota}
	ErrBadTag          = &RPCError{Code: api.CodeBadTag}
	ErrMalformed       = &RPCError{Code: api.CodeMalformed}
	ErrLambdaFault     = &RPCError{Code: api.CodeLambdaFault}
	ErrTooLarge        = &RPCError{Code: api.CodeTooLarge}
	ErrBusy            = &RPCError{Code: api.CodeBusy}
	ErrServiceTimeout  = &RPCError{Code: api.CodeTimeout}
	ErrUnreachable     = &RPCError{Code: api.CodeUnreachable}
	ErrStale           = &RPCError{Code: api.CodeStale}
	// ErrTooLate: the server found that the call's deadline had passed. It also is ErrDeadlineExceeded.
	ErrTooLate = &RPCError{Code: api.CodeDeadline}
)

// The client's own errors.
var (
	// ErrDeadlineExceeded also is context.DeadlineExceeded.
	ErrDeadlineExceeded = fmt.Errorf("λ-RPC: no answer in time: %w", context.DeadlineExceeded)
	// ErrArgument: an argument makes no sense. Nothing was sent.
	ErrArgument = errors.New("bad argument")
	// ErrRequestTooLarge: the body needs more packets than the protocol can count.
	ErrRequestTooLarge = errors.New("λ-RPC: request too large: split it")
	// ErrReplyTooLarge: the reply is longer than WithMaxReply allows.
	ErrReplyTooLarge = errors.New("λ-RPC: reply too large: raise WithMaxReply")
	// ErrNoFunction: the gateway knows no function of that name.
	ErrNoFunction = errors.New("no such function: deploy it first")
	// ErrGateway: the gateway refused, or the server is not a gateway.
	ErrGateway = errors.New("the gateway does not say: check its address and the credentials")
	// ErrClosed: the client or connection was closed.
	ErrClosed = errors.New("λ-RPC: client is closed")
)

var reasons = map[api.Code]string{
	api.CodeUnknownWorkload: "unknown workload: look the lambda's name up again",
	api.CodeOverQuota:       "over quota: slow down",
	api.CodeBadTag:          "bad tag: check the namespace's key",
	api.CodeMalformed:       "malformed packet",
	api.CodeLambdaFault:     "the lambda failed on this request",
	api.CodeTooLarge:        "request or reply too large",
	api.CodeBusy:            "busy: try again later",
	api.CodeTimeout:         "an external service did not answer in time",
	api.CodeUnreachable:     "an external service cannot be reached",
	api.CodeStale:           "the revision or reply is gone: start over",
	api.CodeDeadline:        "the deadline was over before the lambda could answer",
}

// ErrorOf returns the error of an error packet's header.
func ErrorOf(h *api.Header) *RPCError {
	e := &RPCError{Code: api.Code(h.Code)}
	switch e.Code {
	case api.CodeLambdaFault:
		e.Fault = api.Fault(min(h.MessageLen, math.MaxUint8))
	case api.CodeTooLarge:
		e.Need = int(h.MessageLen)
	}
	return e
}

// Error gives the reason and, where there is one, the remedy.
func (e *RPCError) Error() string {
	reason, ok := reasons[e.Code]
	if !ok {
		reason = "unknown reason"
	}
	if e.Code == api.CodeLambdaFault {
		if why := e.Fault.Meaning(); why != "" {
			reason += ": " + why
		}
		reason += ": see `lambdanic describe NAME`"
	}
	if e.Need > 0 {
		return fmt.Sprintf("λ-RPC error %d: %s: %d bytes of room are needed", e.Code, reason, e.Need)
	}
	return fmt.Sprintf("λ-RPC error %d: %s", e.Code, reason)
}

// Is compares the codes alone, so that the sentinels match whatever else the packet said.
func (e *RPCError) Is(target error) bool {
	if e.Code == api.CodeDeadline && (target == ErrDeadlineExceeded || target == context.DeadlineExceeded) {
		return true
	}
	t, ok := target.(*RPCError)
	return ok && t.Code == e.Code
}
