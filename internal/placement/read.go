package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxYAML bounds YAML, whose parser's time grows faster than its input. Large topologies are JSON, which has no bound.
const maxYAML = 64 << 10

type topologyFile struct {
	Groups []Group `json:"groups"`
	Nodes  []Node  `json:"nodes"`
}

type appFile struct {
	Name     string    `json:"name"`
	Services []Service `json:"services"`
	Edges    []Edge    `json:"edges"`
}

// ReadTopology reads a topology, as JSON or as YAML of at most 64 KiB: an object with the lists groups and nodes. Unknown fields are errors,
// and New says what else is.
func ReadTopology(data []byte) (*Topology, error) {
	var f topologyFile
	if err := decode(data, &f); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return New(f.Groups, f.Nodes)
}

// WriteTopology writes what ReadTopology reads, as JSON.
func WriteTopology(w io.Writer, t *Topology) error {
	f := topologyFile{Nodes: t.nodes}
	for _, g := range t.groups {
		entry := Group{Name: g.name}
		if g.above >= 0 {
			entry.Parent = t.groups[g.above].name
		}
		f.Groups = append(f.Groups, entry)
	}
	return json.NewEncoder(w).Encode(f)
}

// ReadApp reads an app, as JSON or as YAML of at most 64 KiB: an object with name and the lists services and edges. Unknown fields are
// errors, and NewApp says what else is.
func ReadApp(data []byte) (*App, error) {
	var f appFile
	if err := decode(data, &f); err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	return NewApp(f.Name, f.Services, f.Edges)
}

func decode(source []byte, to any) error {
	data := source
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) == 0 {
		return errors.New("the file is empty")
	} else if !json.Valid(text) {
		converted, err := toJSON(data)
		if err != nil && !likeJSON(text) {
			return err
		}
		if err == nil {
			data = converted
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return explainFault(source, data, to, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// likeJSON tells what is meant as JSON from YAML in flow style, which begins with a brace too, but rarely with a quote after it.
func likeJSON(text []byte) bool {
	inner, ok := bytes.CutPrefix(text, []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(inner, " \t\r\n"), []byte(`"`))
}

// toJSON converts YAML. Aliases are refused, since a few lines of them can stand for any amount of text.
func toJSON(data []byte) ([]byte, error) {
	if len(data) > maxYAML {
		return nil, fmt.Errorf("%d bytes of YAML are more than %d: write it as JSON", len(data), maxYAML)
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("it is %d YAML documents, and not one", len(file.Docs))
	}
	var v aliases
	if file.Docs[0].Body != nil {
		ast.Walk(&v, file.Docs[0].Body)
	}
	if v.found {
		return nil, errors.New("aliases are not supported: write the value out")
	}
	return yaml.YAMLToJSON(data)
}

type aliases struct{ found bool }

func (a *aliases) Visit(n ast.Node) ast.Visitor {
	if n.Type() == ast.AliasType {
		a.found = true
	}
	return a
}
