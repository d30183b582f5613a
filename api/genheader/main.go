// Command genheader writes views of λ-RPC in other languages from wire.go: a header for C, a table for Lua, or a module for Python or
// TypeScript, by the name of the file. With -constants it writes for C or Python the constants of another protocol's wire.go; in C they
// have that prefix. It gets the constants by type-checking wire.go and the header by reflection, so that no two languages can disagree
// about a byte.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"log"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "file to write")
	prefix := flag.String("constants", "", "write constants alone, with this prefix")
	flag.Parse()
	consts, err := constants("wire.go")
	if err != nil {
		log.Fatal(err)
	}
	var b bytes.Buffer
	switch ext := filepath.Ext(*out); {
	case ext == ".h":
		writeC(&b, consts, *prefix)
	case ext == ".lua":
		writeLua(&b, consts)
	case ext == ".py" && *prefix != "":
		writePythonProtocol(&b, consts, *prefix)
	case ext == ".py":
		writePython(&b, consts)
	case ext == ".ts":
		writeTypeScript(&b, consts)
	default:
		log.Fatalf("write %s: none of .h, .lua, .py, .ts", *out)
	}
	if err := os.WriteFile(*out, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

type constantOf struct {
	name  string // CodeTooLarge
	kind  string // its type, Code; "" if that is not one of ours
	value int64
}

// constants are those of a file, in their order.
func constants(name string) (all []constantOf, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := conf.Check("api", fset, []*ast.File{f}, info); err != nil {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, name := range spec.Names {
			if c, ok := info.Defs[name].(*types.Const); ok {
				v, _ := constant.Int64Val(c.Val())
				kind := ""
				if named, ok := c.Type().(*types.Named); ok {
					kind = named.Obj().Name()
				}
				all = append(all, constantOf{name.Name, kind, v})
			}
		}
		return true
	})
	return all, nil
}

// A kindOf is the constants of one type.
type kindOf struct {
	name   string
	consts []constantOf
}

// byKind separates constants without a type from those with one, and keeps their order.
func byKind(consts []constantOf) (plain []constantOf, kinds []kindOf) {
	for _, c := range consts {
		switch last := len(kinds) - 1; {
		case c.kind == "":
			plain = append(plain, c)
		case last < 0 || kinds[last].name != c.kind:
			kinds = append(kinds, kindOf{c.kind, []constantOf{c}})
		default:
			kinds[last].consts = append(kinds[last].consts, c)
		}
	}
	return plain, kinds
}

// words turns CodeTooLarge into code_too_large and RPCHeaderLen into rpc_header_len, for any separator.
func words(s, separator string) string {
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		lowerBefore := i > 0 && unicode.IsLower(r[i-1])
		acronymEnds := i > 0 && i+1 < len(r) && unicode.IsUpper(r[i-1]) && unicode.IsLower(r[i+1])
		if unicode.IsUpper(c) && (lowerBefore || acronymEnds) {
			b.WriteString(separator)
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

func generated(comment string) string { return generatedFrom("api/wire.go", comment) }

func generatedFrom(source, comment string) string {
	return fmt.Sprintf(comment, "Generated from "+source+" by api/genheader. Do not edit.") + "\n"
}
