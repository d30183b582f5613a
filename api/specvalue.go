package api

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// A fieldError is an error of one field of a spec, named as services[0].id.at.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// fieldErrors collects them.
type fieldErrors []error

func (l *fieldErrors) bad(field, format string, args ...any) {
	*l = append(*l, &fieldError{field, fmt.Errorf(format, args...)})
}

// locateFields adds to each of the fieldErrors joined in err its place in the file.
func locateFields(name string, body ast.Node, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		field := ""
		if f := new(fieldError); errors.As(e, &f) {
			field = f.field
		}
		errs = append(errs, fileError(name, nodeOf(body, field), e))
	}
	return errors.Join(errs...)
}

// nodeOf finds a field's value or, where the file leaves the field out, the value that would contain it.
func nodeOf(body ast.Node, field string) ast.Node {
	for field != "" {
		if path, err := yaml.PathString("$." + field); err == nil {
			if node, err := path.FilterNode(body); err == nil && node != nil {
				return node
			}
		}
		field = field[:max(strings.LastIndexAny(field, ".["), 0)]
	}
	return body
}

func fileError(name string, node ast.Node, err error) error {
	switch n := node.(type) {
	case *ast.MappingNode: // whose own token is a colon
		if !n.IsFlowStyle && len(n.Values) > 0 {
			node = n.Values[0].Key
		}
	case *ast.MappingValueNode:
		node = n.Key
	}
	at := node.GetToken().Position
	return &FileError{name, at.Line, at.Column, err}
}

// checkValue reports what in node, a field's value, does not fit type t: unknown keys, and values of another type.
func checkValue(name, field string, node ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Type() == ast.NullType || t == reflect.TypeFor[foreign]() {
		return nil
	}
	text := reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	switch kind := t.Kind(); {
	case text:
	case kind == reflect.Slice:
		if list, ok := node.(*ast.SequenceNode); ok {
			var errs []error
			for i, item := range list.Values {
				errs = append(errs, checkValue(name, fmt.Sprintf("%s[%d]", field, i), item, t.Elem()))
			}
			return errors.Join(errs...)
		}
		return misfit(name, field, node, t)
	case kind == reflect.Struct, kind == reflect.Map:
		return checkMapping(name, field, node, t)
	}
	switch node.Type() {
	case ast.FloatType, ast.InfinityType, ast.NanType:
		if kind := t.Kind(); !text && kind != reflect.String { // the decoder would truncate a number at its point
			return misfit(name, field, node, t)
		}
	}
	if _, ok := node.(ast.ScalarNode); !ok || yaml.NodeToValue(node, reflect.New(t).Interface()) != nil {
		return misfit(name, field, node, t)
	}
	return nil
}

func checkMapping(name, field string, node ast.Node, t reflect.Type) error {
	var items []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		items = n.Values
	case *ast.MappingValueNode:
		items = append(items, n)
	default:
		return misfit(name, field, node, t)
	}
	var errs []error
	for _, item := range items {
		key := item.Key.GetToken().Value
		below := strings.TrimPrefix(field+"."+key, ".")
		if t.Kind() == reflect.Map {
			errs = append(errs, checkValue(name, below, item.Value, t.Elem()))
		} else if f, ok := fieldOf(t, key); ok {
			errs = append(errs, checkValue(name, below, item.Value, f))
		} else {
			errs = append(errs, fileError(name, item.Key, fmt.Errorf("unknown field %q: use one of %s", key, strings.Join(fieldsOf(t), ", "))))
		}
	}
	return errors.Join(errs...)
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i, name := range fieldsOf(t) {
		if name == key {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

// fieldsOf names the fields of a struct as YAML has them.
func fieldsOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	return names
}

// misfit says what was found in place of a value of type t.
func misfit(name, field string, node ast.Node, t reflect.Type) error {
	found := fmt.Sprintf("%.40q", node.GetToken().Value)
	switch n := node.(type) {
	case *ast.SequenceNode:
		found = "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		found = "a mapping"
	case *ast.LiteralNode:
		found = fmt.Sprintf("%.40q", n.Value.Value)
	}
	err := fmt.Errorf("%s is not %s", found, wanted(node, t))
	if field != "" {
		err = &fieldError{field, err}
	}
	return fileError(name, node, err)
}

// The forms of sizes and durations.
const (
	sizeForm     = "a size: write it as 4096, 64KiB, 16MiB or 1GiB"
	durationForm = "a duration: write it as 100us, 20ms or 5s"
)

// wanted describes values of type t.
func wanted(node ast.Node, t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Bytes]():
		return sizeForm
	case reflect.TypeFor[Duration]():
		return durationForm
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number, such as 3"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Slice:
		if _, ok := node.(ast.ScalarNode); ok {
			return fmt.Sprintf("a list: write [%.40s]", node.GetToken().Value)
		}
		return "a list: write [a, b]"
	case reflect.Struct:
		return "a mapping: write FIELD: VALUE, with one of the fields " + strings.Join(fieldsOf(t), ", ")
	case reflect.Map:
		return "a mapping: write NAME: VALUE"
	}
	return "text: write one value"
}
