package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// A function moves between its targets, there and back, under calls by its name: none is lost.
func TestMoveUnderCalls(t *testing.T) {
	i := up(t)
	i.run("deploy", "lambdas/web_server", "--target", "nic")
	password, err := os.ReadFile(filepath.Join(i.dir, "data", i.name, "basic-auth-password"))
	if err != nil {
		t.Fatal(err)
	}
	known := lambdanic.NewDirectory(i.gateway, lambdanic.WithCredentials("admin", strings.TrimSpace(string(password))))
	defer known.Close()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var calls atomic.Int64
	var ended atomic.Bool
	var callers sync.WaitGroup
	defer callers.Wait()
	defer ended.Store(true)
	for range 3 {
		callers.Go(func() {
			for !ended.Load() {
				r, err := known.Call(ctx, "web_server", lambdanic.Request{Body: []byte("/hello")})
				if err != nil || string(r.Body) != hello {
					t.Errorf("call %d: %q, %v", calls.Load(), r.Body, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	more := func() {
		t.Helper()
		for want := calls.Load() + 100; calls.Load() < want; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil || t.Failed() {
				t.Fatalf("no more than %d calls", calls.Load())
			}
		}
	}
	more()
	for _, target := range []api.Target{api.TargetProcess, api.TargetNIC, api.TargetProcess, api.TargetNIC} {
		i.run("deploy", "lambdas/web_server", "--target", string(target))
		if f := i.describe("web_server"); f.Target != target {
			t.Fatalf("it is on target %s, want %s", f.Target, target)
		}
		more()
	}
}
