package memcached

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// keys are all that the tests' streams use.
var keys = []string{"a", "bb", "key:3", strings.Repeat("k", 250)}

// A stream is what a client sends on one connection, and what that may change.
type stream struct {
	bytes   []byte
	ends    []int // of commands
	changes map[string]bool
	all     bool
	damaged bool
}

func (s *stream) key(r *rand.Rand, changes bool) string {
	k := keys[r.IntN(len(keys))]
	if changes {
		s.changes[k] = true
	}
	return k
}

func randomValue(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return fmt.Sprint(r.IntN(1000)) // for incr
	}
	// A value may look like a command.
	return []string{"", "x", "\r\n", "set a 0 0 1\r\nz\r\n", "VALUE a 0 1\r\n", strings.Repeat("long", 1+r.IntN(8000))}[r.IntN(6)]
}

func noreply(r *rand.Rand) string { return []string{"", "", " noreply"}[r.IntN(3)] }

// text adds a command of the text protocol (protocol.txt of memcached 1.6, with the meta commands).
func (s *stream) text(r *rand.Rand) {
	add := func(format string, args ...any) { s.bytes = fmt.Appendf(s.bytes, format, args...) }
	expiry := []int{0, 1000, 100000, -1}[r.IntN(4)]
	switch r.IntN(16) {
	case 0, 1, 2:
		v := randomValue(r)
		name := []string{"set", "add", "replace", "append", "prepend"}[r.IntN(5)]
		add("%s %s %d %d %d%s\r\n%s\r\n", name, s.key(r, true), r.IntN(1<<16), expiry, len(v), noreply(r), v)
	case 3:
		v := randomValue(r)
		add("cas %s 7 %d %d %d%s\r\n%s\r\n", s.key(r, true), expiry, len(v), r.IntN(30), noreply(r), v)
	case 4:
		add("%s %s %d%s\r\n", []string{"incr", "decr"}[r.IntN(2)], s.key(r, true), r.IntN(100), noreply(r))
	case 5:
		add("delete %s%s\r\n", s.key(r, true), noreply(r))
	case 6:
		add("touch %s %d%s\r\n", s.key(r, true), expiry, noreply(r))
	case 7:
		add("%s %d", []string{"gat", "gats"}[r.IntN(2)], expiry)
		for range 1 + r.IntN(3) {
			add(" %s", s.key(r, true))
		}
		add("\r\n")
	case 8, 9:
		add("%s", []string{"get", "gets"}[r.IntN(2)])
		for range 1 + r.IntN(4) {
			add(" %s", s.key(r, false))
		}
		add("\r\n")
	case 10:
		add("mg %s%s\r\n", s.key(r, false), []string{"", " v", " t f v c k", " q v", " s O123 h l"}[r.IntN(5)])
	case 11:
		add("mg %s %s\r\n", s.key(r, true), []string{"T1000", "v N30", "t T0 v"}[r.IntN(3)])
	case 12:
		v := randomValue(r)
		add("ms %s %d%s\r\n%s\r\n", s.key(r, true), len(v), []string{"", " T1000", " F5 MA", " q I C3", " ME c"}[r.IntN(5)], v)
	case 13:
		add("%s %s%s\r\n", []string{"md", "ma"}[r.IntN(2)], s.key(r, true), []string{"", " q", " T500"}[r.IntN(3)])
	case 14:
		add("%s\r\n", []string{"mn", "version", "stats", "stats items", "verbosity 0"}[r.IntN(5)])
	case 15:
		if r.IntN(4) == 0 {
			s.all = true
			add("flush_all%s\r\n", noreply(r))
		}
	}
}

