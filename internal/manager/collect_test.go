package manager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// collector keeps the last digits of the artifacts that were in use when it was last asked to collect.
type collector struct {
	asked int
	used  string
}

func (c *collector) collect(used func(string) bool) ([]string, error) {
	c.asked++
	c.used = ""
	for _, last := range "0123456789abcde" {
		if used(artifact.DigestOf(image(string(last)))) {
			c.used += string(last)
		}
	}
	return nil, nil
}

// Artifacts are collected as a change begins and at the start, but for those that are used then.
func TestCollect(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	c := new(collector)
	n.Collect = c.collect
	expect := func(after string, asked int, used string) {
		t.Helper()
		if c.asked != asked || c.used != used {
			t.Errorf("after %s: asked %d times, with %q in use; want %d, %q", after, c.asked, c.used, asked, used)
		}
	}
	mustDeploy(t, n, Request{Name: "web", Image: image("0")})
	expect("a deploy", 1, "0")
	mustDeploy(t, n, Request{Name: "web", Image: image("1")})
	expect("an update, which replaces 0", 2, "01")
	mustDeploy(t, n, Request{Name: "web", Namespace: "other", Image: image("2")})
	mustFuse(t, n, Request{Name: "a", Image: image("3")}, Request{Name: "b", Image: image("4")})
	// The fused program ends in 9. It is young, and known to the store only during the deploy, beside which artifacts are collected.
	c.used = strings.TrimSuffix(c.used, "9")
	expect("a fused deploy", 4, "1234")
	if err := n.Remove(t.Context(), "", "web"); err != nil {
		t.Fatal(err)
	}
	expect("a removal, of 1", 5, "12349")
	if err := n.Remove(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	expect("a removal of a member, 3", 6, "2349")
	n.nic.refuse = func(backend.Deployment) error { return context.Canceled }
	if _, err := n.Deploy(t.Context(), Request{Name: "c", Image: image("5"), Targets: []api.Target{api.TargetNIC}}); err == nil {
		t.Fatal("it is deployed")
	}
	expect("a refused deploy", 7, "2459")
	n.nic.refuse = nil
	// What a daemon left that died in the middle of a change.
	left := store.Function{Namespace: "default", Name: "web", Artifact: image("6"), Spec: api.Spec{Name: "web"}.Default()}
	if _, err := n.Manager.Store.Propose(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	n.collect(t.Context())
	expect("a candidate", 8, "2469")
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("the start, which forgets it", 9, "249")
}

// A deploy that waits for its turn keeps what it has looked at already.
func TestCollectKeepsWhatIsAwaited(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	c := new(collector)
	n.Collect = c.collect
	n.Fuse = func(ctx context.Context, members []*artifact.Artifact) (*artifact.Artifact, error) {
		n.collect(ctx) // as another change does meanwhile
		if c.used != "12" {
			t.Errorf("before the deploy begins, %q are in use, want 12", c.used)
		}
		return fakeFuse(ctx, members)
	}
	mustFuse(t, n, Request{Name: "a", Image: image("1")}, Request{Name: "b", Image: image("2")})
	seen := map[string]bool{}
	n.Collect = func(used func(string) bool) ([]string, error) {
		for _, last := range "01234" {
			seen[string(last)] = used(artifact.DigestOf(image(string(last))))
		}
		return nil, nil
	}
	undo := n.claim(Request{Image: image("3")}, Request{Image: image("4")})
	undoOther := n.claim(Request{Image: image("3")})
	undo()
	n.collect(t.Context())
	if !seen["3"] || seen["4"] || seen["0"] || !seen["1"] {
		t.Errorf("in use are %v", seen)
	}
	undoOther()
	n.collect(t.Context())
	if seen["3"] || len(n.claimed) > 0 {
		t.Errorf("in use are %v, claimed %v", seen, slices.Collect(maps.Keys(n.claimed)))
	}
}
