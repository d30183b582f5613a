package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// A field is what deserialize takes of an object: an integer, or a string of up to so many bytes.
type field struct {
	name string
	size uint32
}

var fields = []field{{"id", 0}, {"name", 12}, {"größe", 0}, {"a-name-that-has-thirty-two-bytes", 41}, {"c", 1}, {`"\/`, 4}}

// note is the note of fields.
func note(all []field) (b []byte) {
	for _, f := range all {
		kind := uint32(1)
		if f.size > 0 {
			kind = 2
		}
		b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, kind), f.size)
		b = append(b, f.name...)
		b = append(b, make([]byte, 32-len(f.name))...)
	}
	return b
}

// A deserialized server has deserialize in front of its socket.
type deserialized struct {
	*steered
	notes *lambdanic.Notes
}

func deserialize(t *testing.T, size int) *deserialized {
	t.Helper()
	s := steer(t, "deserialize", lambdanic.Rings{Count: 1, Size: size}, nil)
	notes, err := s.k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	return &deserialized{s, notes}
}

// tell has a note delivered, and returns how many fields there are then.
func (d *deserialized) tell(note []byte) int64 {
	d.t.Helper()
	if err := d.write(note); err != nil {
		d.t.Fatal(err)
	}
	return d.registers()["fields"]
}

// write has a note delivered.
func (d *deserialized) write(note []byte) error {
	d.t.Helper()
	b, err := d.notes.Reserve(len(note))
	if err != nil {
		d.t.Fatal(err)
	}
	copy(b, note)
	if n, err := d.notes.Deliver(); n != 1 {
		return err
	}
	return nil
}

func (d *deserialized) registers() map[string]int64 {
	d.t.Helper()
	r, err := d.k.Read()
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// check sends a document, and expects the struct in the ring, or without one the document at the socket.
func (d *deserialized) check(client *net.UDPConn, document string, want []byte) {
	d.t.Helper()
	d.send(client, []byte(document))
	if want != nil {
		if m, err := d.rings[0].Read(); err != nil || !bytes.Equal(m.Data, want) {
			d.t.Fatalf("%q becomes %x, %v, want %x", document, m.Data, err, want)
		}
		return
	}
	_ = d.server.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 4096)
	if n, err := d.server.Read(b); err != nil || string(b[:n]) != document {
		d.t.Fatalf("the socket gets %q, %v, want %q", b[:n], err, document)
	}
}

// members reads an object with encoding/json; false if it is none.
func members(document string) (values map[string][]json.RawMessage, ok bool) {
	if !json.Valid([]byte(document)) || !strings.HasPrefix(strings.TrimLeft(document, " \t\r\n"), "{") {
		return nil, false
	}
	values = map[string][]json.RawMessage{}
	d := json.NewDecoder(strings.NewReader(document))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		values[name.(string)] = append(values[name.(string)], value)
	}
	return values, true
}

// appendField appends a value as the struct has it; false if it does not fit.
func appendField(out []byte, f field, value []byte) ([]byte, bool) {
	if f.size == 0 {
		var i int64
		if value[0] == 'n' || json.Unmarshal(value, &i) != nil {
			return nil, false
		}
		return binary.NativeEndian.AppendUint64(out, uint64(i)), true
	}
	var s string
	if value[0] != '"' || json.Unmarshal(value, &s) != nil || len(s) > int(f.size) || strings.ContainsRune(s, utf8.RuneError) {
		return nil, false
	}
	out = append(binary.NativeEndian.AppendUint32(out, uint32(len(s))), s...)
	return append(out, make([]byte, int(4+f.size+7)&^7-4-len(s))...), true
}

// convert is what deserialize should do, by encoding/json: the struct, or which register counts the document.
func convert(document string) (out []byte, register string) {
	values, ok := members(document)
	if !ok {
		return nil, "malformed"
	}
	for _, f := range fields {
		of := values[f.name]
		ok := len(of) == 1
		if ok {
			out, ok = appendField(out, f, of[0])
		}
		if !ok {
			return nil, "unfit"
		}
	}
	return out, "taken"
}

// A writer writes documents at random.
type writer struct{ *rand.Rand }

func (w writer) one(of ...string) string { return of[w.IntN(len(of))] }

func (w writer) space() string { return w.one("", "", "", " ", "\n\t", "\r  ") }

