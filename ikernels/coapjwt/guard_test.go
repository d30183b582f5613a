package coapjwt

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// TestPackets has the program look at nothing but datagrams to the server.
func TestPackets(t *testing.T) {
	b := newBench(t, 1)
	forged := b.with(sign(t, b.bytes(32), claims))
	six := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")}
	for name, c := range map[string]struct {
		frame []byte
		want  GuardCjVerdict
	}{
		"IPv4":          {frame(t, client, server, port, forged), GuardCjVerdictCJ_FORGED},
		"IPv6":          {frame(t, six[1], six[0], port, forged), GuardCjVerdictCJ_FORGED},
		"another port":  {frame(t, client, server, port+1, forged), verdictNone},
		"another IPv4":  {frame(t, server, client, port, forged), verdictNone},
		"another IPv6":  {frame(t, six[0], six[1], port, forged), verdictNone},
		"nothing in it": {frame(t, client, server, port, nil), GuardCjVerdictCJ_MALFORMED},
		"too long":      {frame(t, client, server, port, make([]byte, GuardCjLimitCJ_MESSAGE+1)), GuardCjVerdictCJ_LARGE},
	} {
		if got := b.judgeFrame(c.frame); got != c.want {
			t.Errorf("%s: verdict %s, want %s", name, verdictName(got), verdictName(c.want))
		}
	}
}

// TestKeys uses keys with names and without.
func TestKeys(t *testing.T) {
	b := newBench(t, 0)
	a, c, unnamed := b.newKey("a"), b.newKey("c.2026-11_b"), b.newKey("")
	signed := func(key int, kid any) []byte {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
		if kid != nil {
			token.Header["kid"] = kid
		}
		s, err := token.SignedString(b.secrets[key])
		if err != nil {
			t.Fatal(err)
		}
		return b.with(s)
	}
	const passed, forged = GuardCjVerdictCJ_PASSED, GuardCjVerdictCJ_FORGED
	check := func(what string, key int, kid any, want GuardCjVerdict) {
		t.Helper()
		b.expect(what, signed(key, kid), want)
	}
	b.setKeys(a, c, unnamed)
	for key, kid := range []any{"a", "c.2026-11_b", "none of them"} {
		check("a token by its key's name", key, kid, passed)
		check("a token without a name", key, nil, passed)
		check("a token with an unknown name", key, "unknown", passed)
		check("a token with a number for a name", key, 7, passed)
	}
	check("a token with another key's name", 0, "c.2026-11_b", forged)
	check("a token of no name with a key's name", 2, "a", forged)
	b.setKeys(c)
	check("a token of a removed key", 0, "a", forged)
	check("a token of a removed key, without a name", 0, nil, forged)
	check("a token of a key that stays", 1, nil, passed)
	b.setKeys(unnamed, a)
	check("a token of a key that was added", 0, nil, passed)
	check("a token of another", 2, nil, passed)
}

// TestEight checks tokens of as many keys as there can be.
func TestEight(t *testing.T) {
	b := newBench(t, keysMax)
	for _, secret := range b.secrets {
		b.expect("a token", b.with(sign(t, secret, claims)), GuardCjVerdictCJ_PASSED)
	}
	b.expect("a forged token", b.with(sign(t, b.bytes(32), claims)), GuardCjVerdictCJ_FORGED)
}

// BenchmarkGuard times the whole program, by how many bytes are signed.
func BenchmarkGuard(b *testing.B) {
	for name, extra := range map[string]int{"81": 0, "256": 130, "1024": 706} {
		b.Run("signed="+name, func(b *testing.B) {
			g := newBench(b, 1)
			c := jwt.MapClaims{"sub": claims["sub"], "iat": claims["iat"]}
			if extra > 0 {
				c["x"] = strings.Repeat("x", extra-7)
			}
			token := sign(b, g.secrets[0], c)
			_, took, err := g.objects.CjGuard.Benchmark(frame(b, client, server, port, g.with(token)), b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds()), "ns/packet")
			b.ReportMetric(float64(strings.LastIndexByte(token, '.')), "bytes-signed")
		})
	}
}
