package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// notingNode notes what it is asked of resources.
type notingNode struct {
	Node
	asked string
}

func (n *notingNode) note(what string, t api.Target, workload uint32, path string) {
	n.asked = fmt.Sprintf("%s %s %#x %s", what, t, workload, path)
}

func (n *notingNode) AddResource(_ context.Context, t api.Target, workload uint32, path string, _ func(any) error) (any, error) {
	n.note("add", t, workload, path)
	return nil, nil
}

func (n *notingNode) ListResource(_ context.Context, t api.Target, workload uint32, path string) (any, error) {
	n.note("list", t, workload, path)
	return nil, nil
}

func (n *notingNode) RemoveResource(_ context.Context, t api.Target, workload uint32, path string, number uint32) error {
	n.note(fmt.Sprint("remove ", number), t, workload, path)
	return nil
}

// The node is asked for a function's resources on the target that it runs on, under its workload ID. What does not exist has none.
func TestResources(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	f := mustDeploy(t, n, Request{Name: "web", Targets: []api.Target{api.TargetProcess}})
	node := &notingNode{Node: n.Node}
	n.Node = node
	ask := map[string]func(name string) error{
		"add": func(name string) error {
			_, err := n.AddResource(t.Context(), "", name, "books", nil)
			return err
		},
		"list": func(name string) error {
			_, err := n.ListResource(t.Context(), "", name, "books")
			return err
		},
		"remove 5": func(name string) error { return n.RemoveResource(t.Context(), "", name, "books", 5) },
	}
	for what, do := range ask {
		if err := do("web"); err != nil {
			t.Error(err)
		}
		if want := fmt.Sprintf("%s process %#x books", what, f.Workload); node.asked != want {
			t.Errorf("the node was asked %q, want %q", node.asked, want)
		}
		if err := do("wed"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of a function that is not there: %v", what, err)
		}
	}
}