// text writes a string in one of its ways.
func (w writer) text(s string) string {
	out := `"`
	for _, r := range s {
		switch escaped := w.IntN(4) == 0; {
		case escaped && r > 0xffff:
			r -= 0x10000
			out += fmt.Sprintf(w.one(`\u%04x\u%04x`, `\u%04X\u%04X`), 0xd800+r>>10, 0xdc00+r&0x3ff)
		case escaped:
			out += fmt.Sprintf(w.one(`\u%04x`, `\u%04X`), r)
		case r < ' ' || r == '"' || r == '\\':
			out += map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '"': `\"`, '\\': `\\`}[r]
		case r == '/' && w.IntN(2) == 0:
			out += `\/`
		default:
			out += string(r)
		}
	}
	if w.IntN(200) == 0 {
		out += w.one(`\ud800`, `\udc00x`, `\udbff\ud800`, `\ud83d\u0041`, `\ud83d\n`)
	}
	return out + `"`
}

func (w writer) string(size int) string {
	s := ""
	for range w.IntN(size + 1) {
		if r := w.one("a", "z", "\n", "\t", "\b", "\f", "\r", "/", `"`, `\`, "é", "→", "😀", "\x7f"); len(s)+len(r) <= size || w.IntN(300) == 0 {
			s += r
		}
	}
	return s
}

func (w writer) integer() string {
	switch w.IntN(30) {
	case 0:
		return w.one("1.0", "1e3", "-1E+2", "0.5", "-0", "0", "01", "-", "+1")
	case 1:
		return w.one("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616",
			"92233720368547758070", "99999999999999999999999", "9223372036854775799")
	}
	return strconv.FormatInt(int64(w.Uint64())>>w.IntN(64), 10)
}

// value writes any value.
func (w writer) value(depth int) string {
	kind := w.IntN(7)
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0:
		return w.one("true", "false", "null")
	case 1:
		return w.text(w.string(10))
	case 2, 3, 4:
		return w.integer()
	case 5:
		all := make([]string, w.IntN(4))
		for i := range all {
			all[i] = w.space() + w.value(depth-1) + w.space()
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	return w.object(depth)
}

// object writes an object with members of any names, also those of fields.
func (w writer) object(depth int, more ...string) string {
	for range w.IntN(4) {
		more = append(more, w.text(w.one("x", "ID", "idx", "i", fields[w.IntN(len(fields))].name+"x", w.string(60)))+w.space()+":"+w.space()+w.value(depth-1))
	}
	w.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return "{" + w.space() + strings.Join(more, w.space()+","+w.space()) + w.space() + "}"
}

// document writes an object with the fields, mostly.
func (w writer) document() string {
	var all []string
	for _, f := range fields {
		value := w.integer()
		if f.size > 0 {
			value = w.text(w.string(int(f.size)))
		}
		if w.IntN(60) == 0 {
			value = w.value(3)
		}
		for range 1 + max(0, w.IntN(100)-98) - max(0, w.IntN(100)-98) {
			all = append(all, w.text(f.name)+w.space()+":"+w.space()+value)
		}
	}
	d := []byte(w.space() + w.object(5, all...) + w.space())
	if w.IntN(4) == 0 { // breaks it, or not
		if at := w.IntN(len(d)); d[at] < utf8.RuneSelf {
			d[at] = w.one(`{`, `}`, `[`, `]`, `"`, `\`, `,`, `:`, "0", "-", ".", "e", "n", " ", "\n", "\x01")[0]
		}
	}
	return string(d)
}

// TestDeserialize reads documents at random, and compares with encoding/json.
func TestDeserialize(t *testing.T) {
	const documents = 4000
	d := deserialize(t, 1<<16)
	if n := d.tell(note(fields)); n != int64(len(fields)) {
		t.Fatalf("there are %d fields, want %d", n, len(fields))
	}
	client, w := d.dial(), writer{rand.New(rand.NewPCG(1, 2))}
	want := map[string]int64{"fields": int64(len(fields)), "bytes": 8 + 16 + 8 + 48 + 8 + 8}
	for range documents {
		document := w.document()
		out, register := convert(document)
		if len(document) > 2048 {
			continue
		}
		want[register]++
		d.check(client, document, out)
	}
	if got := d.registers(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the registers are %v, want %v", got, want)
	}
	for _, register := range []string{"taken", "malformed", "unfit"} {
		if want[register] < documents/20 {
			t.Errorf("%d documents are %s: the test shows little", want[register], register)
		}
	}
	t.Log(want)
}

