package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/internal/supervise"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// stop lets the process finish what it began, and ends it, if necessary by force. What it no longer begins goes to its successor, a
// process with so many workers; 0 for none.
func stop(ctx context.Context, p *supervise.Process, socket string, successor int) error {
	defer p.Close()
	drain := "drain"
	if successor > 0 {
		drain = fmt.Sprintf("drain %d", successor)
	}
	deadline := time.Now().Add(drainTime)
	for alive(p) && ctx.Err() == nil && time.Now().Before(deadline) {
		left, err := control(ctx, socket, "%s", drain)
		if err != nil || left == "0 messages 0 calls" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := control(ctx, socket, "quit"); err == nil {
		select {
		case <-p.Ended():
			return nil
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return p.Kill()
}

func alive(p *supervise.Process) bool {
	select {
	case <-p.Ended():
		return false
	default:
		return true
	}
}

// maxTasks has room for two processes with all the threads they may have: one that serves and one that replaces it. lambda-host's
// own limit always holds.
const maxTasks = 256

// spawn starts lambda-host.
func (b *Backend) spawn(args []string, group supervise.Cgroup, logFile string) (*supervise.Process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	group.LimitTasks(maxTasks)
	cmd := exec.Command(b.cfg.HostBinary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	p, err := supervise.Start(cmd, supervise.Options{Within: b.inNamespace, Cgroup: group})
	if err != nil {
		return nil, fmt.Errorf("start lambda-host: %w", err)
	}
	return p, nil
}

// try loads a shared library into a process of its own: if that crashes the dynamic linker, or never returns, the serving process
// is not affected.
func (in *instance) try(ctx context.Context, r record) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.b.cfg.HostBinary, append([]string{"--check", filepath.Join(in.dir, r.Object)}, r.Args...)...)
	cmd.Env = []string{}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the shared library does not load: %w: %s", errors.Join(err, ctx.Err()), bytes.TrimSpace(said))
	}
	return nil
}

// inNamespace starts a process in the configured network namespace: a child inherits that of the thread that starts it.
func (b *Backend) inNamespace(start func() error) error {
	if b.cfg.Netns == "" {
		return start()
	}
	target, err := netns.GetFromPath(b.cfg.Netns)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", b.cfg.Netns, err)
	}
	defer target.Close()
	return veth.In(target, start)
}
