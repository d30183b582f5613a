package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/gateway/codec"
)

// httpStatus maps a lambda's own verdict.
func httpStatus(s api.Status) int {
	if s >= api.StatusHTTP400 {
		return http.StatusBadRequest + int(s-api.StatusHTTP400)
	}
	switch s {
	case api.StatusOK:
		return http.StatusOK
	case api.StatusNotFound:
		return http.StatusNotFound
	case api.StatusBadRequest:
		return http.StatusBadRequest
	case api.StatusServiceError:
		return http.StatusBadGateway
	default:
		return http.StatusInternalServerError
	}
}

// statusText names a lambda's verdict as docs/protocol.md does.
func statusText(s api.Status) string {
	switch s {
	case api.StatusNotFound:
		return "not found"
	case api.StatusBadRequest:
		return "bad request"
	case api.StatusFailed:
		return "failed"
	case api.StatusServiceError:
		return "external service error"
	}
	if s < api.StatusHTTP400 {
		return strconv.Itoa(int(s))
	}
	code := httpStatus(s)
	return strings.TrimSpace(fmt.Sprintf("%d, by HTTP %d %s", s, code, http.StatusText(code)))
}

// statusHungUp is nginx's status for a caller who hung up. It appears only in metrics.
const statusHungUp = 499

// httpError maps the error that kept a lambda from answering.
func httpError(err error) int {
	var rpc *lambdanic.RPCError
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &rpc):
		return httpCode(rpc.Code)
	case errors.As(err, &tooLong), errors.Is(err, codec.ErrTooLarge), errors.Is(err, lambdanic.ErrRequestTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout
	case errors.Is(err, errMemory):
		return http.StatusServiceUnavailable
	case errors.Is(err, errNoAnswer):
		return http.StatusBadGateway
	case errors.Is(err, ErrNetworks), errors.Is(err, ErrInterface):
		return http.StatusForbidden
	case errors.Is(err, errBody):
		return http.StatusBadRequest
	case errors.Is(err, context.Canceled):
		return statusHungUp
	case errors.As(err, new(syscall.Errno)): // an error of the network
		return http.StatusBadGateway
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	default: // no answer
		return http.StatusBadGateway
	}
}

func httpCode(c api.Code) int {
	switch c {
	case api.CodeUnknownWorkload:
		return http.StatusNotFound
	case api.CodeOverQuota:
		return http.StatusTooManyRequests
	case api.CodeMalformed:
		return http.StatusBadRequest
	case api.CodeLambdaFault, api.CodeTooLarge: // the reply: bodyLimit holds for the request
		return http.StatusInternalServerError
	case api.CodeBusy, api.CodeStale:
		return http.StatusServiceUnavailable
	case api.CodeTimeout:
		return http.StatusGatewayTimeout
	default: // unreachable, bad tag
		return http.StatusBadGateway
	}
}
