package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A shelf is a target whose lambdas have books, which are numbers.
type shelf struct {
	memory
	books map[uint32][]int // by workload
}

func (s *shelf) Resources() []backend.Resource {
	return []backend.Resource{backend.NewResource("books",
		func(_ context.Context, workload uint32, q int) (*int, error) {
			s.books[workload] = append(s.books[workload], q)
			return &q, nil
		},
		func(_ context.Context, workload uint32) ([]int, error) { return s.books[workload], nil },
		func(_ context.Context, workload, number uint32) error {
			i := slices.Index(s.books[workload], int(number))
			if i < 0 {
				return backend.ErrNoResource
			}
			s.books[workload] = slices.Delete(s.books[workload], i, i+1)
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
	s := &shelf{books: map[uint32][]int{}}
	w := New(Config{Places: []backend.Place{{Target: api.TargetNIC, Backend: s}, {Target: api.TargetProcess, Backend: &memory{}}}})
	listed := func(workload uint32, want string) {
		t.Helper()
		list, err := w.ListResource(t.Context(), api.TargetNIC, workload, "books")
		if text, _ := json.Marshal(list); err != nil || string(text) != want {
			t.Errorf("listed %s, %v, want %s", text, err, want)
		}
	}
	listed(7, "[]")
	for _, book := range []string{"5", "6"} {
		made, err := w.AddResource(t.Context(), api.TargetNIC, 7, "books", func(q any) error { return json.Unmarshal([]byte(book), q) })
		if text, _ := json.Marshal(made); err != nil || string(text) != book {
			t.Errorf("made %s, %v, want %s", text, err, book)
		}
	}
	listed(7, "[5,6]")
	listed(8, "[]")
	unread := errors.New("unread")
	if _, err := w.AddResource(t.Context(), api.TargetNIC, 8, "books", func(any) error { return unread }); !errors.Is(err, unread) || len(s.books) != 1 {
		t.Errorf("added what could not be read: %v", err)
	}
	if err := w.RemoveResource(t.Context(), api.TargetNIC, 7, "books", 5); err != nil {
		t.Error(err)
	}
	listed(7, "[6]")
	if err := w.RemoveResource(t.Context(), api.TargetNIC, 8, "books", 6); !errors.Is(err, backend.ErrNoResource) {
		t.Errorf("removed another lambda's: %v", err)
	}

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
		{group, api.TargetNIC, "books", "refused: books belong to one interface: bring an instance up with one --nic"},
		{away, api.TargetNIC, "books", "target nic is not available: it needs root"},
		{away, api.TargetProcess, "books", "no such resource on target process: books"},
	} {
		_, add := c.w.AddResource(t.Context(), c.target, 7, c.path, nil)
		_, list := c.w.ListResource(t.Context(), c.target, 7, c.path)
		for _, err := range []error{add, list, c.w.RemoveResource(t.Context(), c.target, 7, c.path, 6)} {
			if err == nil || err.Error() != c.want {
				t.Errorf("%s on target %s: %v, want %s", c.path, c.target, err, c.want)
			}
		}
	}
}
