package coapjwt

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

var encoding64 = base64.RawURLEncoding

// signRaw signs any header and claims.
func signRaw(secret []byte, header, claims string) string {
	text := encoding64.EncodeToString([]byte(header)) + "." + encoding64.EncodeToString([]byte(claims))
	return text + "." + mac(secret, text)
}

func mac(secret []byte, text string) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(text))
	return encoding64.EncodeToString(h.Sum(nil))
}

const usual = `{"alg":"HS256","typ":"JWT"}`

// TestLengths checks a token of every length, and that it does not pass with one bit changed.
func TestLengths(t *testing.T) {
	b := newBench(t, 1)
	for n := 2; n <= 750; n++ {
		for _, header := range []string{usual, `{"alg":"HS256" }`} {
			token := signRaw(b.secrets[0], header, `{`+strings.Repeat(" ", n-2)+`}`)
			signed := strings.LastIndexByte(token, '.')
			if signed > int(GuardCjLimitCJ_SIGNED) {
				b.expect(fmt.Sprintf("%d bytes", signed), b.with(token), GuardCjVerdictCJ_LARGE)
				continue
			}
			b.expect(fmt.Sprintf("%d bytes", signed), b.with(token), GuardCjVerdictCJ_PASSED)
			last := []byte(token)
			last[len(last)-2] ^= 1
			if b.judge(b.with(string(last))) == GuardCjVerdictCJ_PASSED {
				t.Errorf("%d bytes pass with another signature", signed)
			}
		}
	}
}

