// Package sandbox runs a tool on untrusted input. C source reads files: #include, #embed and .incbin see whatever the compiler sees. So the
// tool runs under bubblewrap as an unprivileged user in its own namespaces: an empty root with a few read-only directories, no network, no
// devices, no /proc, and limits on time, memory, output and processes.
//
// Input goes in as bytes and output comes back on a pipe, so that nothing is ever written to the host's disk.
package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"
)

var (
	// ErrUnavailable says that this machine cannot make a sandbox.
	ErrUnavailable = errors.New("sandbox unavailable")
	// ErrLimit says that the tool was stopped at one of its limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrBusy says that the machine's other work may be the reason.
	ErrBusy = errors.New("the machine may be busy or short of memory, try again")
)

// ExitError says that the tool ran and failed.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// File is a file that the tool finds in its sandbox.
type File struct {
	Path string // absolute
	Data []byte
}

// Limits bound one run.
type Limits struct {
	Wall      time.Duration
	CPU       time.Duration // per process, in whole seconds
	Memory    int64         // bytes of address space per process
	Scratch   int64         // bytes that fit in /tmp
	Output    int64         // bytes on standard output, and as many on standard error
	Processes int
}

// Command is one run of a tool.
type Command struct {
	Args     []string // Args[0] is an absolute path
	ReadOnly []string // paths of the host that the tool sees, where they exist
	Files    []File
	Dir      string
	Limits   Limits
}

// nobody is an ID without an account: Debian reserves 65000 to 65533 (Debian Policy, section 9.2.2).
const nobody = 65437

// Tools keep a CPU busy, and their time limits do not account for other tools. So at most one runs per CPU.
var (
	slotCount = int64(runtime.NumCPU())
	slots     = semaphore.NewWeighted(slotCount)
)

// outputLimit bounds the wait for the end of the output after the tool has ended. Whatever holds it open ends with the sandbox, but a busy
// machine may take a while.
const outputLimit = time.Minute

// Run runs c, when it is its turn, and returns what it printed. The error is an ExitError if the tool itself failed, ErrLimit if it was
// stopped, with ErrBusy if its input may not be the reason, and ErrUnavailable if there is no sandbox. The last three are wrapped with what
// to do.
func Run(ctx context.Context, c Command) (stdout, stderr []byte, err error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: bwrap is missing: install the package bubblewrap", ErrUnavailable)
	}
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: prlimit is missing: install the package util-linux", ErrUnavailable)
	}
	if err := slots.Acquire(ctx, 1); err != nil {
		return nil, nil, fmt.Errorf("wait for other compilations: %w", err)
	}
	defer slots.Release(1)
	files, err := memfds(c.Files)
	defer closeAll(files)
	if err != nil {
		return nil, nil, err
	}

	bounded, cancel := context.WithTimeoutCause(ctx, c.Limits.Wall, fmt.Errorf("%w: not done after %v: %w", ErrLimit, c.Limits.Wall, ErrBusy))
	defer cancel()
	out := &boundedBuffer{left: c.Limits.Output, full: cancel}
	diag := &boundedBuffer{left: c.Limits.Output, full: cancel}
	cmd := exec.CommandContext(bounded, bwrap, c.arguments(prlimit)...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin", "TMPDIR=/tmp"}
	cmd.ExtraFiles = files
	cmd.Stdout, cmd.Stderr = out, diag
	cmd.WaitDelay = outputLimit
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}

	// bwrap dies with the thread that started it, so this thread has to stay until bwrap ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	switch {
	case out.overflow || diag.overflow:
		return nil, nil, fmt.Errorf("%w: more than %d bytes of output", ErrLimit, c.Limits.Output)
	case bounded.Err() != nil:
		return nil, nil, context.Cause(bounded)
	}
	return out.kept.Bytes(), diag.kept.Bytes(), c.classify(err, diag.kept.Bytes())
}

func seconds(d time.Duration) int { return int(d.Seconds()) }

