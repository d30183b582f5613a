package worker

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A shelf is a target whose lambdas have books: numbers, by their places.
type shelf struct {
	memory
	books map[uint32]int
}

func (s *shelf) Resources() []backend.Resource {
	return []backend.Resource{backend.NewResource("books",
		func(_ context.Context, workload uint32, q int) (*int, error) {
			s.books[workload] = q
			return &q, nil
		},
		func(_ context.Context, workload uint32) (list []int, err error) {
			if b, ok := s.books[workload]; ok {
				list = append(list, b)
			}
			return list, nil
		},
		func(_ context.Context, workload, _ uint32) error {
			delete(s.books, workload)
			return nil
		},
	)}
}

func (s *shelf) Prepare(context.Context, backend.Deployment) (backend.Prepared, error) {
	return nil, errors.ErrUnsupported
}

func (s *shelf) PrepareFused(context.Context, backend.Fused) (backend.Prepared, error) {
	return nil, errors.ErrUnsupported
}

// A resource is found where a target has it. Elsewhere, the error says where it would be.
func TestResource(t *testing.T) {
	s := &shelf{books: map[uint32]int{}}
	w := New(Config{Places: []backend.Place{{Target: api.TargetNIC, Backend: s}, {Target: api.TargetProcess, Backend: &memory{}}}})
	r, err := w.Resource(api.TargetNIC, "books")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(want string) {
		t.Helper()
		list, err := r.List(t.Context(), 7)
		if text, _ := json.Marshal(list); err != nil || string(text) != want {
			t.Errorf("listed %s, %v, want %s", text, err, want)
		}
	}
	listed("[]")
	made, err := r.Add(t.Context(), 7, func(q any) error { return json.Unmarshal([]byte("5"), q) })
	if number, ok := made.(*int); err != nil || !ok || *number != 5 {
		t.Errorf("made %v, %v", made, err)
	}
	listed("[5]")
	unread := errors.New("unread")
	if _, err := r.Add(t.Context(), 8, func(any) error { return unread }); !errors.Is(err, unread) || len(s.books) != 1 {
		t.Errorf("added what could not be read: %v", err)
	}
	if err := r.Remove(t.Context(), 7, 0); err != nil {
		t.Error(err)
	}
	listed("[]")

	group := New(Config{Places: []backend.Place{{Target: api.TargetNIC, Backend: backend.Group{s, s}}}})
	away := New(Config{Places: []backend.Place{{Target: api.TargetNIC, Reason: "it needs root"}, {Target: api.TargetProcess, Backend: &memory{}}}})
	for _, c := range []struct {
		w      *Worker
		target api.Target
		path   string
		want   string
	}{
		{w, api.TargetProcess, "books", "refused: target process has no books: deploy with `--target nic`"},
		{w, api.TargetNIC, "discs", "no such resource on target nic: discs"},
		{group, api.TargetNIC, "books", "refused: books are of one interface each: bring an instance up with one --nic"},
		{away, api.TargetNIC, "books", "target nic is not available: it needs root"},
		{away, api.TargetProcess, "books", "no such resource on target process: books"},
	} {
		if _, err := c.w.Resource(c.target, c.path); err == nil || err.Error() != c.want {
			t.Errorf("%s on target %s: %v, want %s", c.path, c.target, err, c.want)
		}
	}
}
