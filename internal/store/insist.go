package store

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	writeLimit = 10 * time.Second      // for one write
	firstPause = 20 * time.Millisecond // before the second try
)

// Insist makes a repeatable write, and repeats it while it is unknown whether the store has it, for as long as ctx
// lasts and limit allows.
func Insist(ctx context.Context, limit time.Duration, write func(context.Context) error) error {
	once := func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, writeLimit)
		defer cancel()
		err := write(ctx)
		if err != nil && !errors.Is(err, ErrUnknown) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = firstPause
	_, err := backoff.Retry(ctx, once, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(limit))
	return err
}
