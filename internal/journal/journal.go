// Package journal keeps a daemon's last log records for `lambdanic logs` and faas-cli logs.
package journal

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/openfaas/faas-provider/logs"

	"github.com/lambdanic/lambdanic/api"
)

// Function is the attribute that names a record's function: NAMESPACE/NAME.
const Function = "function"

// Journal keeps the last records. The zero value keeps none; New makes one.
type Journal struct {
	mu      sync.Mutex
	ring    []logs.Message
	written uint64        // records that came
	more    chan struct{} // closed by the next record
}

// New returns a journal of that many records.
func New(size int) *Journal {
	return &Journal{ring: make([]logs.Message, size), more: make(chan struct{})}
}

func (j *Journal) add(m logs.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring[j.written%uint64(len(j.ring))] = m
	j.written++
	close(j.more)
	j.more = make(chan struct{})
}

// since gives the kept records from a number on, the number of the next, and a channel that is closed when the next comes.
func (j *Journal) since(number uint64) (kept []logs.Message, next uint64, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := uint64(len(j.ring))
	for n := max(number, j.written-min(j.written, size)); n < j.written; n++ {
		kept = append(kept, j.ring[n%size])
	}
	return kept, j.written, j.more
}

// Query gives the records that r asks for: of all functions and of the daemon itself, where r names none; of the default namespace, where r
// names a function and no namespace. The channel is closed after the last one or, where r follows, when ctx ends.
func (j *Journal) Query(ctx context.Context, r logs.Request) <-chan logs.Message {
	out := make(chan logs.Message)
	go func() {
		defer close(out)
		kept, next, more := j.since(0)
		kept = wanted(kept, &r)
		if r.Tail > 0 && len(kept) > r.Tail {
			kept = kept[len(kept)-r.Tail:]
		}
		for {
			for _, m := range kept {
				select {
				case out <- m:
				case <-ctx.Done():
					return
				}
			}
			if !r.Follow {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
			kept, next, more = j.since(next)
			kept = wanted(kept, &r)
		}
	}()
	return out
}

func wanted(all []logs.Message, r *logs.Request) (those []logs.Message) {
	for _, m := range all {
		switch {
		case r.Since != nil && m.Timestamp.Before(*r.Since):
		case r.Name != "" && (m.Name != r.Name || m.Namespace != cmp.Or(r.Namespace, api.DefaultNamespace)):
		case r.Name == "" && r.Namespace != "" && m.Namespace != r.Namespace:
		default:
			those = append(those, m)
		}
	}
	return those
}

// Handler returns a handler that writes to the journal from level Info on, and hands all on to next.
func (j *Journal) Handler(next slog.Handler) slog.Handler {
	return &handler{journal: j, next: next, text: func(h slog.Handler) slog.Handler { return h }}
}

// A handler keeps the attributes and groups that precede a record in text, which adds them to any handler.
type handler struct {
	journal *Journal
	next    slog.Handler
	text    func(slog.Handler) slog.Handler
	of      string // the function that the attributes name
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || h.next.Enabled(ctx, l)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		h.keep(ctx, r)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *handler) keep(ctx context.Context, r slog.Record) {
	m := logs.Message{Timestamp: r.Time}
	if m.Timestamp.IsZero() {
		m.Timestamp = time.Now()
	}
	of := h.of
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == Function {
			of = a.Value.String()
		}
		return true
	})
	m.Namespace, m.Name, _ = strings.Cut(of, "/")
	var line bytes.Buffer
	without := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // the message has a field for it
			return slog.Attr{}
		}
		return a
	}
	_ = h.text(slog.NewTextHandler(&line, &slog.HandlerOptions{ReplaceAttr: without})).Handle(ctx, r) // writing to a buffer cannot fail
	m.Text = strings.TrimSpace(line.String())
	h.journal.add(m)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clone := *h
	clone.next = h.next.WithAttrs(attrs)
	clone.text = func(t slog.Handler) slog.Handler { return h.text(t).WithAttrs(attrs) }
	for _, a := range attrs {
		if a.Key == Function {
			clone.of = a.Value.String()
		}
	}
	return &clone
}

func (h *handler) WithGroup(name string) slog.Handler {
	clone := *h
	clone.next = h.next.WithGroup(name)
	clone.text = func(t slog.Handler) slog.Handler { return h.text(t).WithGroup(name) }
	return &clone
}
