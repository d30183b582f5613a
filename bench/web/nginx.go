package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lambdanic/lambdanic/internal/child"
)

// Nginx is a real nginx that answers with one page.
type Nginx struct {
	URL string
	dir string
	cmd *exec.Cmd

	ended <-chan struct{} // nil where it was not started
}

// The configuration of a server that only serves the page: no log, a worker for each CPU, persistent connections.
const nginxConfig = `daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log;
worker_processes auto;
events {}
http {
	access_log off;
	keepalive_requests 1000000000;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		root %[1]s;
	}
}
`

// StartNginx starts an nginx for the page. The error is exec.ErrNotFound, wrapped, where nginx is not installed.
func StartNginx(ctx context.Context, page []byte) (n *Nginx, err error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		return nil, fmt.Errorf("start nginx: %w: install package nginx-light", err)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	n = &Nginx{URL: "http://" + addr + "/page"}
	if n.dir, err = os.MkdirTemp("", "lambdanic-nginx-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop())
		}
	}()
	// Its workers run as another user, who has to read the page.
	err = errors.Join(os.Chmod(n.dir, 0o755), os.WriteFile(filepath.Join(n.dir, "page"), page, 0o644),
		os.WriteFile(filepath.Join(n.dir, "nginx.conf"), fmt.Appendf(nil, nginxConfig, n.dir, addr), 0o600))
	if err != nil {
		return nil, err
	}
	n.cmd = exec.Command(binary, "-p", n.dir, "-e", "error.log", "-c", "nginx.conf")
	var said strings.Builder
	n.cmd.Stderr = &said
	if n.ended, err = child.Start(n.cmd, syscall.SIGTERM); err != nil { // on SIGTERM it ends its workers
		n.ended = nil
		return nil, fmt.Errorf("start nginx: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err = Get(ctx, n.URL); err == nil {
			return n, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, fmt.Errorf("nginx does not answer: %w: %s", err, said.String())
		}
	}
}

// Stop ends it, and removes what it wrote.
func (n *Nginx) Stop() error {
	if n.ended != nil {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // no error unless it has ended already
		<-n.ended
	}
	return os.RemoveAll(n.dir)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
