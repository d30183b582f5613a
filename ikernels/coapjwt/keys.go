package coapjwt

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// What a key may be.
const (
	keysMax   = int(GuardCjLimitCJ_KEYS)
	secretMin = sha256.Size // bytes (RFC 7518 section 3.2)
	secretMax = 4096
)

const secretsSize = uint32(unsafe.Sizeof(GuardCjSecrets{}))

// readKeys reads the keys from their files.
func readKeys(keys []api.IkernelKey) (*GuardCjSecrets, error) {
	if len(keys) == 0 || len(keys) > keysMax {
		return nil, fmt.Errorf("coap-jwt takes 1 to %d keys, not %d: name their files with --key", keysMax, len(keys))
	}
	all := &GuardCjSecrets{Count: uint32(len(keys))}
	for i, k := range keys {
		secret, err := readSecret(k.File)
		if err != nil {
			return nil, err
		}
		all.Keys[i] = prepare(secret)
		all.Keys[i].Kid = nameHash(k.ID)
	}
	return all, nil
}

// readSecret reads a key. Neither it nor a part of it is in an error.
func readSecret(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would block
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a key: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read a key: %s is not a file", file)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("read a key: others may read or write %s: run `chmod 600 %s`", file, file)
	}
	secret, err := io.ReadAll(io.LimitReader(f, secretMax+2))
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	secret = bytes.TrimSuffix(secret, []byte("\n")) // as an editor leaves it
	if len(secret) < secretMin || len(secret) > secretMax {
		return nil, fmt.Errorf("read a key: %s has not %d to %d bytes, as keys for HS256 have", file, secretMin, secretMax)
	}
	return secret, nil
}

// prepare begins HMAC (RFC 2104) by a key, as far as it does not depend on the text.
func prepare(secret []byte) (s GuardCjSecret) {
	if len(secret) > sha256.BlockSize {
		sum := sha256.Sum256(secret)
		secret = sum[:]
	}
	s.Inner, s.Outer = padded(secret, 0x36), padded(secret, 0x5c)
	return s
}

// padded is the state of SHA-256 after the key's block.
func padded(secret []byte, with byte) (state [8]uint32) {
	block := bytes.Repeat([]byte{with}, sha256.BlockSize)
	for i, b := range secret {
		block[i] ^= b
	}
	h := sha256.New()
	h.Write(block)
	all, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic(err) // it never fails
	}
	for i := range state {
		state[i] = binary.BigEndian.Uint32(all[len(stateMagic)+4*i:])
	}
	return state
}

// stateMagic begins what crypto/sha256 marshals; the state follows.
const stateMagic = "sha\x03"

// nameHash is by what the NIC program knows the name of a key; 0 where it has none.
func nameHash(name string) uint64 {
	if name == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
