package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/openfaas/faas-provider/logs"

	"github.com/lambdanic/lambdanic/api"
)

func texts(c <-chan logs.Message) (all []string) {
	for m := range c {
		all = append(all, fmt.Sprintf("%s/%s %s", m.Namespace, m.Name, m.Text))
	}
	return all
}

func TestQuery(t *testing.T) {
	j := New(4)
	log := slog.New(j.Handler(slog.DiscardHandler))
	log.Info("gone") // the oldest of five
	log.Info("deployed", Function, "a/web", "revision", 3)
	log.With(Function, api.DefaultNamespace+"/web").Warn("failed", "times", 2)
	log.Info("up")
	log.Info("removed", Function, "a/web")
	log.Debug("no one's business")
	deployed, failed, up, removed := `a/web level=INFO msg=deployed function=a/web revision=3`,
		api.DefaultNamespace+"/web level=WARN msg=failed function="+api.DefaultNamespace+"/web times=2", `/ level=INFO msg=up`, `a/web level=INFO msg=removed function=a/web`
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		r    logs.Request
		want []string
	}{
		"all":               {logs.Request{}, []string{deployed, failed, up, removed}},
		"the last":          {logs.Request{Tail: 1}, []string{removed}},
		"more than are":     {logs.Request{Tail: 9, Since: &past}, []string{deployed, failed, up, removed}},
		"a function":        {logs.Request{Name: "web"}, []string{failed}},
		"of a namespace":    {logs.Request{Name: "web", Namespace: "a"}, []string{deployed, removed}},
		"a namespace":       {logs.Request{Namespace: "a", Tail: 1}, []string{removed}},
		"an unknown one":    {logs.Request{Name: "nobody"}, nil},
		"later than it was": {logs.Request{Since: &future}, nil},
	} {
		if got := texts(j.Query(t.Context(), tc.r)); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, tc.want)
		}
	}
}

// Who follows gets what comes, each once, until they have enough.
func TestFollow(t *testing.T) {
	j := New(100)
	log := slog.New(j.Handler(slog.DiscardHandler))
	log.Info("0", Function, api.DefaultNamespace+"/web")
	ctx, cancel := context.WithCancel(t.Context())
	c := j.Query(ctx, logs.Request{Name: "web", Follow: true})
	for i := range 50 {
		want := fmt.Sprintf("level=INFO msg=%d function=%s/web", i, api.DefaultNamespace)
		if m := <-c; m.Text != want {
			t.Fatalf("got %q, want %q", m.Text, want)
		}
		log.Info("not asked for")
		log.Info(fmt.Sprint(i+1), Function, api.DefaultNamespace+"/web")
	}
	cancel()
	for range c { // it ends
	}
}

// What goes to the other handler is what would without a journal (testing/slogtest), and from its own level on.
func TestHandlerPassesOn(t *testing.T) {
	var out bytes.Buffer
	j := New(10)
	h := j.Handler(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
	slog.New(h).Info("kept only")
	if out.Len() != 0 || len(texts(j.Query(t.Context(), logs.Request{}))) != 1 {
		t.Errorf("passed on %s", &out)
	}
	slogtest.Run(t, func(*testing.T) slog.Handler { return New(1).Handler(slog.NewJSONHandler(&out, nil)) }, func(t *testing.T) map[string]any {
		defer out.Reset()
		return decode(t, out.Bytes())
	})
}

func decode(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
