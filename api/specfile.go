package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// SpecFile is the name of a lambda's spec in its directory.
const SpecFile = "lambda.yml"

// maxSpecFile is far above any real spec. The YAML parser's time grows faster than its input.
const maxSpecFile = 64 << 10

// ReadSpec reads the spec at path, fills in its defaults and validates it.
func ReadSpec(path string) (Spec, error) {
	data, err := readBounded(path)
	if err != nil {
		return Spec{}, fmt.Errorf("read spec: %w", err)
	}
	return ParseSpec(path, data)
}

// ParseSpec is ReadSpec of a file whose content is at hand; name stands in its errors.
func ParseSpec(name string, data []byte) (Spec, error) {
	var s Spec
	if err := decodeStrict(name, data, &s); err != nil {
		return Spec{}, err
	}
	s = s.Default()
	if err := s.Validate(); err != nil {
		return Spec{}, prefixEach(name, err)
	}
	return s, nil
}

// FileError is what is wrong at one place of a file.
type FileError struct {
	File         string
	Line, Column int
	Err          error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// decodeStrict decodes the one YAML document in data into v, and refuses keys that v has no field for.
func decodeStrict(name string, data []byte, v any) error {
	if len(data) > maxSpecFile {
		return fmt.Errorf("%s: %d bytes exceed the maximum of %d", name, len(data), maxSpecFile)
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return locate(name, err)
	}
	if len(file.Docs) == 1 && file.Docs[0].Body == nil {
		return fmt.Errorf("%s: is empty", name)
	}
	if len(file.Docs) != 1 {
		return fmt.Errorf("%s: holds %d YAML documents instead of one", name, len(file.Docs))
	}
	if err := checkPlain(name, file.Docs[0].Body); err != nil {
		return err
	}
	if err := checkKeys(name, file.Docs[0].Body, reflect.TypeOf(v)); err != nil {
		return err
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		return locate(name, err)
	}
	return nil
}

// checkPlain refuses tags, anchors, aliases and merges: no spec needs them, they make small files large, and the YAML
// library has panicked on odd ones.
func checkPlain(name string, node ast.Node) error {
	var odd plainVisitor
	ast.Walk(&odd, node)
	if odd.found == nil {
		return nil
	}
	at := odd.found.GetToken().Position
	return &FileError{name, at.Line, at.Column, errors.New("tags, anchors, aliases and merges are not supported: write the value out")}
}

type plainVisitor struct{ found ast.Node }

func (v *plainVisitor) Visit(node ast.Node) ast.Visitor {
	switch node.Type() {
	case ast.TagType, ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		v.found = node
		return nil
	}
	return v
}

// checkKeys reports the keys in node that a value of type t has no field for, and which fields there are.
func checkKeys(name string, node ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var errs []error
	switch n := node.(type) {
	case *ast.SequenceNode:
		for _, item := range n.Values {
			if t.Kind() == reflect.Slice {
				errs = append(errs, checkKeys(name, item, t.Elem()))
			}
		}
	case *ast.MappingNode:
		for _, item := range n.Values {
			errs = append(errs, checkKey(name, item, t))
		}
	case *ast.MappingValueNode:
		errs = append(errs, checkKey(name, n, t))
	}
	return errors.Join(errs...)
}

func checkKey(name string, item *ast.MappingValueNode, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Map:
		return checkKeys(name, item.Value, t.Elem())
	case reflect.Struct:
	default:
		return nil // the decoder reports a mapping in place of something else
	}
	key, allowed := item.Key.GetToken(), make([]string, 0, t.NumField())
	for i := range t.NumField() {
		field, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if field == key.Value && t.Field(i).Type.Kind() == reflect.Slice && isScalar(item.Value) {
			at := item.Value.GetToken()
			return &FileError{name, at.Position.Line, at.Position.Column, fmt.Errorf("%s is a list: write [%s]", field, at.Value)}
		}
		if field == key.Value {
			return checkKeys(name, item.Value, t.Field(i).Type)
		}
		allowed = append(allowed, field)
	}
	if len(allowed) == 0 {
		return nil // foreign: anything goes
	}
	return &FileError{
		name, key.Position.Line, key.Position.Column,
		fmt.Errorf("unknown field %q: use one of %s", key.Value, strings.Join(allowed, ", ")),
	}
}

func isScalar(node ast.Node) bool {
	_, ok := node.(ast.ScalarNode)
	return ok && node.Type() != ast.NullType
}

// locate turns an error of the YAML library into a FileError.
func locate(name string, err error) error {
	var at yaml.Error
	if !errors.As(err, &at) {
		return fmt.Errorf("%s: %w", name, err)
	}
	line, column := 1, 1
	if token := at.GetToken(); token != nil && token.Position != nil {
		line, column = token.Position.Line, token.Position.Column
	}
	said := at.GetMessage()
	if strings.Contains(said, "'\t' that cannot start") {
		said = "a tab: YAML indents by spaces"
	}
	return &FileError{name, line, column, errors.New(said)}
}

// prefixEach puts prefix before each of the errors joined in err.
func prefixEach(prefix string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	errs := slices.Clone(joined.Unwrap())
	for i, e := range errs {
		errs[i] = fmt.Errorf("%s: %w", prefix, e)
	}
	return errors.Join(errs...)
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSpecFile+1))
}
