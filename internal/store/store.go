// Package store keeps the state of the control plane: functions, the candidates that may replace them, workload IDs, what each node is to
// run, and the nodes' statuses. It is etcd: embedded, and reachable only through UNIX sockets of its owner (Open), or run by somebody else
// (Connect).
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// ErrNotFound says that no function of that name is deployed.
var ErrNotFound = errors.New("no such function")

// ErrSuperseded says that a candidate is no longer the one in the store: another deploy or a remove came in between.
var ErrSuperseded = errors.New("superseded by a later deploy or remove")

// ErrUnknown says that the connection or the time ended before the store answered a write, which may or may not have been made.
// Repeating the write tells; every write but Delete may be repeated.
var ErrUnknown = errors.New("it is not known whether the store has it")

// Config says where an embedded store lives.
type Config struct {
	DataDir   string // what must survive; made 0700
	SocketDir string // for client.sock; made 0700
	Log       *slog.Logger
	// Wrap, where set, comes between the store and etcd. Tests have etcd fail in it.
	Wrap func(clientv3.KV) clientv3.KV
}

// Store is a connection to etcd and, where it was opened with Open, the etcd server itself.
type Store struct {
	client *clientv3.Client // its KV puts the prefix before keys
	prefix string
	failed *failure
	remedy string // what to do when it has failed

	statuses bell

	// Of an embedded etcd.
	server *embed.Etcd
	isNew  bool
	data   *os.File // its database

	owner *owner // of an etcd that somebody else runs
}

// Open starts an embedded etcd with one member and returns when it serves. For damaged files, the error wraps ErrDamaged.
// After an error of etcd's, some of its goroutines may remain, so the process should end.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	for _, dir := range []string{cfg.DataDir, cfg.SocketDir} {
		if err := privateDir(dir); err != nil {
			return nil, err
		}
	}
	f := files{cfg.DataDir}
	isNew, err := f.check()
	if err != nil {
		return nil, err
	}
	failed := newFailure()
	server, err := start(ctx, etcdConfig(cfg, failed), failed)
	switch {
	case errors.Is(err, errSilent) && !isNew:
		return nil, fmt.Errorf("start the store in %s: %w: try again, and if that does not help, %s", f.dir, err, f.remedy())
	case err != nil && !isNew && ctx.Err() == nil:
		return nil, f.damaged(filepath.Join(f.dir, "member"), err)
	case err != nil:
		return nil, fmt.Errorf("start the store in %s: %w", f.dir, err)
	}
	client := v3client.New(server.Server)
	if cfg.Wrap != nil {
		client.KV = cfg.Wrap(client.KV)
	}
	s := newStore(client, root, 0, failed)
	s.server, s.isNew, s.remedy = server, isNew, "see to the disk of "+cfg.DataDir
	if err := s.adopt(f, cfg); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// readyLimit is how long etcd may take to serve after reading its files: an election without rivals and one write.
const readyLimit = 15 * time.Second

var errSilent = fmt.Errorf("it does not serve after %v", readyLimit)

// start starts etcd and waits until it serves.
func start(ctx context.Context, cfg *embed.Config, failed *failure) (*embed.Etcd, error) {
	server, err := guard(ctx, failed, func() (*embed.Etcd, error) { return embed.StartEtcd(cfg) })
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(readyLimit)
	defer patience.Stop()
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err = <-server.Err():
	case <-failed.done:
		return nil, failed.err // closing it would wait for a goroutine that has ended
	case <-patience.C:
		err = errSilent
	case <-ctx.Done():
		err = ctx.Err()
	}
	closeSoon(server)
	return nil, err
}

// closeSoon closes a server that never served, but does not wait long: closing may block on what serving waited for.
func closeSoon(server *embed.Etcd) {
	closed := make(chan struct{})
	go func() {
		server.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

// adopt finishes a server that serves.
func (s *Store) adopt(f files, cfg Config) error {
	if err := os.Chmod(filepath.Join(cfg.SocketDir, socket), 0o600); err != nil {
		return fmt.Errorf("close the store's socket to others: %w", err)
	}
	if err := f.setMark(); err != nil {
		return fmt.Errorf("mark the store: %w", err)
	}
	var err error
	if s.data, err = os.OpenFile(f.database(), os.O_RDWR, 0); err != nil {
		return fmt.Errorf("reserve space for the store: %w", err)
	}
	s.reserve()
	return nil
}

// root is before all keys.
const root = "/lambdanic/v1/"

// newStore returns a store whose keys begin with prefix. Reads have a limit, where it is not 0.
func newStore(client *clientv3.Client, prefix string, limit time.Duration, failed *failure) *Store {
	client.KV = guardedKV{namespace.NewKV(client.KV, prefix), failed, limit}
	return &Store{client: client, prefix: prefix, failed: failed}
}

// IsNew tells whether Open made the store.
func (s *Store) IsNew() bool { return s.isNew }

// Failed is closed when the store cannot go on: a disk failed or is full, or another node serves the instance. Err then says why
// and what to do, and the process should end.
func (s *Store) Failed() <-chan struct{} { return s.failed.done }

// Err is nil until Failed is closed.
func (s *Store) Err() error {
	select {
	case <-s.failed.done:
		if owned := new(OwnedError); errors.As(s.failed.err, &owned) {
			return owned
		}
		return fmt.Errorf("the store failed: %w: %s", s.failed.err, s.remedy)
	default:
		return nil
	}
}

// Close ends the connection and the embedded server.
func (s *Store) Close() error {
	s.statuses.close()
	s.owner.close()
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // an in-process client returns this when it is closed
	}
	if s.server != nil && s.Err() == nil { // after a failure, it would wait for a goroutine that has ended
		s.server.Close()
	}
	if s.data != nil {
		err = errors.Join(err, s.data.Close())
	}
	return err
}

// privateDir makes a directory that nobody but its owner can enter, before anything in it exists.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the store's directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close the store's directory to others: %w", err)
	}
	return nil
}

const socket = "client.sock"

func etcdConfig(cfg Config, failed *failure) *embed.Config {
	c := embed.NewConfig()
	c.Name = "lambdanic"
	c.Dir = cfg.DataDir
	client := []url.URL{{Scheme: "unix", Path: filepath.Join(cfg.SocketDir, socket)}}
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	// A single member has no peers to listen for. (Asked to listen at unix:///PATH, etcd 3.7 takes the host of that URL,
	// "", which is an abstract socket that everybody can reach.) The advertised URL is a name in the member list, no more.
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{{Scheme: "unix", Host: "none"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	c.AutoCompactionMode, c.AutoCompactionRetention = "revision", "1000"
	// There are no other members: the first election may come at once.
	c.TickMs, c.ElectionMs = 10, 100
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(newLogCore(cfg.Log), zap.WithFatalHook(failed), zap.WithPanicHook(failed)))
	return c
}
