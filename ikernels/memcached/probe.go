package memcached

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A probe asks the server for values, on a connection of its own. It asks by meta commands (protocol.txt of memcached), for a GET's reply does not
// say when the value expires.
type probe struct {
	conn    net.Conn
	replies *bufio.Reader
	ask     []byte
}

// An answer is what the server says of a key.
type answer struct {
	value
	found bool
	left  int64 // seconds until the value expires, rounded up; -1: it does not
	won   bool  // the server has chosen us to renew a value that is marked as stale
}

// patience is how long the server may take to answer.
const patience = 2 * time.Second

func dialProbe(server netip.AddrPort) (*probe, error) {
	conn, err := net.DialTimeout("tcp", server.String(), patience)
	if err != nil {
		return nil, fmt.Errorf("connect to memcached: %w", err)
	}
	return &probe{conn: conn, replies: bufio.NewReaderSize(conn, 1<<16)}, nil
}

func (p *probe) close() error { return p.conn.Close() }

// get asks for keys, and calls with each answer, in order. The answer's bytes are the caller's only until it returns.
func (p *probe) get(keys [][]byte, each func(i int, a *answer)) error {
	p.ask = p.ask[:0]
	for _, key := range keys {
		p.ask = append(append(append(p.ask, "mg "...), key...), " f c t v\r\n"...)
	}
	if err := p.send(p.ask); err != nil {
		return err
	}
	var a answer
	for i, key := range keys {
		if err := p.read(&a); err != nil {
			return fmt.Errorf("read memcached's answer: %w", err)
		}
		a.key = key
		each(i, &a)
	}
	return nil
}

func (p *probe) send(request []byte) error {
	if err := p.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := p.conn.Write(request); err != nil {
		return fmt.Errorf("ask memcached: %w", err)
	}
	return nil
}

// read reads an answer to "mg KEY f c t v".
func (p *probe) read(a *answer) error {
	line, err := p.line()
	if err != nil {
		return err
	}
	*a = answer{value: value{data: a.data[:0]}}
	if line == "EN" {
		return nil
	}
	size, err := a.parse(line)
	if err != nil {
		return err
	}
	a.data = append(a.data, make([]byte, size+2)...)
	if _, err := io.ReadFull(p.replies, a.data); err != nil {
		return err
	}
	if !bytes.HasSuffix(a.data, []byte("\r\n")) {
		return fmt.Errorf("no line ends behind the value of %q", line)
	}
	a.data = a.data[:size]
	a.found = true
	return nil
}

// valueMax is the largest value that a server may have, in bytes (memcached's -I).
const valueMax = 1 << 30

// parse reads the line before a value: "VA size" and flags of one letter each. It returns the size.
func (a *answer) parse(line string) (size int, err error) {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "VA" {
		return 0, fmt.Errorf("%q is no answer to mg", line)
	}
	size, err = strconv.Atoi(words[1])
	if err != nil || size < 0 || size > valueMax {
		return 0, fmt.Errorf("%q names no size", line)
	}
	seen := map[byte]bool{}
	for _, w := range words[2:] {
		var err error
		switch seen[w[0]] = true; w[0] {
		case 'f':
			var flags uint64
			flags, err = strconv.ParseUint(w[1:], 10, 32)
			a.flags = uint32(flags)
		case 'c':
			a.version, err = strconv.ParseUint(w[1:], 10, 64)
		case 't':
			a.left, err = strconv.ParseInt(w[1:], 10, 64)
		case 'W':
			a.won = true
		}
		if err != nil {
			return 0, fmt.Errorf("flag %q of %q: %w", w, line, err)
		}
	}
	if !seen['f'] || !seen['c'] || !seen['t'] {
		return 0, fmt.Errorf("%q lacks flags that were asked for", line)
	}
	return size, nil
}

// line reads a line of an answer, without its end.
func (p *probe) line() (string, error) {
	line, err := p.replies.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

// giveBack has the server choose another client to renew a stale value, as it would have without us. If the value is no longer this version,
// nothing needs to be given back.
func (p *probe) giveBack(a *answer) error {
	if err := p.send(fmt.Appendf(nil, "md %s I C%d\r\n", a.key, a.version)); err != nil {
		return err
	}
	_, err := p.line()
	return err
}

// statistics asks for the server's statistics of one kind: "" for the general ones.
func (p *probe) statistics(kind string) (map[string]string, error) {
	if err := p.send([]byte(strings.TrimSpace("stats "+kind) + "\r\n")); err != nil {
		return nil, err
	}
	stats := map[string]string{}
	for {
		line, err := p.line()
		if err != nil {
			return nil, err
		}
		if line == "END" {
			return stats, nil
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "STAT "), " ")
		stats[name] = value
		if !strings.HasPrefix(line, "STAT ") {
			return nil, fmt.Errorf("memcached answers %q to stats", line)
		}
	}
}

// addresses checks that the server can be asked and speaks UDP at its TCP port, and returns the addresses that it listens at.
func (p *probe) addresses(port uint16) ([]netip.Addr, error) {
	if err := p.get([][]byte{[]byte("lambdanic")}, func(int, *answer) {}); err != nil {
		return nil, fmt.Errorf("%w: a cache needs a memcached of version 1.6 or newer that speaks text (not -B binary), without TLS and passwords", err)
	}
	if _, err := p.flushIn(); err != nil {
		return nil, err
	}
	settings, err := p.statistics("settings")
	if err != nil {
		return nil, err
	}
	if settings["udpport"] != strconv.Itoa(int(port)) {
		return nil, fmt.Errorf("memcached answers no UDP at port %d: start it with -U %d", port, port)
	}
	var addrs []netip.Addr
	for name := range strings.SplitSeq(settings["inter"], ",") {
		if name = strings.TrimSpace(name); name == "" || name == "NULL" {
			addrs = append(addrs, netip.IPv4Unspecified(), netip.IPv6Unspecified())
			continue
		}
		if host, at, err := net.SplitHostPort(name); err == nil {
			if at != strconv.Itoa(int(port)) {
				return nil, fmt.Errorf("memcached listens at port %s, too, where its clients' writes would not be seen: start it with one port", at)
			}
			name = host
		}
		ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", name)
		if err != nil {
			return nil, fmt.Errorf("find the address %q at which memcached listens: %w", name, err)
		}
		for _, ip := range ips {
			addrs = append(addrs, ip.Unmap())
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs), nil
}

// clockStart is what memcached's clock shows when it starts, in seconds, so that no time is 0 (ITEM_UPDATE_INTERVAL).
const clockStart = 60

// flushIn says in how many seconds, rounded up, the server will forget all that it has now: a client has said flush_all with a delay. 0: it
// will not.
func (p *probe) flushIn() (int64, error) {
	settings, err := p.statistics("settings")
	if err != nil {
		return 0, err
	}
	general, err := p.statistics("")
	if err != nil {
		return 0, err
	}
	oldest, err1 := strconv.ParseInt(settings["oldest"], 10, 64)
	uptime, err2 := strconv.ParseInt(general["uptime"], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("memcached does not say when it flushes: %w", err)
	}
	return max(0, oldest-uptime-clockStart), nil
}
