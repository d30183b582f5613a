package memcached

import (
	"fmt"
	"strings"
)

// What is done with the keys of a sort, more often where it stands more often. A verb that builds on a value is not sent by UDP: where its reply is
// lost nobody knows when it ends.
var changes = map[sort][]verb{
	plain: {
		doSet, doSet, doSet, doSet, doSet, doAdd, doAdd, doReplace, doReplace, doAppend, doPrepend, doCas, doCas, doCas, doCas, doDelete, doTouch, doGat, doIncr,
	},
	numeric: {doSet, doSet, doSet, doAdd, doAdd, doReplace, doIncr, doIncr, doIncr, doIncr, doDecr, doDecr, doDecr, doDelete, doTouch, doGat},
	brief:   {doSet, doSet, doSet, doSet, doAdd, doAdd, doReplace, doAppend, doCas, doDelete, doTouch, doTouch, doGat, doGat},
}

// choose chooses the operations of a turn, and whether they are a GET of several keys.
func (u *user) choose() (calls []*call, together bool) {
	reads := 85
	if u.udp {
		reads = 97
	}
	switch {
	case !u.udp && !u.meta && u.IntN(8000) == 0:
		return u.flushAll(), false
	case u.IntN(100) < reads:
		return u.reads()
	case u.udp || u.IntN(2) == 0:
		return []*call{u.change(false)}, false
	}
	for range 1 + u.IntN(2) {
		calls = append(calls, u.change(u.IntN(2) == 0))
	}
	if u.IntN(2) == 0 {
		return append(calls, u.change(false)), false
	}
	return append(calls, u.read(u.key())), false
}

// flushAll chooses a flush_all, quiet or not, and what is answered behind it.
func (u *user) flushAll() []*call {
	return []*call{{operation: operation{verb: doFlush, quiet: u.IntN(2) == 0}}, u.read(u.key())}
}

// reads chooses a GET of one or several keys.
func (u *user) reads() (calls []*call, together bool) {
	if u.IntN(4) > 0 {
		return []*call{u.read(u.key())}, false
	}
	keys, asks := map[string]bool{}, u.IntN(2) == 0
	for range 2 + u.IntN(4) {
		if k := u.key(); !keys[k.name] && len(k.name) < 100 {
			keys[k.name] = true
			c := u.read(k)
			c.asks = asks && k.sort != numeric
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return u.reads()
	}
	return calls, true
}

// key chooses a key. Half of the time it is one of a few.
func (u *user) key() key {
	n := len(u.keys)
	if u.IntN(2) == 0 {
		n = 12
	}
	return u.keys[u.IntN(n)]
}

func (u *user) read(k key) *call {
	return &call{operation: operation{verb: doGet, key: k.name, sort: k.sort, asks: u.asks(k)}}
}

// asks chooses whether to ask for the version of a key. Not of a number: memcached alone may tell a number that is just
// replaced with the version of the next (do_add_delta).
func (u *user) asks(k key) bool { return k.sort != numeric && u.IntN(2) == 0 }

// change chooses an operation that changes a key. A quiet one goes without an answer; then its time is that of the whole turn.
func (u *user) change(quiet bool) *call {
	k := u.key()
	for k.sort == brief && u.IntN(32) > 0 { // or no value would live until it expires
		k = u.key()
	}
	o := operation{key: k.name, sort: k.sort, quiet: quiet}
	sure := !quiet && !u.udp // will be answered
	for o.verb = ""; !u.can(o.verb, k, sure); {
		o.verb = changes[k.sort][u.IntN(len(changes[k.sort]))]
	}
	if o.verb == doGat || o.verb == doTouch {
		o.quiet = false
	}
	u.made++
	switch {
	case o.verb == doTouch || o.verb == doGat || o.verb == doIncr || o.verb == doDecr || o.verb == doDelete:
	case k.sort == numeric:
		o.value = fmt.Sprint(u.IntN(1000))
	case o.verb == doAppend || o.verb == doPrepend:
		o.value = fmt.Sprintf("<%d.%d>", u.number, u.made)
	case u.IntN(10) == 0:
		o.value = fmt.Sprintf("%d.%d%s", u.number, u.made, strings.Repeat("x", u.IntN(900)))
	default:
		o.value = fmt.Sprintf("%d.%d\r\nset %d", u.number, u.made, u.made)
	}
	o.flags, o.delta = u.Uint32N(4), uint64(u.IntN(1000))
	if o.verb == doCas {
		o.version = u.seen[k.name]
	}
	o.creates = (o.verb == doIncr || o.verb == doDecr) && (u.meta || u.binary) && k.sort == numeric && u.IntN(2) == 0
	if !o.creates {
		o.expiry = u.expiry(k)
	}
	o.asks = u.asks(k) && (o.verb == doGat || (o.verb == doSet || o.verb == doCas) && !o.quiet)
	return &call{operation: o}
}

// can says whether a verb can be sent for a key.
func (u *user) can(v verb, k key, sure bool) bool {
	switch v {
	case "":
		return false
	case doSet, doDelete:
		return true
	case doCas:
		if u.seen[k.name] == 0 {
			return false
		}
	case doIncr, doDecr:
		if k.sort != numeric && (u.meta || !sure) {
			return false // for an error needs to be matched with its command
		}
	}
	if o := (operation{verb: v}); u.udp && o.builds() {
		return false
	}
	return sure || k.sort != brief // of what may have expired, only the answer says what became of it
}

func (u *user) expiry(k key) int {
	switch n := u.IntN(24); {
	case n == 0:
		return atOnce
	case n < 8:
		return late
	case k.sort == brief && n < 22:
		return 1 + u.IntN(briefly)
	}
	return never
}
