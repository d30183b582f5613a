package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap/zapcore"
)

// failure is an error with which etcd cannot go on. etcd would panic or exit; instead only the goroutine ends that met the error.
type failure struct {
	once sync.Once
	done chan struct{}
	err  error // once done is closed
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

func (f *failure) set(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
}

// OnWrite is zapcore.CheckWriteHook, for messages after which the process would end.
func (f *failure) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(e.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	}
	f.set(err)
	runtime.Goexit()
}

// guard calls etcd in a goroutine of its own, which a failure may end or keep for ever.
func guard[T any](ctx context.Context, f *failure, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	called := make(chan result, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				called <- result{err: fmt.Errorf("%v", r)}
			}
		}()
		value, err := call()
		called <- result{value, err}
	}()
	select {
	case r := <-called:
		return r.value, r.err
	case <-f.done:
		return *new(T), f.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// guardedKV is a client whose reads and single writes are guarded.
type guardedKV struct {
	clientv3.KV
	failed *failure
	limit  time.Duration // for a read; 0: only the caller's limit
}

func (g guardedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return read(ctx, g, func(ctx context.Context) (*clientv3.GetResponse, error) { return g.KV.Get(ctx, key, opts...) })
}

// Do is for several reads at once.
func (g guardedKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return read(ctx, g, func(ctx context.Context) (clientv3.OpResponse, error) { return g.KV.Do(ctx, op) })
}

func read[T any](ctx context.Context, g guardedKV, call func(context.Context) (T, error)) (T, error) {
	if g.limit == 0 {
		return guard(ctx, g.failed, func() (T, error) { return call(ctx) })
	}
	limited, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	r, err := guard(limited, g.failed, func() (T, error) { return call(limited) })
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrAway, err)
	}
	return r, err
}

func (g guardedKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return guard(ctx, g.failed, func() (*clientv3.PutResponse, error) { return g.KV.Put(ctx, key, value, opts...) })
}
