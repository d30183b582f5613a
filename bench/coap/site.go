package coap

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/ikernels/coapjwt"
	"github.com/lambdanic/lambdanic/internal/child"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// port is that of CoAP.
const port = 5683

// A site is the server behind a pair.
type site struct {
	pair          *link.Pair
	dir           string // has the key
	cmd           *exec.Cmd
	ended         <-chan struct{} // nil where it was not started
	valid, forged []byte          // requests
}

// newSite starts the server that the tests of coap-jwt have, which make bench installs.
func newSite(_ context.Context, p *link.Pair, o measure.Options) (s *site, err error) {
	s = &site{pair: p}
	if s.dir, err = os.MkdirTemp("", "lambdanic-bench-"); err != nil {
		return nil, fmt.Errorf("make a directory for the key: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	key, other := newKey(), newKey()
	if err := os.WriteFile(s.keyFile(), key, 0o600); err != nil {
		return nil, fmt.Errorf("write the key: %w", err)
	}
	if s.valid, err = request(key); err != nil {
		return nil, err
	}
	if s.forged, err = request(other); err != nil {
		return nil, err
	}
	script := filepath.Join(o.Lambdas, "../ikernels/coapjwt/testdata/node/server.js")
	s.cmd = exec.Command("node", script, p.Peer.Addr.String(), fmt.Sprint(port), string(key))
	return s, s.start()
}

// newKey is a random one that can be an argument, too.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return []byte(hex.EncodeToString(key))
}

func (s *site) keyFile() string { return filepath.Join(s.dir, "key") }

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
	return os.RemoveAll(s.dir)
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
	var g *coapjwt.Guard
	if err := s.pair.In(func() (err error) {
		g, err = coapjwt.Attach(coapjwt.Options{Server: demux.Server{Port: port, Mode: xdp.ModeNative}, Keys: []api.IkernelKey{{File: s.keyFile()}}})
		return err
	}); err != nil {
		return err
	}
	return errors.Join(f(), g.Close())
}

// Where the parts of a request are that tell it from others.
const (
	messageAt = 2
	tokenAt   = 4
)

// request is one with a token by a key, of which 81 bytes are signed.
func request(key []byte) ([]byte, error) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "sensor-17", "iat": 1700000}).SignedString(key)
	if err != nil {
		return nil, fmt.Errorf("sign a token: %w", err)
	}
	payload, err := cbor.Marshal(map[string]any{"token": token, "body": map[string]any{"celsius": 21.5}})
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	// Confirmable, with a token of four bytes; POST; what tells it from others; /readings; the marker.
	head := append([]byte{0x44, 2, 0, 0, 0, 0, 0, 0, 0xb8}, "readings\xff"...)
	return append(head, payload...), nil
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
