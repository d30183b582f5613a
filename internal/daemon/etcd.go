package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lambdanic/lambdanic/internal/store"
)

// The store is etcd within the daemon, or an external etcd. The data directory says which, so that no `up` takes an empty store
// of one kind in place of the other, and `down --purge` finds the store.

func (p Paths) etcd() string { return filepath.Join(p.Data, "etcd.json") }

// openStore opens the store of an instance that runs on a node.
func (c *Config) openStore(ctx context.Context, node string) (*store.Store, error) {
	recorded, err := c.recordedEtcd()
	if err != nil {
		return nil, err
	}
	if len(c.Etcd.Endpoints) == 0 {
		if recorded != nil {
			return nil, fmt.Errorf("the store of instance %s is etcd at %v: give --etcd as before, or `%s --purge` first to start anew with one within the daemon",
				c.Instance, recorded, c.Command("down"))
		}
		return store.Open(ctx, store.Config{DataDir: c.store(), SocketDir: c.storeSockets(), Log: c.Log})
	}
	if _, err := os.Stat(c.store()); err == nil {
		return nil, fmt.Errorf("instance %s has a store of its own in %s: leave out --etcd, or `%s --purge` first to start anew with etcd at %v",
			c.Instance, c.store(), c.Command("down"), c.Etcd)
	}
	remote, err := c.remote(c.Etcd, node)
	if err != nil {
		return nil, err
	}
	s, err := store.Connect(ctx, remote)
	if err != nil {
		return nil, err
	}
	if err := c.recordEtcd(remote); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// remote is r for an instance of this machine, with absolute paths.
func (c *Config) remote(r store.Remote, node string) (store.Remote, error) {
	r.Instance, r.Node, r.Log = c.Instance, node, c.Log
	for _, path := range []*string{&r.CA, &r.Certificate, &r.Key} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return r, fmt.Errorf("find %s: %w", *path, err)
		}
	}
	return r, nil
}

// recordedEtcd is the etcd that the instance's store was last on, nil for the etcd within the daemon.
func (p Paths) recordedEtcd() (*store.Remote, error) {
	text, err := os.ReadFile(p.etcd())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look for the store: %w", err)
	}
	r := new(store.Remote)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s, which says where the store is: %w: remove it, and give --etcd", p.etcd(), err)
	}
	return r, nil
}

func (p Paths) recordEtcd(r store.Remote) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.etcd(), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("note where the store is: %w", err)
	}
	return nil
}

// purgeEtcd removes the keys of an instance that is down from an external etcd.
func purgeEtcd(ctx context.Context, p Paths) error {
	recorded, err := p.recordedEtcd()
	if err != nil || recorded == nil {
		return err
	}
	node, err := nodeName()
	if err != nil {
		return err
	}
	c := Config{Paths: p, Log: discard}
	remote, err := c.remote(*recorded, node)
	if err != nil {
		return err
	}
	if err := store.Forget(ctx, remote); err != nil {
		return fmt.Errorf("%w; or remove %s, and leave what etcd has", err, p.Data)
	}
	return nil
}

func nodeName() (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this node: %w", err)
	}
	return name, nil
}
