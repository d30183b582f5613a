package memcached

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A call is an operation and its result.
type call struct {
	operation
	got result
}

// A dialect is one of memcached's protocols, on a connection.
type dialect interface {
	// encode writes operations as one request. If they are together they are a GET of several keys.
	encode(calls []*call, together bool) []byte
	// decode reads the results. The last operation is not quiet.
	decode(replies *bufio.Reader, calls []*call, together bool) error
}

// A speaker asks the server for several operations at once.
type speaker struct {
	dialect
	conn    net.Conn
	replies *bufio.Reader
	waits   time.Duration // for a reply
}

func (s *speaker) do(calls []*call, together bool) error {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.waits))
	request := s.encode(calls, together)
	if _, err := s.conn.Write(request); err != nil {
		return err
	}
	if err := s.decode(s.replies, calls, together); err != nil {
		return fmt.Errorf("after %.400q: %w", request, err)
	}
	return nil
}

// datagrams are a UDP socket whose requests and replies are streams.
type datagrams struct {
	net.Conn
	id    uint16
	reply [2000]byte
}

func (d *datagrams) Write(request []byte) (int, error) {
	d.id++
	return d.Conn.Write(append(frame(d.id), request...))
}

func (d *datagrams) Read(b []byte) (int, error) {
	for {
		n, err := d.Conn.Read(d.reply[:])
		if err != nil {
			return 0, err
		}
		if n > 8 && binary.BigEndian.Uint16(d.reply[:]) == d.id { // or it is a late reply
			return copy(b, d.reply[8:n]), nil
		}
	}
}

func line(replies *bufio.Reader) (string, []string, error) {
	l, err := replies.ReadString('\n')
	return l, strings.Fields(l), err
}

// block reads a value of this size, and the line's end behind it.
func block(replies *bufio.Reader, size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil {
		return "", err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(replies, b)
	return string(b[:n]), err
}

func number(word string) uint64 {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return ^uint64(0) // nobody sends this one
	}
	return n
}

// text is the text protocol.
type text struct{}

func (text) encode(calls []*call, together bool) (b []byte) {
	if together {
		b = append(b, textGet(calls...)...)
		for _, c := range calls {
			b = append(append(b, ' '), c.key...)
		}
		return append(b, "\r\n"...)
	}
	for _, c := range calls {
		quiet := ""
		if c.quiet {
			quiet = " noreply"
		}
		switch c.verb {
		case doGet:
			b = fmt.Appendf(b, "%s %s\r\n", textGet(c), c.key)
		case doGat:
			b = fmt.Appendf(b, "%s %d %s\r\n", strings.Replace(textGet(c), "e", "a", 1), c.expiry, c.key)
		case doTouch:
			b = fmt.Appendf(b, "touch %s %d%s\r\n", c.key, c.expiry, quiet)
		case doIncr, doDecr:
			b = fmt.Appendf(b, "%s %s %d%s\r\n", c.verb, c.key, c.delta, quiet)
		case doDelete:
			b = fmt.Appendf(b, "delete %s%s\r\n", c.key, quiet)
		case doFlush:
			b = fmt.Appendf(b, "flush_all%s\r\n", quiet)
		case doCas:
			b = fmt.Appendf(b, "cas %s %d %d %d %d%s\r\n%s\r\n", c.key, c.flags, c.expiry, len(c.value), c.version, quiet, c.value)
		default:
			b = fmt.Appendf(b, "%s %s %d %d %d%s\r\n%s\r\n", c.verb, c.key, c.flags, c.expiry, len(c.value), quiet, c.value)
		}
	}
	return b
}

func textGet(calls ...*call) string {
	if slices.ContainsFunc(calls, func(c *call) bool { return c.asks }) {
		return "gets"
	}
	return "get"
}

