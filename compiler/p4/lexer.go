package p4

import (
	"fmt"
	"math/big"
	"strings"
)

type position struct {
	file         string
	line, column int // from 1; columns count bytes
}

type kind int

const (
	kindEOF kind = iota
	kindName
	kindNumber
	kindString // a file's name in an #include
	kindMark   // operators and punctuation
)

type token struct {
	position
	kind  kind
	text  string
	value *big.Int // of a number
	width int      // of a number that has one, else 0
	first bool     // the first on its line
	space bool     // white space precedes it
}

// String is how messages name the token.
func (t token) String() string {
	if t.kind == kindEOF {
		return "end of file"
	}
	return fmt.Sprintf("%q", t.text)
}

// marks are longest first.
var marks = []string{
	"==", "!=", "<=", ">=", "<<", ">>", "&&", "||",
	"{", "}", "(", ")", "[", "]", ";", ":", ",", ".", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "=", "#", "@", "\\",
}

// maxNumberBits bounds numbers: no field is wider.
const maxNumberBits = 2048

// lexer splits one file into tokens.
type lexer struct {
	text   string
	at     int // byte
	pos    position
	errors *errorList
	fresh  bool // no token on this line yet
}

func newLexer(file, text string, errors *errorList) *lexer {
	return &lexer{text: text, pos: position{file, 1, 1}, errors: errors, fresh: true}
}

func (l *lexer) advance(n int) {
	for _, c := range []byte(l.text[l.at : l.at+n]) {
		if c == '\n' {
			l.pos.line, l.pos.column, l.fresh = l.pos.line+1, 1, true
		} else {
			l.pos.column++
		}
	}
	l.at += n
}

// skipBlank passes white space and comments, and tells whether there were any.
func (l *lexer) skipBlank() bool {
	begin := l.at
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", rune(rest[0])):
			l.advance(1)
		case strings.HasPrefix(rest, "\\\n"):
			fresh := l.fresh
			l.advance(2)
			l.fresh = fresh // the line goes on
		case strings.HasPrefix(rest, "\\\r\n"):
			fresh := l.fresh
			l.advance(3)
			l.fresh = fresh
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.advance(end)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				l.errors.add(l.pos, "comment does not end: expected \"*/\"")
				l.advance(len(rest))
				return true
			}
			l.advance(end + 4)
		default:
			return l.at > begin
		}
	}
	return l.at > begin
}

func (l *lexer) next() token {
	space := l.skipBlank()
	t := token{position: l.pos, first: l.fresh, space: space}
	l.fresh = false
	if l.at >= len(l.text) {
		return t
	}
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case isLetter(c):
		t.kind, t.text = kindName, rest[:span(rest, isWord)]
	case isDigit(c):
		t.kind = kindNumber
		t.text = rest[:span(rest, func(c byte) bool { return isWord(c) || c == '\'' })]
		l.number(&t)
	case c == '"':
		end := strings.IndexAny(rest[1:], "\"\n")
		if end < 0 || rest[1+end] != '"' {
			l.errors.add(l.pos, "text does not end: expected '\"'")
			l.advance(span(rest, func(c byte) bool { return c != '\n' }))
			return l.next()
		}
		t.kind, t.text = kindString, rest[1:1+end]
		l.advance(end + 2)
		return t
	default:
		for _, m := range marks {
			if strings.HasPrefix(rest, m) {
				t.kind, t.text = kindMark, m
				break
			}
		}
		if t.kind != kindMark {
			l.errors.add(l.pos, "byte %#02x begins no token: remove it", c)
			l.advance(1)
			l.fresh = t.first
			return l.next()
		}
	}
	l.advance(len(t.text))
	return t
}

// number reads 10, 0x1f, 0b11 and, with a width, 16'0.
func (l *lexer) number(t *token) {
	digits := t.text
	if width, value, ok := strings.Cut(digits, "'"); ok {
		w, ok := new(big.Int).SetString(width, 10)
		if !ok || !w.IsInt64() || w.Int64() < 1 || w.Int64() > maxNumberBits {
			l.errors.add(t.position, "%q is not the width of a number: use 1 to %d", width, maxNumberBits)
		} else {
			t.width = int(w.Int64())
		}
		digits = value
	}
	v, ok := parseNumber(digits)
	if !ok {
		l.errors.add(t.position, "%q is not a number of at most %d bits: write it as 10, 0x1f, 0b11 or 16'0", t.text, maxNumberBits)
		v = new(big.Int)
	}
	if t.width > 0 && v.BitLen() > t.width {
		l.errors.add(t.position, "%s does not fit into %d bits", digits, t.width)
	}
	t.value = v
}

// parseNumber reads a decimal, hexadecimal or binary number.
func parseNumber(s string) (*big.Int, bool) {
	base := 10
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			s, base = s[2:], 16
		case 'b', 'B':
			s, base = s[2:], 2
		}
	}
	if s == "" || len(s) > maxNumberBits || !isHex(s[0]) {
		return nil, false
	}
	v, ok := new(big.Int).SetString(s, base)
	return v, ok && v.BitLen() <= maxNumberBits
}

func isHex(c byte) bool    { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}
