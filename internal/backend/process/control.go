package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// controlTimeout bounds one command. A process that hangs inside a lambda frees itself after a second.
var controlTimeout = 5 * time.Second

// control sends one command to a process and returns what follows "ok".
func control(ctx context.Context, socket, format string, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := fmt.Fprintf(conn, format+"\n", args...); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("lambda-host did not answer: %w", err)
	}
	line = strings.TrimSuffix(line, "\n")
	if rest, ok := strings.CutPrefix(line, "error "); ok {
		return "", fmt.Errorf("lambda-host: %s", rest)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "ok")), nil
}

// askStatus asks a process what it runs.
func askStatus(ctx context.Context, socket string) (s backend.Status, err error) {
	text, err := control(ctx, socket, "stats")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("read statistics of lambda-host: %w", err)
	}
	return s, nil
}

// listener returns the process that listens on a control socket.
func listener(socket string) (pid int, err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			pid = int(cred.Pid)
		}
	})
	if cerr != nil {
		return 0, cerr
	}
	return pid, err
}
