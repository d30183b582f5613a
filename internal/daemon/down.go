package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Down removes everything of an instance but its store: the daemon if it runs, NICs, processes, and what lies below Run.
// With purge, it removes the store too. Anything missing is no error.
func Down(ctx context.Context, p Paths, purge bool) error {
	if _, err := os.Stat(p.Run); err == nil {
		if err := takeDown(ctx, p); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look for instance %s: %w", p.Instance, err)
	} else if p.mayBeRoots() {
		return fmt.Errorf("this user has no instance %s: run as root to take down root's", p.Instance)
	} else if os.Getuid() == 0 {
		// Somebody may have removed the records: drop what is found without them.
		if err := dropPlaces(ctx, p); err != nil {
			return err
		}
	}
	if !purge {
		return nil
	}
	if err := purgeEtcd(ctx, p); err != nil {
		return err
	}
	if err := os.RemoveAll(p.Data); err != nil {
		return fmt.Errorf("remove the store: %w", err)
	}
	return nil
}

func takeDown(ctx context.Context, p Paths) error {
	lock, err := stopDaemon(ctx, p)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := dropPlaces(ctx, p); err != nil {
		return err
	}
	if err := os.RemoveAll(p.Run); err != nil {
		return fmt.Errorf("remove %s: %w", p.Run, err)
	}
	_ = os.Remove(systemRun) // only if this was the last instance
	return nil
}

// stopDaemon ends the daemon and takes the instance in its place.
func stopDaemon(ctx context.Context, p Paths) (*os.File, error) {
	const patience = 20 * time.Second
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := 0
	for {
		lock, err := acquire(p)
		var running *RunningError
		if !errors.As(err, &running) {
			return lock, err
		}
		if running.PID > 0 && running.PID != asked {
			asked = running.PID
			if err := unix.Kill(asked, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
				return nil, fmt.Errorf("end process %d: %w", asked, err)
			}
		}
		select {
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, fmt.Errorf("interrupted while process %d was ending; NIC and processes serve on: run `lambdanic down` again: %w", asked, ctx.Err())
			}
			return nil, fmt.Errorf("process %d does not end: %w: kill it, then run `lambdanic down` again", asked, waiting.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