func (text) decode(replies *bufio.Reader, calls []*call, together bool) error {
	if together {
		return textValues(replies, calls)
	}
	for i, c := range calls {
		var err error
		if c.verb == doGet || c.verb == doGat {
			err = textValues(replies, calls[i:i+1])
		} else if !c.quiet {
			err = textLine(replies, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// textValues reads what a GET of these keys is answered.
func textValues(replies *bufio.Reader, calls []*call) error {
	for _, c := range calls {
		c.got.code = missing
	}
	for {
		l, words, err := line(replies)
		if err != nil || l == "END\r\n" {
			return err
		}
		if len(words) < 4 || words[0] != "VALUE" {
			return fmt.Errorf("a GET is answered with %q", l)
		}
		var of *call
		for _, c := range calls {
			if c.key == words[1] {
				of = c
			}
		}
		if of == nil {
			return fmt.Errorf("a GET of other keys is answered with %q", l)
		}
		of.got.code, of.got.flags = done, uint32(number(words[2]))
		if of.asks && len(words) > 4 {
			of.got.version = number(words[4])
		}
		if of.got.value, err = block(replies, words[3]); err != nil {
			return err
		}
	}
}

func textLine(replies *bufio.Reader, c *call) error {
	l, words, err := line(replies)
	if err != nil {
		return err
	}
	switch {
	case len(words) > 0 && (c.verb == doIncr || c.verb == doDecr) && words[0][0] >= '0' && words[0][0] <= '9':
		c.got.code, c.got.value = done, words[0]
	case l == "STORED\r\n" || l == "DELETED\r\n" || l == "TOUCHED\r\n" || l == "OK\r\n":
		c.got.code = done
	case l == "NOT_FOUND\r\n":
		c.got.code = missing
	case l == "NOT_STORED\r\n" || l == "EXISTS\r\n":
		c.got.code = refused
	case strings.Contains(l, "non-numeric"):
		c.got.code = wrong
	default:
		return fmt.Errorf("%s is answered with %q", c.verb, l)
	}
	return nil
}

// meta are the meta commands. An opaque number says which of them a reply is for.
type meta struct{}

var metaModes = map[verb]string{
	doSet: "", doCas: "", doAdd: " ME", doReplace: " MR", doAppend: " MA", doPrepend: " MP", doIncr: "", doDecr: " MD",
}

func (meta) encode(calls []*call, together bool) (b []byte) {
	for i, c := range calls {
		flags := fmt.Sprintf("O%d", i)
		if c.quiet || together {
			flags += " q"
		}
		if c.asks {
			flags += " c"
		}
		flags += metaModes[c.verb]
		switch c.verb {
		case doGet:
			b = fmt.Appendf(b, "mg %s v f %s\r\n", c.key, flags)
		case doGat:
			b = fmt.Appendf(b, "mg %s v f T%d %s\r\n", c.key, c.expiry, flags)
		case doTouch:
			b = fmt.Appendf(b, "mg %s T%d %s\r\n", c.key, c.expiry, flags)
		case doDelete:
			b = fmt.Appendf(b, "md %s %s\r\n", c.key, flags)
		case doFlush:
			b = append(b, "flush_all\r\n"...)
		case doIncr, doDecr:
			if c.creates {
				flags += fmt.Sprintf(" N%d J%d", c.expiry, c.delta)
			}
			b = fmt.Appendf(b, "ma %s D%d v %s\r\n", c.key, c.delta, flags)
		default:
			if c.verb == doCas {
				flags += fmt.Sprintf(" C%d", c.version)
			}
			b = fmt.Appendf(b, "ms %s %d F%d T%d %s\r\n%s\r\n", c.key, len(c.value), c.flags, c.expiry, flags, c.value)
		}
	}
	if together {
		b = append(b, "mn\r\n"...)
	}
	return b
}

var metaCodes = map[string]code{"VA": done, "HD": done, "OK": done, "EN": missing, "NF": missing, "NS": refused, "EX": refused}

func (meta) decode(replies *bufio.Reader, calls []*call, together bool) error {
	for _, c := range calls {
		if together {
			c.got.code = missing
		}
	}
	for next := 0; next < len(calls) || together; {
		l, words, err := line(replies)
		if err != nil {
			return err
		}
		if together && l == "MN\r\n" {
			return nil
		}
		for next < len(calls) && calls[next].quiet {
			next++
		}
		at := next // of the first that must be answered, unless the reply says otherwise
		for _, w := range words {
			if n, err := strconv.Atoi(strings.TrimPrefix(w, "O")); err == nil && w[0] == 'O' {
				at = n
			}
		}
		if at >= len(calls) || len(words) == 0 || metaCodes[words[0]] == unknown {
			return fmt.Errorf("a meta command is answered with %q", l)
		}
		if err := calls[at].meta(replies, words); err != nil {
			return err
		}
		next = max(next, at+1)
	}
	return nil
}

// meta takes a reply in.
func (c *call) meta(replies *bufio.Reader, words []string) (err error) {
	c.got.code = metaCodes[words[0]]
	if words[0] == "VA" {
		if c.got.value, err = block(replies, words[1]); err != nil {
			return err
		}
		words = words[1:]
	}
	for _, w := range words[1:] {
		switch {
		case w[0] == 'f':
			c.got.flags = uint32(number(w[1:]))
		case w[0] == 'c' && c.asks:
			c.got.version = number(w[1:])
		}
	}
	return nil
}

// binaryDialect is the binary protocol.
type binaryDialect struct{}

// opcodes of a verb, and of its quiet form.
var opcodes = map[verb][2]byte{
	doGet: {0, 9}, doSet: {1, 0x11}, doCas: {1, 0x11}, doAdd: {2, 0x12}, doReplace: {3, 0x13}, doDelete: {4, 0x14}, doIncr: {5, 0x15}, doDecr: {6, 0x16},
	doFlush: {8, 0x18}, doAppend: {0xe, 0x19}, doPrepend: {0xf, 0x1a}, doTouch: {0x1c, 0x1c}, doGat: {0x1d, 0x1e},
}

const opcodeNoop = 0xa

func packet(opcode byte, extras []byte, key, value string, opaque int, version uint64) []byte {
	h := make([]byte, 24)
	h[0], h[1], h[4] = 0x80, opcode, byte(len(extras))
	binary.BigEndian.PutUint16(h[2:], uint16(len(key)))
	binary.BigEndian.PutUint32(h[8:], uint32(len(extras)+len(key)+len(value)))
	binary.BigEndian.PutUint32(h[12:], uint32(opaque))
	binary.BigEndian.PutUint64(h[16:], version)
	return append(append(append(h, extras...), key...), value...)
}

func (binaryDialect) encode(calls []*call, together bool) (b []byte) {
	big := binary.BigEndian
	for i, c := range calls {
		opcode := opcodes[c.verb][0]
		if c.quiet || together {
			opcode = opcodes[c.verb][1]
		}
		expiry := uint32(c.expiry)
		if c.expiry == atOnce { // the binary protocol has no negative ones, but times long ago
			expiry = 40 * 24 * 3600
		}
		var extras []byte
		switch c.verb {
		case doSet, doCas, doAdd, doReplace:
			extras = big.AppendUint32(big.AppendUint32(nil, c.flags), expiry)
		case doIncr, doDecr:
			if !c.creates {
				expiry = ^uint32(0)
			}
			extras = big.AppendUint32(big.AppendUint64(big.AppendUint64(nil, c.delta), c.delta), expiry)
		case doTouch, doGat:
			extras = big.AppendUint32(nil, expiry)
		}
		b = append(b, packet(opcode, extras, c.key, c.value, i, c.version)...)
	}
	if together {
		b = append(b, packet(opcodeNoop, nil, "", "", len(calls), 0)...)
	}
	return b
}

func (binaryDialect) decode(replies *bufio.Reader, calls []*call, together bool) error {
	for _, c := range calls { // of quiet ones; the others will be answered
		c.got.code = done
		if c.verb == doGet || c.verb == doGat {
			c.got.code = missing
		}
	}
	for {
		var h [24]byte
		if _, err := io.ReadFull(replies, h[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(h[8:]))
		if _, err := io.ReadFull(replies, body); err != nil {
			return err
		}
		at := int(binary.BigEndian.Uint32(h[12:]))
		if h[0] != 0x81 || at > len(calls) {
			return fmt.Errorf("binary commands are answered with %x %q", h, body)
		}
		if at == len(calls) {
			return nil // no operation
		}
		if err := calls[at].binary(h, body); err != nil {
			return err
		}
		if at == len(calls)-1 && !together {
			return nil
		}
	}
}

// binary takes a reply in.
func (c *call) binary(h [24]byte, body []byte) error {
	switch status := binary.BigEndian.Uint16(h[6:]); status {
	case 0:
		c.got.code = done
	case 1: // no such key
		if c.got.code = missing; c.verb == doReplace {
			c.got.code = refused
		}
	case 2, 5: // there is one, or a newer one; not stored
		c.got.code = refused
	case 6: // no number
		c.got.code = wrong
	default:
		return fmt.Errorf("%s is answered with status %d: %q", c.verb, status, body)
	}
	if c.got.code != done {
		return nil
	}
	if c.asks {
		c.got.version = binary.BigEndian.Uint64(h[16:])
	}
	switch c.verb {
	case doGet, doGat:
		c.got.flags, c.got.value = binary.BigEndian.Uint32(body), string(body[4:])
	case doIncr, doDecr:
		c.got.value = fmt.Sprint(binary.BigEndian.Uint64(body))
	}
	return nil
}
