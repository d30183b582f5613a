package p4

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// node is a JSON value with its place.
type node struct {
	position
	kind   nodeKind
	text   string  // of a string or number
	fields []entry // of an object
	items  []node  // of an array
}

type entry struct {
	position
	key   string
	value node
}

type nodeKind int

const (
	nodeOther nodeKind = iota // true, false, null
	nodeText                  // a string, or a number as it was written
	nodeObject
	nodeArray
)

func (k nodeKind) String() string {
	return [...]string{"true, false or null", "a string", "an object", "an array"}[k]
}

const maxRules = 4 << 20 // bytes of a rules file

// jsonReader reads a whole file into nodes.
type jsonReader struct {
	file    string
	data    []byte
	decoder *json.Decoder
	lines   []int // where each line begins
	errors  *errorList
}

// parseJSON returns the only value in a file, or reports where the file is not JSON.
func parseJSON(file string, data []byte, errors *errorList) (node, bool) {
	begin := position{file, 1, 1}
	if len(data) > maxRules {
		errors.add(begin, "the file has more than %d bytes", maxRules)
		return node{}, false
	}
	r := &jsonReader{file: file, data: data, decoder: json.NewDecoder(bytes.NewReader(data)), lines: []int{0}, errors: errors}
	for i, c := range data {
		if c == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	r.decoder.UseNumber()
	n, ok := r.value(0)
	if !ok {
		return n, false
	}
	blank := r.next(blanks)
	if _, err := r.decoder.Token(); err != io.EOF {
		r.errors.add(r.at(blank), "expected end of file behind the value")
		return n, false
	}
	return n, true
}

// next is the place of the first byte ahead that is not in skip.
func (r *jsonReader) next(skip string) int {
	at := int(r.decoder.InputOffset())
	for at < len(r.data) && strings.IndexByte(skip, r.data[at]) >= 0 {
		at++
	}
	return at
}

const (
	blanks   = " \t\r\n"
	betweens = blanks + ",:" // what may be between two tokens
)

// at is the place of a byte.
func (r *jsonReader) at(offset int) position {
	offset = min(offset, len(r.data))
	line, found := slices.BinarySearch(r.lines, offset)
	if !found {
		line--
	}
	return position{r.file, line + 1, offset - r.lines[line] + 1}
}

func (r *jsonReader) token() (json.Token, position, bool) {
	at, blank := r.next(betweens), r.next(blanks)
	t, err := r.decoder.Token()
	if err == nil {
		return t, r.at(at), true
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		r.errors.add(r.at(max(blank, int(syntax.Offset)-1)), "not JSON: %v", syntax)
	} else {
		r.errors.add(r.at(at), "not JSON: file ends too early: expected a value, \"]\" or \"}\"")
	}
	return nil, r.at(at), false
}

func (r *jsonReader) value(depth int) (node, bool) {
	t, at, ok := r.token()
	if !ok {
		return node{}, false
	}
	n := node{position: at}
	if depth > maxDepth {
		r.errors.add(at, "nested more than %d deep", maxDepth)
		return n, false
	}
	switch t := t.(type) {
	case string:
		n.kind, n.text = nodeText, t
	case json.Number:
		n.kind, n.text = nodeText, t.String()
	case json.Delim:
		if t == '{' {
			return r.object(n, depth)
		}
		if t == '[' {
			return r.array(n, depth)
		}
	}
	return n, true
}

func (r *jsonReader) object(n node, depth int) (node, bool) {
	n.kind = nodeObject
	seen := map[string]bool{}
	for r.decoder.More() {
		t, at, ok := r.token()
		if !ok {
			return n, false
		}
		key, _ := t.(string) // the decoder accepts only strings
		v, ok := r.value(depth + 1)
		if !ok {
			return n, false
		}
		if seen[key] {
			r.errors.add(at, "%q stands twice", key)
		}
		seen[key] = true
		n.fields = append(n.fields, entry{at, key, v})
	}
	_, _, ok := r.token()
	return n, ok
}

func (r *jsonReader) array(n node, depth int) (node, bool) {
	n.kind = nodeArray
	for r.decoder.More() {
		v, ok := r.value(depth + 1)
		if !ok {
			return n, false
		}
		n.items = append(n.items, v)
	}
	_, _, ok := r.token()
	return n, ok
}