// binary adds a command of the binary protocol (protocol-binary.txt of memcached).
func (s *stream) binary(r *rand.Rand) {
	add := func(opcode byte, extras []byte, key, value string) {
		h := make([]byte, 24)
		h[0], h[1], h[4] = 0x80, opcode, byte(len(extras))
		binary.BigEndian.PutUint16(h[2:], uint16(len(key)))
		binary.BigEndian.PutUint32(h[8:], uint32(len(extras)+len(key)+len(value)))
		binary.BigEndian.PutUint32(h[12:], r.Uint32())
		s.bytes = append(append(append(append(s.bytes, h...), extras...), key...), value...)
	}
	expiry := binary.BigEndian.AppendUint32(nil, []uint32{0, 1000, 100000}[r.IntN(3)])
	switch r.IntN(9) {
	case 0, 1:
		add([]byte{1, 2, 3, 0x11, 0x12, 0x13}[r.IntN(6)], append([]byte{0, 0, 0, 9}, expiry...), s.key(r, true), randomValue(r))
	case 2:
		add([]byte{0xe, 0xf, 0x19, 0x1a}[r.IntN(4)], nil, s.key(r, true), randomValue(r))
	case 3:
		number := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 3), 100)
		add([]byte{5, 6, 0x15, 0x16}[r.IntN(4)], append(number, expiry...), s.key(r, true), "")
	case 4:
		add([]byte{4, 0x14}[r.IntN(2)], nil, s.key(r, true), "")
	case 5:
		add([]byte{0x1c, 0x1d, 0x1e}[r.IntN(3)], expiry, s.key(r, true), "")
	case 6:
		add([]byte{0, 9, 0xc, 0xd}[r.IntN(4)], nil, s.key(r, false), "")
	case 7:
		add([]byte{0xa, 0xb, 0x10}[r.IntN(3)], nil, "", "")
	case 8:
		if r.IntN(4) == 0 {
			s.all = true
			add([]byte{8, 0x18}[r.IntN(2)], nil, "", "")
		}
	}
}

// generate makes a stream of commands. Half of the streams speak the binary protocol.
func generate(r *rand.Rand) *stream {
	s := &stream{changes: map[string]bool{}}
	next := s.text
	if r.IntN(2) == 0 {
		next = s.binary
	}
	for range 1 + r.IntN(12) {
		next(r)
		s.ends = append(s.ends, len(s.bytes))
	}
	return s
}

// damage changes some bytes, repeats or removes some, or cuts the end off.
func (s *stream) damage(r *rand.Rand) {
	s.damaged = true
	for range 1 + r.IntN(3) {
		if len(s.bytes) == 0 {
			return
		}
		// Most damage belongs near a command's beginning, not into a long value.
		at := r.IntN(min(len(s.bytes), 1+r.IntN(len(s.bytes))))
		end := min(len(s.bytes), at+1+r.IntN(20))
		switch r.IntN(4) {
		case 0:
			s.bytes[at] = "\r\n \x00\x80059anoreply"[r.IntN(16)]
		case 1:
			s.bytes = append(append(append([]byte{}, s.bytes[:end]...), s.bytes[at:end]...), s.bytes[end:]...)
		case 2:
			s.bytes = append(append([]byte{}, s.bytes[:at]...), s.bytes[end:]...)
		case 3:
			s.bytes = s.bytes[:at]
		}
	}
}

func (s *stream) isBinary() bool { return len(s.bytes) > 0 && s.bytes[0] == 0x80 }

// datagrams divides a stream at ends of commands, and adds to each part a command that is always answered. A command that is too long for a
// datagram is left out.
func (s *stream) datagrams() (payloads [][]byte) {
	last := "version\r\n"
	if s.isBinary() {
		last = "\x80\x0b" + strings.Repeat("\x00", 22)
	}
	begin := 0
	for i, end := range s.ends {
		more := i+1 < len(s.ends) && s.ends[i+1]-begin <= 1300 && i%4 != 3
		if end = min(end, len(s.bytes)); more {
			continue
		}
		if end-begin <= 1300 && begin < end {
			id := byte(len(payloads))
			payloads = append(payloads, append(append([]byte{id, id, 0, 0, 0, 1, 0, 0}, s.bytes[begin:end]...), last...))
		}
		begin = end
	}
	return payloads
}
