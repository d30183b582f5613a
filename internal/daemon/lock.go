package daemon

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// RunningError says that another daemon holds the instance.
type RunningError struct {
	Instance string
	PID      int
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("instance %s is already up, process %d: for other flags, end that process and run `lambdanic up --name %s` again, while NIC and processes serve on; "+
		"`lambdanic down --name %s` takes these away, too; `lambdanic up --name OTHER` makes another instance", e.Instance, e.PID, e.Instance, e.Instance)
}

// acquire takes the instance. A record lock (fcntl(2)) tells who holds it, without a file that may be stale;
// the kernel releases it when its holder dies, however it dies. It is also released when this process closes any descriptor of
// the file, so nothing else may open it.
func acquire(p Paths) (*os.File, error) {
	f, err := os.OpenFile(p.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock instance %s: %w", p.Instance, err)
	}
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		if err == nil {
			return f, nil
		}
		holder := unix.Flock_t{Type: unix.F_WRLCK}
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &holder)
		}
		if err == nil && holder.Type == unix.F_UNLCK {
			continue // the holder ended in between
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("lock instance %s: %w", p.Instance, err)
		}
		return nil, &RunningError{p.Instance, int(holder.Pid)}
	}
}
