package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
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

// ParseSpec is ReadSpec for the content of a file; errors name it by name.
func ParseSpec(name string, data []byte) (Spec, error) {
	var s Spec
	body, err := decodeStrict(name, data, &s)
	if err != nil {
		return Spec{}, err
	}
	if err := s.Message.checkUsed(); err != nil {
		return Spec{}, locateFields(name, body, err)
	}
	s = s.Default()
	if err := errors.Join(s.Validate(), s.Breaker.checkUsed(s.Targets)); err != nil {
		return Spec{}, locateFields(name, body, err)
	}
	return s, nil
}

// FileError is an error at one place of a file.
type FileError struct {
	File         string
	Line, Column int
	Err          error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// decodeStrict decodes the one YAML document in data into v, and returns it as it was parsed. It refuses keys that v has no field for, and
// values that do not fit theirs.
func decodeStrict(name string, data []byte, v any) (ast.Node, error) {
	if len(data) > maxSpecFile {
		return nil, fmt.Errorf("%s: %d bytes exceed the maximum of %d", name, len(data), maxSpecFile)
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, locate(name, err)
	}
	if len(file.Docs) == 1 && file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: is empty", name)
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("%s: holds %d YAML documents instead of one", name, len(file.Docs))
	}
	body := file.Docs[0].Body
	if err := checkPlain(name, body); err != nil {
		return nil, err
	}
	if err := checkValue(name, "", body, reflect.TypeOf(v)); err != nil {
		return nil, err
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		return nil, locate(name, err)
	}
	return body, nil
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

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSpecFile+1))
}
