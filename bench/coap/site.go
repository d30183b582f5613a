package coap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/internal/child"
	"github.com/lambdanic/lambdanic/internal/demux"
)

// port is that of CoAP.
const port = 5683

// A site is the server behind a pair.
type site struct {
	secret
	pair          *link.Pair
	cmd           *exec.Cmd
	ended         <-chan struct{} // nil where it was not started
	valid, forged []byte          // requests
}

// newSite starts the server that the tests of coap-jwt have, which make bench installs.
func newSite(p *link.Pair, o measure.Options) (s *site, err error) {
	s = &site{pair: p}
	if s.secret, err = newSecret(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.valid, err = request(s.key, claims); err != nil {
		return nil, err
	}
	if s.forged, err = request(newKey(), claims); err != nil {
		return nil, err
	}
	script := filepath.Join(o.Lambdas, "../ikernels/coapjwt/testdata/node/server.js")
	s.cmd = exec.Command("node", script, p.Peer.Addr.String(), fmt.Sprint(port), string(s.key))
	return s, s.start()
}

// start starts the server, and returns when it listens.
func (s *site) start() error {
	var said strings.Builder
	s.cmd.Stderr = &said
	_, err1 := s.cmd.StdinPipe() // at whose end the server ends
	out, err2 := s.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("start the CoAP server: %w", err)
	}
	err := s.pair.In(func() (err error) {
		s.ended, err = child.Start(s.cmd, syscall.SIGKILL)
		return err
	})
	if err != nil {
		s.ended = nil
		return fmt.Errorf("start the CoAP server: %w: install package nodejs", err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("start the CoAP server: %w: %s: run `make -C ikernels/coapjwt/testdata/node`", err, said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return nil
}

func (s *site) stop() error {
	if s.ended != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	return s.remove()
}

// alone calls f while nothing is in front of the server but the two instructions that pass a packet on.
func (s *site) alone(f func() error) error {
	pass, err := s.pair.PassPeer()
	if err != nil {
		return err
	}
	return errors.Join(f(), pass.Close())
}

// guarded calls f while the guard is attached.
func (s *site) guarded(f func() error) error {
	g, err := s.attach(s.pair, demux.Server{Port: port})
	if err != nil {
		return err
	}
	return errors.Join(f(), g.Close())
}

// dial makes clients' sockets.
func (s *site) dial(n int) (conns []net.Conn, err error) {
	for range n {
		conn, err := net.Dial("udp", netip.AddrPortFrom(s.pair.Peer.Addr, port).String())
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("make a client's socket: %w", err)
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		_ = c.Close()
	}
}
