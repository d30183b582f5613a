package coap

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/ikernels/coapjwt"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// A secret is a guard's key.
type secret struct {
	key []byte
	dir string // has it in a file
}

func newSecret() (s secret, err error) {
	s.key = newKey()
	if s.dir, err = os.MkdirTemp("", "lambdanic-bench-"); err != nil {
		return s, fmt.Errorf("make a directory for the key: %w", err)
	}
	if err := os.WriteFile(s.file(), s.key, 0o600); err != nil {
		return s, fmt.Errorf("write the key: %w", err)
	}
	return s, nil
}

func (s *secret) file() string { return filepath.Join(s.dir, "key") }

func (s *secret) remove() error { return os.RemoveAll(s.dir) }

// attach puts a guard that has the key in front of a server behind the pair.
func (s *secret) attach(p *link.Pair, to demux.Server) (g *coapjwt.Guard, err error) {
	to.Mode = xdp.ModeNative
	err = p.In(func() error {
		g, err = coapjwt.Attach(coapjwt.Options{Server: to, Keys: []api.IkernelKey{{File: s.file()}}})
		return err
	})
	return g, err
}

// newKey is a random one that can be an argument, too.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return []byte(hex.EncodeToString(key))
}

// Where the parts of a request are that tell it from others.
const (
	messageAt = 2
	tokenAt   = 4
)

// claims make tokens of 125 bytes, of which 81 are signed.
var claims = jwt.MapClaims{"sub": "sensor-17", "iat": 1700000}

// longClaims make tokens that are 40 % larger, of 175 bytes.
var longClaims = jwt.MapClaims{"sub": "sensor-17", "iat": 1700000, "iss": "https://sensors.example.com/"}

func token(key []byte, claims jwt.MapClaims) (string, error) {
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text, nil
}

// request is one with a token by a key.
func request(key []byte, claims jwt.MapClaims) ([]byte, error) {
	text, err := token(key, claims)
	if err != nil {
		return nil, err
	}
	payload, err := cbor.Marshal(map[string]any{"token": text, "body": map[string]any{"celsius": 21.5}})
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	// Confirmable, with a token of four bytes; POST; what tells it from others; /readings; the marker.
	head := append([]byte{0x44, 2, 0, 0, 0, 0, 0, 0, 0xb8}, "readings\xff"...)
	return append(head, payload...), nil
}
