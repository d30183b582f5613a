package coapjwt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// text is a string in CBOR, one of parts where there are several.
func text(parts ...string) []byte {
	if len(parts) == 1 {
		return cborHead(3, len(parts[0]), []byte(parts[0]))
	}
	out := []byte{0x7f}
	for _, p := range parts {
		out = append(out, text(p)...)
	}
	return append(out, 0xff)
}

// cborHead is an item's head and what is behind it.
func cborHead(major byte, value int, rest ...[]byte) []byte {
	var out []byte
	switch {
	case value < 24:
		out = []byte{major<<5 | byte(value)}
	case value < 256:
		out = []byte{major<<5 | 24, byte(value)}
	default:
		out = []byte{major<<5 | 25, byte(value >> 8), byte(value)}
	}
	return append(out, bytes.Join(rest, nil)...)
}

// mapOf is a map of known length, indefiniteMap one without.
func mapOf(items ...[]byte) []byte { return cborHead(5, len(items)/2, items...) }
func indefiniteMap(items ...[]byte) []byte {
	return append(append([]byte{0xbf}, bytes.Join(items, nil)...), 0xff)
}

// TestPayloads checks payloads of certain forms.
func TestPayloads(t *testing.T) {
	b := newBench(t, 1)
	good := sign(t, b.secrets[0], claims)
	long := signRaw(b.secrets[0], usual, "{"+strings.Repeat(" ", 700)+"}")
	key, body, token, one := text("token"), text("body"), text(good), []byte{1}
	nested := func(depth int) []byte {
		return append(bytes.Repeat([]byte{0x81}, depth), 0)
	}
	hex := func(bytes ...byte) []byte { return bytes }
	const (
		passed, payload = GuardCjVerdictCJ_PASSED, GuardCjVerdictCJ_PAYLOAD
		none            = GuardCjVerdictCJ_NO_TOKEN
	)
	for name, c := range map[string]struct {
		payload []byte
		want    GuardCjVerdict
	}{
		"a map":                         {mapOf(key, token, body, one), passed},
		"the other order":               {mapOf(body, one, key, token), passed},
		"an indefinite map":             {indefiniteMap(body, one, key, token), passed},
		"no body":                       {mapOf(key, token), passed},
		"a token of parts":              {mapOf(key, text(good[:7], "", good[7:50], good[50:])), passed},
		"a token of one part":           {mapOf(key, append(append([]byte{0x7f}, token...), 0xff)), passed},
		"a long token of parts":         {mapOf(key, text(long[:500], long[500:]), body, one), passed},
		"keys that are numbers":         {mapOf(one, one, hex(0x20), one, hex(0x19, 1, 0), one, key, token), passed},
		"other keys of five letters":    {mapOf(text("tokem"), one, text("Token"), one, key, token), passed},
		"a head that is longer":         {mapOf(hex(0x79, 0, 5, 't', 'o', 'k', 'e', 'n'), token), passed},
		"a head with eight bytes":       {append(hex(0xbb, 0, 0, 0, 0, 0, 0, 0, 1), append(key, token...)...), passed},
		"a token within the body":       {mapOf(body, mapOf(key, one), key, token), passed},
		"a tagged body":                 {mapOf(body, hex(0xc1, 0x1a, 1, 2, 3, 4), key, token), passed},
		"a body with two tags":          {mapOf(body, hex(0xd9, 0xd9, 0xf7, 0xc1, 0x81, 1), key, token), passed},
		"floating point":                {mapOf(body, hex(0x83, 0xf9, 1, 2, 0xfa, 1, 2, 3, 4, 0xfb, 1, 2, 3, 4, 5, 6, 7, 8), key, token), passed},
		"simple values":                 {mapOf(body, hex(0x84, 0xf4, 0xf6, 0xe0, 0xf8, 0x20), key, token), passed},
		"indefinite arrays and strings": {mapOf(body, hex(0x9f, 0x5f, 0x41, 1, 0x40, 0xff, 0x7f, 0xff, 0x9f, 0xff, 0xbf, 0xff, 0xff), key, token), passed},
		"empty arrays and maps":         {mapOf(body, hex(0x83, 0x80, 0xa0, 0x81, 0x80), key, token), passed},
		"arrays as deep as may be":      {mapOf(body, nested(int(GuardCjLimitCJ_DEPTH)-1), key, token), passed},
		"arrays one deeper":             {mapOf(body, nested(int(GuardCjLimitCJ_DEPTH)), key, token), payload},
		"many items":                    {mapOf(body, cborHead(4, 1500, make([]byte, 1500)), key, token), passed},

		"no token":                     {mapOf(body, one), none},
		"an empty map":                 {mapOf(), none},
		"an empty indefinite map":      {indefiniteMap(), none},
		"a token in the body only":     {mapOf(body, mapOf(key, token)), none},
		"two tokens":                   {mapOf(key, token, key, token), payload},
		"two tokens, one of them null": {mapOf(key, token, key, hex(0xf6)), payload},
		"two tokens, a longer head":    {mapOf(key, token, hex(0x78, 5, 't', 'o', 'k', 'e', 'n'), token), payload},
		"the key in parts":             {mapOf(text("to", "ken"), token), payload},
		"another key in parts":         {mapOf(text("bo", "dy"), one, key, token), payload},
		"the key in bytes":             {mapOf(cborHead(2, 5, []byte("token")), token), payload},
		"a tagged key":                 {mapOf(append([]byte{0xc1}, key...), token), payload},
		"an array for a key":           {mapOf(append([]byte{0x81}, key...), token), payload},
		"null for a key":               {mapOf(hex(0xf6), one, key, token), payload},
		"the token in bytes":           {mapOf(key, cborHead(2, len(good), []byte(good))), payload},
		"a tagged token":               {mapOf(key, append([]byte{0xc1}, token...)), payload},
		"a number for a token":         {mapOf(key, one), payload},
		"parts of bytes":               {mapOf(key, hex(0x7f, 0x41, 'a', 0xff)), payload},
		"parts of parts":               {mapOf(key, hex(0x7f, 0x7f, 0x61, 'a', 0xff, 0xff)), payload},
		"an array":                     {cborHead(4, 2, key, token), payload},
		"a tagged map":                 {append([]byte{0xd9, 0xd9, 0xf7}, mapOf(key, token)...), payload},
		"something behind":             {append(mapOf(key, token), 0), payload},
		"a break behind":               {append(mapOf(key, token), 0xff), payload},
		"an odd map":                   {indefiniteMap(key, token, body), payload},
		"a break in a map":             {append([]byte{0xa1}, append(key, 0xff)...), payload},
		"a break behind a tag":         {mapOf(key, token, body, hex(0x9f, 0xc1, 0xff)), payload},
		"an indefinite number":         {mapOf(key, token, body, hex(0x1f)), payload},
		"an indefinite tag":            {mapOf(key, token, body, hex(0xdf, 1)), payload},
		"a reserved head":              {mapOf(key, token, body, hex(0x1c)), payload},
		"a simple value in two bytes":  {mapOf(key, token, body, hex(0xf8, 0x1f)), payload},
		"too many items":               {append(hex(0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), append(key, token...)...), payload},
		"items that overflow":          {append(hex(0xbb, 0x80, 0, 0, 0, 0, 0, 0, 1), append(key, token...)...), payload},
		"a string beyond the end":      {mapOf(key, token, body, hex(0x7a, 0xff, 0xff, 0xff, 0xff, 'a')), payload},
		"a longer one":                 {mapOf(key, token, body, hex(0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), payload},
		"a token beyond the end":       {mapOf(key, token)[:100], payload},
		"the key at the end":           {append([]byte{0xa1}, key...), payload},
		"half of the key":              {append([]byte{0xa1}, key[:3]...), payload},
		"JSON":                         {[]byte(`{"token":"` + good + `"}`), payload},
		"text":                         {token, payload},
		"a byte":                       {hex(0xff), payload},
	} {
		b.expect(name, b.post(c.payload), c.want)
	}
	for i, whole := 0, mapOf(body, hex(0x9f, 0x82, 1, 0x7f, 0x61, 'a', 0xff, 0xff), key, token); i < len(whole); i++ {
		if i > 0 {
			b.expect(fmt.Sprintf("%d bytes of it", i), b.post(whole[:i]), payload)
		}
	}
}

// TestRandomPayloads compares with fxamacker/cbor what passes: random payloads, and each of them damaged.
func TestRandomPayloads(t *testing.T) {
	b := newBench(t, 1)
	good := sign(t, b.secrets[0], claims)
	passed, refused := 0, 0
	for range 3000 {
		members := map[string]any{"token": good, "body": b.any(0)}
		for range b.random.IntN(3) {
			members[string(b.letters(b.random.IntN(8)))] = b.any(0)
		}
		whole := b.inAnyForm(members)
		for i := range 5 {
			if i > 0 {
				whole = b.damageBytes(whole)
			}
			want, sure := readsAs(whole, good)
			if !sure {
				continue
			}
			if got := b.judge(b.post(whole)); (got == GuardCjVerdictCJ_PASSED) != want {
				t.Fatalf("%x: verdict %s, but fxamacker/cbor finds the token: %v", whole, verdictName(got), want)
			}
			if want {
				passed++
			} else {
				refused++
			}
		}
	}
	if passed < 3000 || refused < 3000 {
		t.Errorf("%d passed and %d were refused: too few of either", passed, refused)
	}
}

// any is a random value.
func (b *bench) any(depth int) any {
	switch n := b.random.IntN(9); {
	case n == 0:
		return b.random.Uint64() >> b.random.IntN(64)
	case n == 1:
		return -b.random.Int64() >> b.random.IntN(64)
	case n == 2:
		return b.random.NormFloat64()
	case n == 3:
		return b.random.IntN(2) == 0
	case n == 4:
		return b.bytes(b.random.IntN(40))
	case n == 5 && depth < 4:
		return cbor.Tag{Number: 1000 + b.random.Uint64N(1e6), Content: b.any(depth + 1)}
	case n == 6 && depth < 4:
		list := []any{}
		for range b.random.IntN(5) {
			list = append(list, b.any(depth+1))
		}
		return list
	case n == 7 && depth < 4:
		members := map[string]any{}
		for range b.random.IntN(4) {
			members[string(b.letters(b.random.IntN(6)))] = b.any(depth + 1)
		}
		return members
	}
	return string(b.letters(b.random.IntN(300)))
}

// inAnyForm encodes a map, which may be indefinite.
func (b *bench) inAnyForm(members map[string]any) []byte {
	if b.random.IntN(2) == 0 {
		return encodeCBOR(b.t, members)
	}
	out := []byte{0xbf}
	for key, value := range members {
		out = append(append(out, encodeCBOR(b.t, key)...), encodeCBOR(b.t, value)...)
	}
	return append(out, 0xff)
}

// damageBytes changes a byte.
func (b *bench) damageBytes(all []byte) []byte {
	at := b.random.IntN(len(all))
	if b.random.IntN(2) == 0 {
		at = b.random.IntN(min(len(all), 12))
	}
	c := []byte{byte(b.random.IntN(256))}
	if b.random.IntN(2) == 0 {
		c = [][]byte{{0xff}, {0x7f}, {0x9f}, {0xbf}, {0xa0}, {0x81}, {0x60}, {0xc1}, {0xf6}}[b.random.IntN(9)]
	}
	switch b.random.IntN(4) {
	case 0:
		return bytes.Join([][]byte{all[:at], c, all[at:]}, nil)
	case 1:
		if len(all) > 2 {
			return bytes.Join([][]byte{all[:at], all[at+1:]}, nil)
		}
	}
	return bytes.Join([][]byte{all[:at], c, all[at+1:]}, nil)
}

// decoding decodes as leniently as the NIC program does.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: int(GuardCjLimitCJ_DEPTH), IntDec: cbor.IntDecConvertNone,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// readsAs says whether a payload has this token and no key that the NIC program refuses. It is not sure where a key is there twice,
// nor where what is tagged is not as its tag says.
func readsAs(payload []byte, token string) (reads, sure bool) {
	if payload[0]>>5 != 5 {
		return false, true // such as a tagged map
	}
	var members map[any]cbor.RawMessage
	err := decoding.Unmarshal(payload, &members)
	var twice *cbor.DupMapKeyError
	if err != nil || members == nil {
		return false, !errors.As(err, &twice) && (err == nil || !strings.HasPrefix(err.Error(), "cbor: tag number"))
	}
	for key := range members {
		switch key.(type) {
		case string, uint64, int64:
		default:
			return false, true
		}
	}
	var got string
	return decoding.Unmarshal(members["token"], &got) == nil && got == token && members["token"][0]>>5 == 3, true
}
