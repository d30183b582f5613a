package memcached

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestStaleIsFound gives the checker histories of one key that are made by hand: it must tell those that no memcached alone can have.
func TestStaleIsFound(t *testing.T) {
	type op = porcupine.Operation
	at := func(begin, end int64, o operation, r result) op {
		return op{Input: &o, Output: &r, Call: begin, Return: end}
	}
	put := func(begin, end int64, value string, expiry int) op {
		return at(begin, end, operation{verb: doSet, value: value, expiry: expiry}, result{code: done})
	}
	got := func(begin, end int64, value string, version uint64) op {
		return at(begin, end, operation{verb: doGet}, result{code: done, value: value, version: version})
	}
	none := func(begin, end int64) op { return at(begin, end, operation{verb: doGet}, result{code: missing}) }
	gone := func(begin, end int64, v verb) op { return at(begin, end, operation{verb: v}, result{code: done}) }
	quiet := func(begin, end int64, o operation) op { return at(begin, end, o, result{}) }
	cas := func(begin, end int64, version uint64, c code) op {
		return at(begin, end, operation{verb: doCas, value: "new", version: version}, result{code: c})
	}
	count := func(begin, end int64, v verb, by uint64, value string) op {
		return at(begin, end, operation{verb: v, delta: by}, result{code: done, value: value})
	}
	for name, c := range map[string]struct {
		history []op
		legal   bool
	}{
		"a stale read":                {[]op{put(0, 1, "a", 0), put(2, 3, "b", 0), got(4, 5, "a", 0)}, false},
		"the same while b is set":     {[]op{put(0, 1, "a", 0), put(2, 5, "b", 0), got(3, 4, "a", 0), got(6, 7, "b", 0)}, true},
		"new, then old":               {[]op{put(0, 1, "a", 0), put(2, 9, "b", 0), got(3, 4, "b", 0), got(5, 6, "a", 0)}, false},
		"a read after a delete":       {[]op{put(0, 1, "a", 0), gone(2, 3, doDelete), got(4, 5, "a", 0)}, false},
		"a read after a flush_all":    {[]op{put(0, 1, "a", 0), gone(2, 3, doFlush), got(4, 5, "a", 0)}, false},
		"after one under way":         {[]op{put(0, 1, "a", 0), gone(2, 6, doFlush), got(4, 5, "a", 0), none(7, 8)}, true},
		"a read after an expiry":      {[]op{put(0, 1, "a", 2), got(2, 3, "a", 0), none(4, 5), got(6, 7, "a", 0)}, false},
		"an expiry":                   {[]op{put(0, 1, "a", 2), got(2, 3, "a", 0), none(4, 5)}, true},
		"a value that goes":           {[]op{put(0, 1, "a", late), none(4, 5)}, false},
		"one that expires at once":    {[]op{put(0, 1, "a", atOnce), got(4, 5, "a", 0)}, false},
		"an older version":            {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), put(4, 5, "a", 0), got(6, 7, "a", 8)}, false},
		"the version of before":       {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), put(4, 5, "a", 0), got(6, 7, "a", 9)}, false},
		"another version":             {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), got(6, 7, "a", 10)}, false},
		"a newer version":             {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), put(4, 5, "a", 0), got(6, 7, "a", 10)}, true},
		"cas of an old version":       {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), put(4, 5, "b", 0), cas(6, 7, 9, done)}, false},
		"cas that is refused":         {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), put(4, 5, "b", 0), cas(6, 7, 9, refused)}, true},
		"cas without need refused":    {[]op{put(0, 1, "a", 0), got(2, 3, "a", 9), cas(6, 7, 9, refused)}, false},
		"a lost append":               {[]op{put(0, 1, "a", 0), quiet(2, 3, operation{verb: doAppend, value: "b"}), got(4, 5, "a", 0)}, false},
		"an append":                   {[]op{put(0, 1, "a", 0), quiet(2, 3, operation{verb: doAppend, value: "b"}), got(4, 5, "ab", 0)}, true},
		"an append, perhaps later":    {[]op{put(0, 1, "a", 0), quiet(2, 9, operation{verb: doAppend, value: "b"}), got(4, 5, "a", 0)}, true},
		"two that count the same":     {[]op{put(0, 1, "7", 0), count(2, 5, doIncr, 1, "8"), count(3, 6, doIncr, 1, "8")}, false},
		"a number filled up":          {[]op{put(0, 1, "10", 0), count(2, 5, doDecr, 1, "9"), got(6, 7, "9 ", 0)}, true},
		"a touch for ever":            {[]op{put(0, 1, "a", 2), gone(2, 3, doTouch), none(4, 5)}, false},
		"what nobody has ever stored": {[]op{got(0, 1, "a", 0)}, false},
	} {
		if got := porcupine.CheckOperations(linear, c.history); got != c.legal {
			t.Errorf("%s: is %v, want %v", name, got, c.legal)
		}
	}
}
