package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/openfaas/faas-provider/logs"

	"github.com/lambdanic/lambdanic/internal/manager"
)

// logs streams the daemon's log as OpenFaaS's providers do: a JSON object a line. Without a name, it is of all functions and of
// the daemon itself. A client that follows asks again when the stream breaks off.
func (g *Gateway) logs(w http.ResponseWriter, r *http.Request) error {
	query, err := parseLogs(r)
	if err != nil {
		return fmt.Errorf("%w: %w", manager.ErrInvalid, err)
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // a recorder in a test does without
	lines := json.NewEncoder(w)
	for m := range g.Logs(r.Context(), query) {
		if lines.Encode(m) != nil {
			break // nobody reads any more, and the context ends
		}
		_ = flush.Flush()
	}
	return nil
}

func parseLogs(r *http.Request) (q logs.Request, err error) {
	values := r.URL.Query()
	q = logs.Request{Name: values.Get("name"), Namespace: values.Get("namespace"), Instance: values.Get("instance")}
	if text := values.Get("tail"); text != "" {
		if q.Tail, err = strconv.Atoi(text); err != nil {
			return q, fmt.Errorf("tail: %q is not a number", text)
		}
	}
	if text := values.Get("follow"); text != "" {
		if q.Follow, err = strconv.ParseBool(text); err != nil {
			return q, fmt.Errorf("follow: %q is neither true nor false", text)
		}
	}
	if text := values.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return q, fmt.Errorf("since: %q is not a time as 2006-01-02T15:04:05Z", text)
		}
		q.Since = &since
	}
	return q, nil
}