// accepts says whether golang-jwt accepts a token by one of the keys.
func (b *bench) accepts(token string) bool {
	var keys jwt.VerificationKeySet
	for _, s := range b.secrets {
		keys.Keys = append(keys.Keys, s)
	}
	_, err := jwt.Parse(token, func(*jwt.Token) (any, error) { return keys, nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	return err == nil
}

// TestTokens compares with golang-jwt what passes: random tokens, and each of them damaged.
func TestTokens(t *testing.T) {
	b := newBench(t, 3)
	passed, refused := 0, 0
	check := func(token string) {
		t.Helper()
		want := b.accepts(token)
		if got := b.judge(b.with(token)); (got == GuardCjVerdictCJ_PASSED) != want {
			t.Fatalf("%s: verdict %s, but golang-jwt accepts it: %v", token, verdictName(got), want)
		}
		if want {
			passed++
		} else {
			refused++
		}
	}
	for range 2000 {
		c := jwt.MapClaims{"sub": string(b.letters(b.random.IntN(600))), "exp": b.random.IntN(2e9)}
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
		if b.random.IntN(2) == 0 {
			token.Header[string(b.letters(1+b.random.IntN(5)))] = string(b.letters(b.random.IntN(40)))
		}
		secret := b.secrets[b.random.IntN(len(b.secrets))]
		if b.random.IntN(8) == 0 {
			secret = b.bytes(32)
		}
		signed, err := token.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		if strings.LastIndexByte(signed, '.') > int(GuardCjLimitCJ_SIGNED) {
			continue
		}
		check(signed)
		for range 4 {
			check(b.damage(signed))
		}
	}
	if passed < 1000 || refused < 5000 {
		t.Errorf("%d passed and %d were refused: too few of either", passed, refused)
	}
}

// letters makes random characters that JSON need not escape.
func (b *bench) letters(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte('a' + b.random.IntN(26))
	}
	return all
}

// damage changes a token a little.
func (b *bench) damage(token string) string {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \x00\xff"
	at := b.random.IntN(len(token))
	c := string(characters[b.random.IntN(len(characters))])
	switch b.random.IntN(7) {
	case 0: // a character is added
		return token[:at] + c + token[at:]
	case 1: // one is missing
		return token[:at] + token[at+1:]
	case 2: // its end is missing
		return token[:at]
	case 3: // it has padding
		return token + "="
	case 4: // another last character
		return token[:len(token)-1] + c
	case 5: // parts change places
		parts := strings.Split(token, ".")
		parts[b.random.IntN(3)], parts[b.random.IntN(3)] = parts[b.random.IntN(3)], parts[b.random.IntN(3)]
		return strings.Join(parts, ".")
	}
	return token[:at] + c + token[at+1:]
}

// TestForms checks tokens of certain forms.
func TestForms(t *testing.T) {
	b := newBench(t, 1)
	secret := b.secrets[0]
	good := signRaw(secret, usual, `{"sub":"a"}`)
	parts := strings.Split(good, ".")
	unsigned := func(header string) string { return encoding64.EncodeToString([]byte(header)) + "." + parts[1] + "." }
	by := func(header string) string { return signRaw(secret, header, `{"sub":"a"}`) }
	text := func(text string) string { return text + "." + mac(secret, text) }
	const (
		passed, form = GuardCjVerdictCJ_PASSED, GuardCjVerdictCJ_TOKEN_FORM
		algorithm    = GuardCjVerdictCJ_ALGORITHM
		large        = GuardCjVerdictCJ_LARGE
	)
	for _, c := range []struct {
		token string
		want  GuardCjVerdict
	}{
		{good, passed},
		{by(`{"typ":"JWT","alg":"HS256"}`), passed},
		{by(`{"alg":"HS256"}`), passed},
		{by(" \t\r\n{ \"alg\" : \"HS256\"\n, \"crit\" : [ \"a\" , { } , [ ] , -0.5e+3 , 0 , 12E9 , true , false , null ] } \n"), passed},
		{by(`{"\u0061lg":"\u0048S256","x":"\"\\\/\b\f\n\r\té€"}`), passed},
		{by(`{"x":{"alg":"none","alg":"none"},"alg":"HS256"}`), passed},
		{by(`{"alg":"none"}`), algorithm},
		{unsigned(`{"alg":"none"}`), algorithm},
		{unsigned(`{"alg":"None","typ":"JWT"}`), algorithm},
		{unsigned(`{"typ":"JWT","alg":"nOnE"}`), algorithm},
		{by(`{"alg":"hs256"}`), algorithm},
		{by(`{"alg":"HS256 "}`), algorithm},
		{by(`{"alg":"HS384"}`), algorithm},
		{by(`{"alg":"RS256"}`), algorithm},
		{by(`{"alg":["HS256"]}`), algorithm},
		{by(`{"alg":null}`), algorithm},
		{by(`{"Alg":"HS256"}`), algorithm},
		{by(`{"x":{"alg":"HS256"}}`), algorithm},
		{by(`{}`), algorithm},
		{by(`{"alg":"HS256","alg":"HS256"}`), form},
		{by(`{"alg":"none","alg":"HS256"}`), form},
		{by(`{"alg":"HS256","\u0061lg":"none"}`), form},
		{by(`{"alg":"HS256","kid":"a","kid":"b"}`), form},
		{by(`["HS256"]`), form},
		{by(`"HS256"`), form},
		{by(`{"alg":"HS256"`), form},
		{by(`{"alg":"HS256"}}`), form},
		{by(`{"alg":"HS256",}`), form},
		{by(`{'alg':'HS256'}`), form},
		{by(`{"alg":"HS256","n":01}`), form},
		{by("\xef\xbb\xbf" + usual), form},
		{by(``), form},
		{good + "=", form},
		{parts[0] + "=." + parts[1] + "." + parts[2], form},
		{text(parts[0] + "." + parts[1] + "="), form},
		{text(parts[0] + "." + strings.Repeat("+/", 4)), form},
		{text(parts[0] + "." + parts[1][:len(parts[1])-1] + "\n"), form},
		{text(parts[0] + "."), form},
		{text(parts[0] + ".A"), form},
		{text(parts[0] + ".AB"), form}, // bits are left over
		{text(parts[0] + ".AA.AA"), form},
		{text("." + parts[1]), form},
		{text(parts[0]), form},
		{parts[0] + "." + parts[1] + ".", form},
		{parts[0] + "." + parts[1], form},
		{parts[0], form},
		{parts[0] + ".", form},
		{"", form},
		{".", form},
		{"..", form},
		{strings.Repeat("A", int(GuardCjLimitCJ_TOKEN)), form},
		{strings.Repeat("A", int(GuardCjLimitCJ_TOKEN)+1), large},
		{strings.Repeat(".", 100), form},
		{by(`{"alg":"HS256","x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`), passed},
		{by(`{"alg":"HS256","x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`), form},
	} {
		b.expect(c.token, b.with(c.token), c.want)
	}
}

// TestHeaders compares with encoding/json which headers pass: random ones, and each of them damaged.
func TestHeaders(t *testing.T) {
	b := newBench(t, 1)
	verdicts := map[GuardCjVerdict]int{}
	for range 1500 {
		header := b.header()
		for i := range 6 {
			if i > 0 {
				header = b.damageJSON(header)
			}
			token := signRaw(b.secrets[0], header, `{"a":1}`)
			want := judgeHeader(header)
			b.expect(fmt.Sprintf("%q", header), b.with(token), want)
			verdicts[want]++
		}
	}
	for _, v := range []GuardCjVerdict{GuardCjVerdictCJ_PASSED, GuardCjVerdictCJ_ALGORITHM, GuardCjVerdictCJ_TOKEN_FORM} {
		if verdicts[v] < 500 {
			t.Errorf("%d headers have verdict %s: too few", verdicts[v], verdictName(v))
		}
	}
}

// header makes a random header, which is mostly for HS256.
func (b *bench) header() string {
	members := []string{b.quote("alg") + ":" + b.space() + b.quote([]string{"HS256", "HS256", "HS256", "none"}[b.random.IntN(4)])}
	for range b.random.IntN(4) {
		members = append(members, b.quote(string(b.letters(1+b.random.IntN(3))))+b.space()+":"+b.value(0))
	}
	if b.random.IntN(3) == 0 {
		members = append(members, b.quote("kid")+":"+b.value(2))
	}
	if b.random.IntN(20) == 0 {
		members = append(members, members[0])
	}
	b.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return b.space() + "{" + strings.Join(members, b.space()+",") + b.space() + "}" + b.space()
}

func (b *bench) space() string {
	return []string{"", "", "", " ", "\n", "\t", "\r\n "}[b.random.IntN(7)]
}

// quote writes a string, some of its characters escaped.
func (b *bench) quote(s string) string {
	out := b.space() + `"`
	for _, r := range s {
		if b.random.IntN(8) == 0 {
			out += fmt.Sprintf([]string{`\u%04x`, `\u%04X`}[b.random.IntN(2)], r)
		} else {
			out += string(r)
		}
	}
	return out + `"`
}

// value is a random one.
func (b *bench) value(depth int) string {
	simple := []string{
		"0", "-1", "12.50", "1e9", "-0.5E-7", "true", "false", "null", `""`, `"\"\\\/\b\f\n\r\t"`, `"\ud83d\ude00"`, `"é"`, `"{[,:"`, `"HS256"`,
	}
	if depth > 2 || b.random.IntN(2) == 0 {
		return b.space() + simple[b.random.IntN(len(simple))]
	}
	var items []string
	object := b.random.IntN(2) == 0
	for range b.random.IntN(3) {
		item := b.value(depth + 1)
		if object {
			item = b.quote("alg") + b.space() + ":" + item
		}
		items = append(items, item)
	}
	if object {
		return "{" + strings.Join(items, ",") + b.space() + "}"
	}
	return "[" + strings.Join(items, ",") + b.space() + "]"
}

// damageJSON changes a character.
func (b *bench) damageJSON(s string) string {
	const characters = "{}[]:,\"\\/u0123456789abcdefE+-. \n\x00\x1f\x7f\xffalgHS256kid"
	if s == "" {
		return " "
	}
	at := b.random.IntN(len(s))
	c := characters[b.random.IntN(len(characters))]
	switch b.random.IntN(3) {
	case 0:
		return s[:at] + string([]byte{c}) + s[at:]
	case 1:
		return s[:at] + s[at+1:]
	}
	return s[:at] + string([]byte{c}) + s[at+1:]
}

// judgeHeader is what encoding/json says of a header.
func judgeHeader(header string) GuardCjVerdict {
	var members map[string]any
	if json.Unmarshal([]byte(header), &members) != nil || members == nil || ambiguous(header) {
		return GuardCjVerdictCJ_TOKEN_FORM
	}
	if members["alg"] != "HS256" {
		return GuardCjVerdictCJ_ALGORITHM
	}
	return GuardCjVerdictCJ_PASSED
}

// ambiguous says whether an object has two members alg or kid.
func ambiguous(object string) bool {
	d := json.NewDecoder(bytes.NewReader([]byte(object)))
	seen := map[string]int{}
	if _, err := d.Token(); err != nil {
		return true
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err = errors.Join(err, d.Decode(&value)); err != nil && !errors.Is(err, io.EOF) {
			return true
		}
		seen[name.(string)]++
	}
	return seen["alg"] > 1 || seen["kid"] > 1
}
