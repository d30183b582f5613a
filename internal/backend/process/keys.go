package process

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// windowsFile has the sequence numbers that a lambda's clients have used (host/auth.c). Its processes hand it on to those that follow.
const windowsFile = "windows"

// errKeysUnknown keeps a process from serving requests that its namespace's keys would have refused.
var errKeysUnknown = errors.New("the keys of its namespace are not known yet")

// Limit gives the processes the keys of their namespaces (backend.Limiting). They have neither shares nor quotas.
func (b *Backend) Limit(ctx context.Context, l backend.Limits) error {
	b.mu.Lock()
	b.keys = l.Keys
	if b.keys == nil {
		b.keys = map[uint32]api.Keys{}
	}
	b.mu.Unlock()
	all := b.list()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, in := range all {
		wg.Go(func() { errs[i] = in.limit(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// keysOf are a namespace's keys. ok is false before the first Limit.
func (b *Backend) keysOf(namespace uint32) (k api.Keys, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys[namespace], b.keys != nil
}

// limit gives the process, if it runs, its namespace's keys. One that does not take them would serve by the former keys, so it is ended; the
// next one gets them when it starts.
func (in *instance) limit(ctx context.Context) error {
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.removed || !in.serving() {
		return nil
	}
	err := in.setKeys(context.WithoutCancel(ctx), in.socket(), in.record)
	if err == nil {
		return nil
	}
	in.log().Error("the process of a lambda does not take its namespace's keys; starting it again", "pid", in.child.PID, "error", err)
	if kerr := in.child.Kill(); kerr != nil {
		return fmt.Errorf("give the process of %s its keys: %w", in.record.Function, errors.Join(err, kerr))
	}
	return nil
}

// setKeys gives the process on a control socket the keys of its namespace. One of a namespace without a number has none.
func (in *instance) setKeys(ctx context.Context, socket string, r record) error {
	if *r.Namespace == 0 {
		return nil
	}
	k, ok := in.b.keysOf(*r.Namespace)
	if !ok {
		return errKeysUnknown
	}
	required, places := "optional", [2]string{"-", "-"}
	if k.Required {
		required = "required"
	}
	for _, key := range k.Keys {
		places[key.Number%2] = hex.EncodeToString(key.Secret[:])
	}
	_, err := control(ctx, socket, "keys %s %s %s", required, places[0], places[1])
	return err
}

func (in *instance) windows() string { return filepath.Join(in.dir, windowsFile) }
