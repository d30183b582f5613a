// Package store keeps what the control plane knows: functions, the candidates that may replace them, workload IDs and the
// status that workers report. It is etcd, embedded, and reachable through UNIX sockets of its owner only.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// ErrNotFound says that no function of that name is deployed.
var ErrNotFound = errors.New("no such function")

// ErrSuperseded says that a candidate is no longer the one in the store: another deploy or a remove came in between.
var ErrSuperseded = errors.New("superseded by a later deploy or remove")

// ErrUnknown says of a write that the connection or the time ended before the store answered: it may have been made or not.
// Every write but Delete may be made again, which tells.
var ErrUnknown = errors.New("it is not known whether the store has it")

// Config says where an embedded store lives.
type Config struct {
	DataDir   string // what must survive; made 0700
	SocketDir string // for client.sock; made 0700
	Log       *slog.Logger
}

// Store is a connection to etcd and, where it was opened with Open, the etcd server itself.
type Store struct {
	client *clientv3.Client
	server *embed.Etcd
	data   *os.File // etcd's database, nil where somebody else runs it
}

// Open starts an embedded etcd with one member and returns when it serves.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	for _, dir := range []string{cfg.DataDir, cfg.SocketDir} {
		if err := privateDir(dir); err != nil {
			return nil, err
		}
	}
	server, err := embed.StartEtcd(etcdConfig(cfg))
	if err != nil {
		return nil, fmt.Errorf("start the store in %s: %w", cfg.DataDir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start the store in %s: %w", cfg.DataDir, err)
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("start the store in %s: %w", cfg.DataDir, ctx.Err())
	}
	if err := os.Chmod(filepath.Join(cfg.SocketDir, socket), 0o600); err != nil {
		server.Close()
		return nil, fmt.Errorf("close the store's socket to others: %w", err)
	}
	data, err := os.OpenFile(filepath.Join(cfg.DataDir, "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		server.Close()
		return nil, fmt.Errorf("reserve space for the store: %w", err)
	}
	s := &Store{client: v3client.New(server.Server), server: server, data: data}
	s.reserve()
	return s, nil
}

// New returns a store on an etcd that somebody else runs.
func New(client *clientv3.Client) *Store {
	return &Store{client: client}
}

// Close ends the connection and the embedded server.
func (s *Store) Close() error {
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil // what an in-process client says when it is closed in good order
	}
	if s.server != nil {
		s.server.Close()
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

func etcdConfig(cfg Config) *embed.Config {
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
	// There is nobody to vote with: the first election may come at once.
	c.TickMs, c.ElectionMs = 10, 100
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(newLogCore(cfg.Log)))
	return c
}