// arguments are bwrap's arguments. The files are its descriptors from 3 on.
func (c *Command) arguments(prlimit string) []string {
	args := []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--uid", strconv.Itoa(nobody), "--gid", strconv.Itoa(nobody),
		"--hostname", "lambda", "--die-with-parent", "--new-session",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
	}
	for _, path := range append([]string{prlimit}, c.ReadOnly...) {
		args = append(args, "--ro-bind-try", path, path)
	}
	for i, f := range c.Files {
		args = append(args, "--perms", "0444", "--file", strconv.Itoa(3+i), f.Path)
	}
	args = append(args,
		"--size", strconv.FormatInt(c.Limits.Scratch, 10), "--tmpfs", "/tmp",
		"--remount-ro", "/", "--chdir", c.Dir, "--",
		// The limits are set inside: in a fresh user namespace, processes are counted from zero.
		prlimit, "--core=0", "--nofile=256",
		fmt.Sprintf("--as=%d", c.Limits.Memory),
		fmt.Sprintf("--cpu=%d:%d", seconds(c.Limits.CPU), seconds(c.Limits.CPU)+1), // the hard limit kills, as does a lack of memory
		fmt.Sprintf("--fsize=%d", max(c.Limits.Output, c.Limits.Scratch)),
		fmt.Sprintf("--nproc=%d", c.Limits.Processes),
		"--")
	return append(args, c.Args...)
}

// classify tells a failure of the tool from one of the sandbox.
func (c *Command) classify(err error, diag []byte) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%w: the output did not end within %v of the tool: %w", ErrLimit, outputLimit, ErrBusy)
	case !errors.As(err, &exit):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() { // bwrap itself, not the tool
		return fmt.Errorf("%w: killed from outside the sandbox (%v): %w", ErrLimit, status.Signal(), ErrBusy)
	}
	line, _, _ := strings.Cut(string(diag), "\n")
	for _, wrapper := range []string{"bwrap: ", "prlimit: "} {
		if strings.HasPrefix(line, wrapper) {
			return fmt.Errorf("%w: %s (unprivileged user namespaces have to be allowed)", ErrUnavailable, line)
		}
	}
	// bwrap reports a child that died of signal N as status 128+N, as shells do.
	switch code := exit.ExitCode(); syscall.Signal(code - 128) {
	case syscall.SIGXCPU:
		return fmt.Errorf("%w: more than %d s of CPU time: make the source smaller, or build it on a faster machine", ErrLimit, seconds(c.Limits.CPU))
	case syscall.SIGKILL:
		return fmt.Errorf("%w: killed in the sandbox: %w", ErrLimit, ErrBusy)
	case syscall.SIGXFSZ:
		return fmt.Errorf("%w: too large a file", ErrLimit)
	default:
		return &ExitError{Code: code}
	}
}

// memfds copies the files into anonymous memory, from where bwrap copies them on.
func memfds(files []File) ([]*os.File, error) {
	var fds []*os.File
	for _, f := range files {
		fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
		if err != nil {
			return fds, fmt.Errorf("sandbox: make %s: %w", f.Path, err)
		}
		file := os.NewFile(uintptr(fd), f.Path)
		fds = append(fds, file)
		if _, err := file.Write(f.Data); err != nil {
			return fds, fmt.Errorf("sandbox: fill %s: %w", f.Path, err)
		}
		if _, err := file.Seek(0, 0); err != nil {
			return fds, fmt.Errorf("sandbox: rewind %s: %w", f.Path, err)
		}
	}
	return fds, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// boundedBuffer keeps what is written, and stops the writer when it is too much.
type boundedBuffer struct {
	kept     bytes.Buffer // not embedded: io.Copy would find its ReadFrom, and go past Write
	left     int64
	full     func()
	overflow bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		b.overflow = true
		b.full()
		return 0, ErrLimit
	}
	return b.kept.Write(p)
}
