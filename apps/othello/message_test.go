package othello

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

var (
	aMap    = Message{Kind: Map, Child: 3, Depth: 2, Most: 5, Search: 0x01020304, Host: 0x0506, Node: 0x0708090a, Board: Start}
	aReduce = Message{Kind: Reduce, Child: 1, Best: 19, Search: 1, Host: 2, Node: 3, Value: -10004, Nodes: 1234}
)

// The form on the wire does not change by accident.
func TestMessageOnTheWire(t *testing.T) {
	for m, want := range map[Message]string{
		aMap:    "6f 01 01 03 02 05 00 00 01020304 0506 0000 0708090a 00000000 0000000810000000 0000001008000000",
		aReduce: "6f 01 02 01 00 00 13 00 00000001 0002 0000 00000003 ffffd8ec 00000000000004d2 0000000000000000",
	} {
		b := m.Append(nil)
		if got := hex.EncodeToString(b); got != strings.ReplaceAll(want, " ", "") || len(b) != MessageSize {
			t.Errorf("%+v is %s, want %s", m, got, want)
		}
		if got, err := ParseMessage(b); err != nil || got != m {
			t.Errorf("got %+v (%v), want %+v", got, err, m)
		}
	}
}

func TestBrokenMessages(t *testing.T) {
	change := func(m Message, change func(*Message)) []byte {
		change(&m)
		return m.Append(nil)
	}
	poke := func(m Message, at int, value byte) []byte {
		b := m.Append(nil)
		b[at] = value
		return b
	}
	for want, b := range map[string][]byte{
		"0 bytes":                          nil,
		"39 bytes":                         aMap.Append(nil)[:39],
		"41 bytes":                         append(aMap.Append(nil), 0),
		"begins with 0x6e":                 poke(aMap, 0, 0x6e),
		"version 2":                        poke(aMap, 1, 2),
		"has to be 0":                      poke(aReduce, 15, 1),
		"kind 3":                           poke(aMap, 2, 3),
		"child 64":                         poke(aMap, 3, 64),
		"depth 6 of 5":                     change(aMap, func(m *Message) { m.Depth = 6 }),
		"depth 2 of 121":                   change(aMap, func(m *Message) { m.Most = 121 }),
		"two discs on [d4]":                change(aMap, func(m *Message) { m.Board.Own |= 1 << 27 }),
		"a map message with a result":      change(aMap, func(m *Message) { m.Value = 1 }),
		"a reduce message with a position": change(aReduce, func(m *Message) { m.Board.Opp = 1 }),
		"value 10065":                      change(aReduce, func(m *Message) { m.Value = 10065 }),
		"move 66":                          change(aReduce, func(m *Message) { m.Best = 66 }),
		"from 0 positions":                 change(aReduce, func(m *Message) { m.Nodes = 0 }),
	} {
		if m, err := ParseMessage(b); !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v, want %s", m, err, want)
		}
	}
}

// Whatever is read is written in the same bytes.
func FuzzParseMessage(f *testing.F) {
	for _, m := range []Message{aMap, aReduce, {Kind: Map}, {Kind: Reduce, Best: None, Nodes: 1}} {
		f.Add(m.Append(nil))
	}
	f.Add([]byte{messageMagic, messageVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseMessage(b); err == nil && !bytes.Equal(m.Append(nil), b) {
			t.Errorf("%x was read as %+v", b, m)
		} else if err != nil && !errors.Is(err, ErrMessage) {
			t.Errorf("%x: %v", b, err)
		}
	})
}