// TestDeserializeForms reads documents at the limits.
func TestDeserializeForms(t *testing.T) {
	d := deserialize(t, 1<<16)
	if n := d.tell(note([]field{{"i", 0}, {"s", 500}})); n != 2 {
		t.Fatalf("there are %d fields, want 2", n)
	}
	client := d.dial()
	want := func(i int64, s string) []byte {
		b := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint64(nil, uint64(i)), uint32(len(s)))
		return append(append(b, s...), make([]byte, 500-len(s))...)
	}
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	long := strings.Repeat("x", 500)
	for document, out := range map[string][]byte{
		``:               nil,
		`{}`:             nil,
		`{"i":1,"s":""}`: want(1, ""),
		`{"s":"a\u0000","i":0}` + strings.Repeat(" ", 2048-21):    want(0, "a\x00"),
		`{"s":"a\u0000","i":0}` + strings.Repeat(" ", 2049-21):    nil,
		`{"i":1,"s":"` + long + `"}`:                              want(1, long),
		`{"i":1,"s":"` + long + `x"}`:                             nil,
		`{"i":1,"s":"","n":` + nested(31) + `}`:                   want(1, ""),
		`{"i":1,"s":"","n":` + nested(32) + `}`:                   nil,
		`{"i":-9223372036854775808,"s":""}`:                       want(math.MinInt64, ""),
		"{\"i\":1,\"s\":\"\xff\xc0\"}":                            want(1, "\xff\xc0"), // no UTF-8
		`{"i":1,"s":"","n":{"i":"no","s":{"i":2},"a":["s","i"]}}`: want(1, ""),
		`{"\u0069":1,"s":""}`:                                     want(1, ""),
		`{"i\ud800":1,"s":"","i":2}`:                              want(2, ""),
		`{"i":1,"s":"","i":1}`:                                    nil,
		`{"i":1,"s":["a"]}`:                                       nil,
		`{"i":[1],"s":"a"}`:                                       nil,
		`{"i":"1","s":"a"}`:                                       nil,
		`{"i":1,"s":""}{`:                                         nil,
		`[{"i":1,"s":""}]`:                                        nil,
	} {
		d.check(client, document, out)
	}
	if d.tell(note(fields)) != 2 {
		t.Error("fields are noted twice")
	}
	d.check(client, `{"i":1,"s":""}`, want(1, ""))
}

// TestDeserializeNotes notes what cannot be fields, which is a fault. All documents go to the socket then.
func TestDeserializeNotes(t *testing.T) {
	many := make([]field, 17)
	for i := range many {
		many[i] = field{name: fmt.Sprint("f", i)}
	}
	change := func(at int, to byte) []byte {
		b := note([]field{{"i", 0}})
		b[at] = to
		return b
	}
	for what, b := range map[string][]byte{
		"nothing":             nil,
		"a part of a field":   note(many)[:39],
		"one and a part":      note(many)[:79],
		"too many":            note(many),
		"too long a struct":   note([]field{{"i", 0}, {"s", 501}}),
		"far too long":        change(7, 0x80),
		"no type":             change(0, 3),
		"a size of integers":  change(4, 1),
		"no name":             note([]field{{"", 0}}),
		"a name with a break": change(20, 'x'),
	} {
		t.Run(what, func(t *testing.T) {
			d := deserialize(t, os.Getpagesize())
			if err := d.write(b); !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), "impossible fields") {
				t.Errorf("got %v", err)
			}
			d.check(d.dial(), `{"i":1}`, nil)
			if n := d.registers()["fields"]; n != 0 {
				t.Errorf("there are %d fields", n)
			}
		})
	}
	d := deserialize(t, 1<<16)
	if n := d.tell(note(many[:16])); n != 16 {
		t.Errorf("there are %d fields, want 16", n)
	}
}

// TestDeserializeFull fills a ring. What it refuses, the socket gets.
func TestDeserializeFull(t *testing.T) {
	d := deserialize(t, os.Getpagesize())
	d.tell(note([]field{{"i", 0}}))
	client, room := d.dial(), (os.Getpagesize()-8)/(8+48+8)
	for i := range room {
		d.send(client, fmt.Appendf(nil, `{"i":%d}`, i))
	}
	d.check(client, `{"i":-1}`, nil)
	for i := range room {
		if m, err := d.rings[0].Read(); err != nil || binary.NativeEndian.Uint64(m.Data) != uint64(i) {
			t.Fatalf("got %x, %v, want %d", m.Data, err, i)
		}
	}
}
