package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/logs"
)

// What is asked for is what OpenFaaS's clients ask, and what is answered what they read.
func TestLogs(t *testing.T) {
	var asked logs.Request
	said := logs.Message{Name: "echo", Namespace: "tenant", Timestamp: time.Unix(1, 0).UTC(), Text: "hello"}
	g := New(Config{Logs: func(_ context.Context, r logs.Request) <-chan logs.Message {
		asked = r
		c := make(chan logs.Message, 2)
		c <- said
		c <- said
		close(c)
		return c
	}})
	r := do(t, g.Private(), "GET", "/system/logs?name=echo&namespace=tenant&tail=2&follow=1&since=2026-01-02T03:04:05.5Z", "")
	lines := json.NewDecoder(r.Body)
	for range 2 {
		var m logs.Message
		if err := lines.Decode(&m); err != nil || m != said {
			t.Errorf("got %+v, %v", m, err)
		}
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)
	want := logs.Request{Name: "echo", Namespace: "tenant", Tail: 2, Follow: true, Since: &since}
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/x-ndjson" || fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("%s %v, asked %v", r.Status, r.Header, asked)
	}
	for _, query := range []string{"tail=x", "follow=2", "since=yesterday"} {
		name, _, _ := strings.Cut(query, "=")
		if r := do(t, g.Private(), "GET", "/system/logs?"+query, ""); r.StatusCode != http.StatusBadRequest || !strings.Contains(bodyOf(t, r), name+": ") {
			t.Errorf("%s: %s", query, r.Status)
		}
	}
	public := New(Config{Credentials: Credentials{"u", "p"}}).Public()
	if r := do(t, public, "GET", "/system/logs", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without credentials: %s", r.Status)
	}
}
