package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A fakeAsker answers with what it was asked, below methodError with that status; it has no answer to methodSilent.
type fakeAsker struct{ asked []api.Header }

func (f *fakeAsker) Ask(q api.Header, body, reply []byte) (h api.Header, payload []byte, ok bool, err error) {
	f.asked = append(f.asked, q)
	h = api.Header{Type: api.TypeResponse, Code: uint8(q.Method), Revision: 8}
	switch {
	case q.Method == methodSilent:
		return h, nil, false, nil
	case q.Method == methodError:
		return h, nil, false, errors.New("no NIC program")
	case q.Method > methodError:
		h.Type, h.Code, h.MessageLen = api.TypeError, uint8(q.Method-methodError), uint32(api.FaultBounds)
	}
	return h, append(reply, body...), true, nil
}

// A function that can be asked without a way to it answers as one that is called; what it has no answer to goes the way.
func TestFunctionAsked(t *testing.T) {
	g := newGateway(t)
	asker := &fakeAsker{}
	lookup := g.Lookup
	g.Lookup = func(namespace, name string) (Route, bool) {
		route, ok := lookup(namespace, name)
		route.Asker = asker
		return route, ok
	}
	h := g.Public()
	for url, want := range map[string]struct {
		status   int
		revision string
	}{
		"/function/echo":             {http.StatusOK, "8"},
		"/function/echo?method=1":    {http.StatusNotFound, "8"},
		"/function/echo?method=1005": {http.StatusInternalServerError, ""},
		"/function/echo?method=1000": {http.StatusBadGateway, ""},
		"/function/stage":            {http.StatusBadRequest, ""}, // which has an asker, too, and must not be asked
	} {
		r := do(t, h, "POST", url, "hello")
		body := bodyOf(t, r)
		if r.StatusCode != want.status || r.Header.Get(api.HeaderRevision) != want.revision {
			t.Errorf("%s: %s, revision %s, %q", url, r.Status, r.Header.Get(api.HeaderRevision), body)
		}
	}
	asked := len(asker.asked)
	if r := do(t, h, "POST", "/function/echo?method=9999", "hello", api.HeaderTimeout, "200ms"); r.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("what is not answered here goes to the lambda, which is silent: %s", r.Status)
	}
	if len(asker.asked) != asked+1 || asker.asked[asked].DeadlineUS > 200_000 {
		t.Errorf("asked %+v", asker.asked[asked:])
	}
}

// A function that is reached from networks alone can be asked, and not be called.
func TestClosedFunction(t *testing.T) {
	var asker backend.Asker = &fakeAsker{}
	g := newGateway(t)
	lookup := g.Lookup
	g.Lookup = func(namespace, name string) (Route, bool) {
		route, ok := lookup(namespace, name)
		route.Asker, route.Closed = asker, ErrNetworks
		return route, ok
	}
	h := g.Public()
	if r := do(t, h, "POST", "/function/echo", "hello"); r.StatusCode != http.StatusOK {
		t.Errorf("asked: %s", r.Status)
	}
	r := do(t, h, "POST", "/function/echo?method=9999", "hello")
	if body := bodyOf(t, r); r.StatusCode != http.StatusBadGateway || !strings.Contains(body, "it gave no answer of one packet, and it is reached from its namespace's networks alone") {
		t.Errorf("asked in vain: %s %q", r.Status, body)
	}
	asker = nil
	r = do(t, h, "POST", "/function/echo", "hello")
	if body := bodyOf(t, r); r.StatusCode != http.StatusForbidden || !strings.Contains(body, "it is reached from its namespace's networks alone") {
		t.Errorf("called: %s %q", r.Status, body)
	}
}
