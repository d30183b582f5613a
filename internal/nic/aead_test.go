package nic

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/seed"
)

// The methods of test/lambdas/aead.c.
const (
	aeadSeal = 0
	aeadOpen = 1
	aeadSum  = 2 // Poly1305 of whole blocks behind a key
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// aeadRequest is what the lambda takes.
func aeadRequest(key, nonce, ad, text []byte) []byte {
	return bytes.Join([][]byte{key, nonce, {byte(len(ad))}, ad, text}, nil)
}

// The vector of RFC 8439 section 2.8.2, in both directions.
func TestAEADVector(t *testing.T) {
	key := unhex(t, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f")
	nonce, ad := unhex(t, "070000004041424344454647"), unhex(t, "50515253c0c1c2c3c4c5c6c7")
	text := "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
	want := unhex(t, "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b"+
		"1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b"+
		"6116"+"1ae10b594f09e26a7e902ecbd0600691")
	bothPlaces(t, newTestNIC(t), fixture(t, "aead", backend.Service{}), func(t *testing.T, c *kvConn) {
		if status, got := c.response(aeadSeal, aeadRequest(key, nonce, ad, []byte(text))); status != api.StatusOK || got != string(want) {
			t.Errorf("sealed: status %d %x", status, got)
		}
		if status, got := c.response(aeadOpen, aeadRequest(key, nonce, ad, want)); status != api.StatusOK || got != text {
			t.Errorf("opened: status %d %q", status, got)
		}
	})
}

// For all lengths, the lambda computes the cipher of golang.org/x/crypto, and notices a single wrong bit.
func TestAEAD(t *testing.T) {
	bothPlaces(t, newTestNIC(t), fixture(t, "aead", backend.Service{}), func(t *testing.T, c *kvConn) {
		r := seed.Rand(t)
		for size := range 400 {
			if size > 200 {
				size = 200 + r.IntN(1000)
			}
			key, nonce := []byte(randomValue(r, 32)), []byte(randomValue(r, 12))
			ad, text := []byte(randomValue(r, r.IntN(60))), []byte(randomValue(r, size))
			cipher, err := chacha20poly1305.New(key)
			if err != nil {
				t.Fatal(err)
			}
			want := cipher.Seal(nil, nonce, text, ad)
			if status, got := c.response(aeadSeal, aeadRequest(key, nonce, ad, text)); status != api.StatusOK || got != string(want) {
				t.Fatalf("seal %d bytes with %d: status %d %x, want %x", len(text), len(ad), status, got, want)
			}
			request := aeadRequest(key, nonce, ad, want)
			if status, got := c.response(aeadOpen, request); status != api.StatusOK || got != string(text) {
				t.Fatalf("open %d bytes with %d: status %d %x, want %x", len(text), len(ad), status, got, text)
			}
			bit := r.IntN(8 * len(request))
			if bit/8 == 44 {
				continue // the length: changed, it would be another request
			}
			request[bit/8] ^= 1 << (bit % 8)
			if status, got := c.response(aeadOpen, request); status != api.StatusFailed || got != "" {
				t.Fatalf("with bit %d turned: status %d %x", bit, status, got)
			}
		}
	})
}

// The lambda of docs/encryption.md, with the default limits: it opens what x/crypto sealed, up to whole packets, with a key that the host
// wrote, and takes a new key when the host writes one.
func TestEncryptionGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/encryption.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```c\n")
	source, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the guide has no example")
	}
	a, err := buildFiles(map[string][]byte{"vault.c": []byte(source), api.SpecFile: []byte("name: vault\n")})
	if err != nil {
		t.Fatal(err)
	}
	n := newTestNIC(t)
	deploy(t, n, deployment(a, kvWorkload, 1))
	c := dialNIC(t, n.Addr())
	r := seed.Rand(t)
	table := make([]byte, 4*32)
	for round := range 8 {
		number := byte(round % 4)
		key, nonce := table[32*number:][:32], []byte(randomValue(r, 12))
		copy(key, randomValue(r, 32))
		if err := n.WriteObject(t.Context(), kvWorkload, "keys", table); err != nil {
			t.Fatal(err)
		}
		cipher, err := chacha20poly1305.New(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1, 1000, 1408 - 29} {
			text := []byte(randomValue(r, size))
			request := cipher.Seal(append([]byte{number}, nonce...), nonce, text, []byte{number})
			if status, got := c.response(0, request); status != api.StatusOK || got != string(text) {
				t.Errorf("key %d, %d bytes: status %d %x", number, size, status, got)
			}
			request[0] ^= 1
			if status, got := c.response(0, request); status != api.StatusBadRequest || got != "" {
				t.Errorf("%d bytes under another key: status %d %x", size, status, got)
			}
		}
	}
}

// poly1305 is RFC 8439 section 2.5 word for word, with integers of any size.
func poly1305(key, text []byte) []byte {
	number := func(little []byte) *big.Int {
		b := slices.Clone(little)
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	clamp, _ := new(big.Int).SetString("0ffffffc0ffffffc0ffffffc0fffffff", 16)
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 130), big.NewInt(5))
	r, sum := new(big.Int).And(number(key[:16]), clamp), new(big.Int)
	for block := range slices.Chunk(text, 16) {
		sum.Add(sum, number(append(slices.Clone(block), 1))).Mul(sum, r).Mod(sum, p)
	}
	tag := sum.Add(sum, number(key[16:])).FillBytes(make([]byte, 17))[1:]
	slices.Reverse(tag)
	return tag
}

// Sums around multiples of the modulus 2^130-5, where a missing reduction shows. With r = 1, they are the sums of the blocks.
func TestAEADReduction(t *testing.T) {
	bothPlaces(t, newTestNIC(t), fixture(t, "aead", backend.Service{}), func(t *testing.T, c *kvConn) {
		check := func(key, text []byte) {
			t.Helper()
			if _, got := c.response(aeadSum, slices.Concat(key, text)); got != string(poly1305(key, text)) {
				t.Errorf("Poly1305 of %x under %x: %x, want %x", text, key, got, poly1305(key, text))
			}
		}
		r := seed.Rand(t)
		key := append([]byte{1}, make([]byte, 31)...)
		ones := bytes.Repeat([]byte{0xff}, 16)
		for delta := range 16 {
			// Three blocks are 3·2^128 + x + y + z; 2^130 - 8 + delta in all, where y is 2^128 - 1 and z is 0.
			x := append([]byte{byte(0x100 - 7 + delta)}, ones[1:]...)
			if delta >= 7 {
				x = append([]byte{byte(delta - 7)}, make([]byte, 15)...)
			}
			check(key, slices.Concat(x, ones, make([]byte, 16)))
			check(key, slices.Concat(x, make([]byte, 16), make([]byte, 16)))
		}
		for range 300 {
			key, text := []byte(randomValue(r, 32)), []byte(randomValue(r, 16*r.IntN(60)))
			check(key, text)
			check(bytes.Repeat(ones, 2), bytes.Repeat(ones, len(text)/16))
		}
	})
}
