package suite

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Memcached is a real one, over TCP and UDP.
type Memcached struct {
	Port uint16
	cmd  *exec.Cmd
}

// StartMemcached starts one that listens on the addresses, with values in it.
func StartMemcached(ctx context.Context, values map[string][]byte, addrs ...netip.Addr) (*Memcached, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var listen []string
	for _, a := range addrs {
		listen = append(listen, a.String())
	}
	p := strconv.Itoa(int(port))
	m := &Memcached{Port: port}
	m.cmd = exec.Command("memcached", "-l", strings.Join(listen, ","), "-p", p, "-U", p, "-u", "nobody", "-t", "2")
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start memcached: %w: install package memcached", err)
	}
	if err := m.fill(ctx, values, netip.AddrPortFrom(addrs[0], port).String()); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// fill sets the values by TCP as soon as memcached answers.
func (m *Memcached) fill(ctx context.Context, values map[string][]byte, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := memcache.New(addr)
	for client.Ping() != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for memcached at %s: %w", addr, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	for key, value := range values {
		if err := client.Set(&memcache.Item{Key: key, Value: value}); err != nil {
			return fmt.Errorf("fill memcached: %w", err)
		}
	}
	return client.Close()
}

// Stop ends it.
func (m *Memcached) Stop() error {
	err := m.cmd.Process.Kill()
	_ = m.cmd.Wait() // says that it was killed
	return err
}

func freePort() (uint16, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port), nil
}
