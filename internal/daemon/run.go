package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/gateway"
)

// ReadyFlag is the flag by which Detach tells the new daemon where to report.
const ReadyFlag = "ready-fd"

// report is what a detached daemon tells the process that started it.
type report struct {
	Node  *api.Node `json:"node,omitempty"`
	Error string    `json:"error,omitempty"`
}

// Run brings an instance up and serves until ctx ends. Once it serves, it tells ready or, where readyFD is not negative,
// the process at the other end of that descriptor.
func Run(ctx context.Context, cfg Config, readyFD int, ready func(*api.Node) error) error {
	if readyFD >= 0 {
		unix.CloseOnExec(readyFD) // pacer and lambda-host outlive us, and Detach reads to the end
		pipe := os.NewFile(uintptr(readyFD), "ready")
		ready = func(node *api.Node) error {
			return errors.Join(json.NewEncoder(pipe).Encode(report{Node: node}), pipe.Close())
		}
		err := run(ctx, cfg, ready)
		if err != nil {
			_ = json.NewEncoder(pipe).Encode(report{Error: err.Error()}) // the pipe is closed if the daemon was ready once
		}
		return err
	}
	return run(ctx, cfg, ready)
}

func run(ctx context.Context, cfg Config, ready func(*api.Node) error) error {
	gateway.LimitMemory()
	d, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	node, err := d.Node(ctx)
	if err == nil {
		// The listeners are open, so that whoever hears of this may call at once.
		err = ready(&node)
	}
	if err == nil {
		err = d.Serve(ctx)
	}
	return errors.Join(err, d.Close())
}

// Detach starts this program again with args, in the background and in a session of its own, and returns when it serves.
func Detach(ctx context.Context, p Paths, args []string) (*api.Node, error) {
	if err := p.roomForFirst(); err != nil {
		return nil, err
	}
	made, err := makeDirs(p.Data) // for the log; the daemon makes the other
	if err != nil {
		return nil, err
	}
	node, err := detach(ctx, p, args)
	if errors.As(err, new(startError)) {
		made.remove(p.Data) // the daemon has removed everything else, and the error says all that the log does
	}
	return node, err
}

// startError is the report of a daemon that could not start.
type startError string

func (e startError) Error() string { return string(e) }

// errDied says that a daemon ended without a report.
var errDied = errors.New("the daemon ended before it served")

func detach(ctx context.Context, p Paths, args []string) (*api.Node, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	defer r.Close()
	// ExtraFiles begin at descriptor 3. The last flag on the command line wins.
	args = append(args[:len(args):len(args)], "--detach=false", "--"+ReadyFlag+"="+strconv.Itoa(3))
	child := exec.Command(self, args...)
	child.Stdout, child.Stderr, child.ExtraFiles = log, log, []*os.File{w}
	child.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	err = child.Start()
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	node, err := awaitReady(ctx, r, p)
	if err != nil {
		_ = child.Process.Signal(unix.SIGTERM)
		_ = child.Wait()
		return nil, err
	}
	return node, child.Process.Release()
}

func awaitReady(ctx context.Context, r *os.File, p Paths) (*api.Node, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.Close() })
	defer stop()
	var said report
	err := json.NewDecoder(r).Decode(&said)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("interrupted while the daemon was starting: `%s` removes what it left: %w", p.Command("down"), ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("%w: see %s", errDied, p.Log())
	}
	if said.Error != "" {
		return nil, startError(said.Error)
	}
	return said.Node, nil
}
