package process

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// windowsPrefix begins the names of the files, one for each namespace, with the sequence numbers that clients have used (host/auth.c).
const windowsPrefix = "windows-"

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
	errs := []error{b.sweepWindows(l)}
	for _, in := range b.list() {
		errs = append(errs, in.limit(ctx))
	}
	return errors.Join(errs...)
}

// sweepWindows removes the windows of namespaces that there are no longer.
func (b *Backend) sweepWindows(l backend.Limits) error {
	entries, err := os.ReadDir(b.cfg.RunDir)
	if err != nil {
		return fmt.Errorf("remove windows of namespaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), windowsPrefix)
		number, err := strconv.ParseUint(text, 10, 32)
		_, known := l.Quotas[uint32(number)]
		if !ok || err != nil || known {
			continue
		}
		if err := os.Remove(filepath.Join(b.cfg.RunDir, e.Name())); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keysOf are a namespace's keys. ok is false before the first Limit.
func (b *Backend) keysOf(namespace uint32) (k api.Keys, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys[namespace], b.keys != nil
}

func (b *Backend) windows(namespace uint32) string {
	return filepath.Join(b.cfg.RunDir, windowsPrefix+strconv.FormatUint(uint64(namespace), 10))
}

// limit gives the process, if it runs, its namespace's keys.
func (in *instance) limit(ctx context.Context) error {
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.removed || !in.serving() {
		return nil // it gets them when it starts
	}
	if err := in.setKeys(ctx, in.socket(), in.record); err != nil && in.serving() {
		return fmt.Errorf("give the process of %s its keys: %w", in.record.Function, err)
	}
	return nil
}

// setKeys gives the process on a control socket the keys of its namespace. One of a namespace without a number has none.
func (in *instance) setKeys(ctx context.Context, socket string, r record) error {
	if r.Namespace == 0 {
		return nil
	}
	k, ok := in.b.keysOf(r.Namespace)
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
