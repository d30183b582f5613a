package memcached

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A verb is what an operation does, in whatever protocol.
type verb string

const (
	doGet     verb = "get"
	doGat     verb = "gat" // get, and another expiry
	doTouch   verb = "touch"
	doSet     verb = "set"
	doAdd     verb = "add"
	doReplace verb = "replace"
	doAppend  verb = "append"
	doPrepend verb = "prepend"
	doCas     verb = "cas"
	doIncr    verb = "incr"
	doDecr    verb = "decr"
	doDelete  verb = "delete"
	doFlush   verb = "flush_all" // for the model of one key like delete
)

// An operation is what a client asks for.
type operation struct {
	verb    verb
	key     string
	sort    sort // the key's
	value   string
	flags   uint32
	expiry  int
	version uint64 // cas: that the value must have
	delta   uint64
	creates bool // incr, decr: stores delta where there is no value
	asks    bool // for the value's version, too
	quiet   bool // is not answered, or in certain cases only
}

// A code is how an operation went.
type code int

const (
	unknown code = iota // was not answered
	done
	missing // there was no value
	refused // there was one, or none, or one of another version
	wrong   // the value is no number
)

// A result is what the client was answered.
type result struct {
	code    code
	value   string
	flags   uint32
	version uint64 // 0: was not told
}

func (r result) String() string {
	return fmt.Sprintf("%s %.40q flags %d version %d", []string{"unknown", "done", "missing", "refused", "wrong"}[r.code], r.value, r.flags, r.version)
}

// Times after which values expire. No test is decided by when one of the brief ones does.
const (
	never   = 0
	late    = 100000
	atOnce  = -1
	briefly = 3 // seconds, at most
)

// An item is the model of one key.
type item struct {
	there   bool
	brief   bool // it may expire at any time
	value   string
	flags   uint32
	version uint64 // as memcached numbers them: with each change to a larger number
	exact   bool   // the version is known; or else it is larger than this
}

// step says whether an item can be asked and answer so, and what it is afterwards.
func (i item) step(o *operation, r *result) (bool, item) {
	if ok, next := i.apply(o, r); ok || !i.brief {
		return ok, next
	}
	return i.gone().apply(o, r)
}

func (i item) apply(o *operation, r *result) (bool, item) {
	if r.code == refused && o.creates {
		return true, i // memcached found no value, and then that another client had stored one
	}
	next, want := i.execute(o)
	switch {
	case r.code == unknown:
		return true, next
	case r.code != want:
		return false, i
	case r.code != done:
		return true, next
	}
	switch o.verb {
	case doGet, doGat:
		known, now := i.confirm(r.version)
		if now.there = next.there; o.verb == doGat {
			now = now.until(o.expiry)
		}
		value := strings.TrimRight(r.value, " ") // with which memcached may fill up a number that has become shorter
		return known && value == i.value && r.flags == i.flags, now
	case doIncr, doDecr:
		return r.value == "" || r.value == next.value, next // a quiet one is not told
	}
	return next.confirm(r.version)
}

// execute is what memcached does and answers.
func (i item) execute(o *operation) (item, code) {
	switch o.verb {
	case doSet:
		return i.put(o), done
	case doFlush:
		return i.gone(), done
	case doAdd:
		if i.there {
			return i, refused
		}
		return i.put(o), done
	case doIncr, doDecr:
		return i.count(o)
	}
	if !i.there {
		if o.verb == doReplace || o.verb == doAppend || o.verb == doPrepend {
			return i, refused
		}
		return i, missing
	}
	switch o.verb {
	case doCas:
		if !i.exact || i.version != o.version { // the client had seen that version, so if another is not known it is a newer one
			return i, refused
		}
		return i.put(o), done
	case doReplace:
		return i.put(o), done
	case doAppend:
		return i.with(i.value + o.value), done
	case doPrepend:
		return i.with(o.value + i.value), done
	case doDelete:
		return i.gone(), done
	case doTouch, doGat:
		return i.until(o.expiry), done
	}
	return i, done
}

func (i item) gone() item { return item{version: i.version} }

func (i item) with(value string) item {
	i.value, i.exact = value, false
	return i
}

func (i item) put(o *operation) item {
	return item{there: true, value: o.value, flags: o.flags, version: i.version}.until(o.expiry)
}

func (i item) until(expiry int) item {
	if expiry == atOnce {
		return i.gone()
	}
	i.brief = expiry > 0 && expiry <= briefly
	return i
}

func (i item) count(o *operation) (item, code) {
	if !i.there && o.creates {
		i.there, i.flags = true, 0
		return i.with(fmt.Sprint(o.delta)).until(o.expiry), done
	} else if !i.there {
		return i, missing
	}
	n, err := strconv.ParseUint(i.value, 10, 64)
	if err != nil {
		return i, wrong
	}
	if o.verb == doIncr {
		n += o.delta
	} else {
		n -= min(n, o.delta)
	}
	return i.with(fmt.Sprint(n)), done
}

// confirm says whether the item can have this version, and remembers it.
func (i item) confirm(version uint64) (bool, item) {
	if version == 0 {
		return true, i
	}
	if i.exact && version != i.version || !i.exact && version <= i.version {
		return false, i
	}
	i.version, i.exact = version, i.there
	return true, i
}

// linear is a memcached that has one key.
var linear = porcupine.Model{
	Init: func() any { return item{} },
	Step: func(state, input, output any) (bool, any) {
		ok, next := state.(item).step(input.(*operation), output.(*result))
		return ok, next
	},
	DescribeOperation: func(input, output any) string {
		o := input.(*operation)
		var s strings.Builder
		fmt.Fprintf(&s, "%s %.40s %.40q flags %d expiry %d", o.verb, o.key, o.value, o.flags, o.expiry)
		fmt.Fprintf(&s, " version %d by %d: %v", o.version, o.delta, output)
		return s.String()
	},
}
