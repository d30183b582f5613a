package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// fault looks for what cannot be decoded in an object, since the decoder's own error does not say where it is. It is nil if it finds nothing.
type fault struct {
	path string // as YAML's paths have it
	text string
}

// Error has the field, in the words of the file.
func (f *fault) Error() string {
	if at := strings.TrimPrefix(strings.TrimPrefix(f.path, "$"), "."); at != "" {
		return at + ": " + f.text
	}
	return f.text
}

// findFault finds the first fault of JSON that is to be of the type of to.
func findFault(data []byte, to any) *fault {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return check(v, reflect.TypeOf(to), "$")
}

// check compares a value with a type. A null is of any.
func check(v any, t reflect.Type, path string) *fault {
	if t.Kind() == reflect.Pointer {
		return check(v, t.Elem(), path)
	}
	if v == nil {
		return nil
	}
	switch {
	case t == reflect.TypeFor[Vector]():
		return checkObject(v, path, func(name string) (reflect.Type, string) {
			if !slices.Contains(resourceNames[:], name) {
				return nil, fmt.Sprintf("resource %q: it has to be one of %s", name, strings.Join(resourceNames[:], ", "))
			}
			return reflect.TypeFor[int64](), ""
		})
	case t.Kind() == reflect.Struct:
		return checkObject(v, path, fieldOf(t))
	case t.Kind() == reflect.Map:
		return checkObject(v, path, func(string) (reflect.Type, string) { return t.Elem(), "" })
	case t.Kind() == reflect.Slice:
		return checkList(v, t, path)
	}
	return checkScalar(v, t, path)
}

func checkObject(v any, path string, of func(name string) (reflect.Type, string)) *fault {
	object, ok := v.(map[string]any)
	if !ok {
		return &fault{path, fmt.Sprintf("%s is no object of names and values", shown(v))}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		t, unknown := of(name)
		if t == nil {
			return &fault{path, unknown}
		}
		if f := check(object[name], t, path+"."+name); f != nil {
			return f
		}
	}
	return nil
}

// fieldOf finds the type of a struct's field.
func fieldOf(t reflect.Type) func(name string) (reflect.Type, string) {
	return func(name string) (reflect.Type, string) {
		var names []string
		for i := range t.NumField() {
			tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if strings.EqualFold(tag, name) { // as encoding/json does
				return t.Field(i).Type, ""
			}
			names = append(names, tag)
		}
		return nil, fmt.Sprintf("unknown field %q: it has to be one of %s", name, strings.Join(names, ", "))
	}
}

func checkList(v any, t reflect.Type, path string) *fault {
	list, ok := v.([]any)
	if !ok {
		return &fault{path, fmt.Sprintf("%s is no list", shown(v))}
	}
	for i := range list {
		if f := check(list[i], t.Elem(), fmt.Sprintf("%s[%d]", path, i)); f != nil {
			return f
		}
	}
	return nil
}

func checkScalar(v any, t reflect.Type, path string) *fault {
	what := map[reflect.Kind]string{reflect.String: "text: quote it", reflect.Bool: "true or false"}[t.Kind()]
	if what == "" {
		what = "a whole number"
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, reflect.New(t).Interface())
	}
	if err != nil {
		return &fault{path, fmt.Sprintf("%s has to be %s", shown(v), what)}
	}
	return nil
}

const mostShown = 40 // bytes

func shown(v any) string {
	text, _ := json.Marshal(v) // it was JSON
	if len(text) > mostShown {
		return string(text[:mostShown]) + "..."
	}
	return string(text)
}

// explainFault says where in a file what is that a decoder refused. Data is source, or what it was converted to.
func explainFault(source, data []byte, to any, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int64(len(data)), syntax.Offset)], []byte("\n")), err)
	}
	f := findFault(data, to)
	if f == nil {
		return err
	}
	if at := line(source, f.path); at > 0 {
		return fmt.Errorf("line %d: %w", at, f)
	}
	return f
}

// line is where a path is in a file, 0 if that cannot be said. JSON of few bytes is YAML too.
func line(data []byte, path string) int {
	if len(data) > maxYAML || path == "$" {
		return 0
	}
	p, err := yaml.PathString(path)
	if err != nil {
		return 0
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return 0
	}
	n, err := p.FilterFile(file)
	if err != nil || n.GetToken() == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
