// Command genheader writes rpc_wire.h, the C view of λ-RPC, from wire.go: constants by type-checking the file, the
// header by reflection, so that BPF, C and Go cannot disagree about a byte.
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
	"reflect"
	"strings"
	"unicode"

	"github.com/lambdanic/lambdanic/api"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "file to write")
	flag.Parse()
	var b bytes.Buffer
	b.WriteString("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n")
	b.WriteString("/* Generated from api/wire.go by api/genheader. Do not edit. */\n")
	b.WriteString("#ifndef LN_RPC_WIRE_H\n#define LN_RPC_WIRE_H\n\n#include <linux/types.h>\n\n")
	if err := writeConstants(&b); err != nil {
		log.Fatal(err)
	}
	writeHeader(&b)
	b.WriteString("#endif\n")
	if err := os.WriteFile(*out, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// writeConstants prints wire.go's constants in their order as one C enum, CodeTooLarge as LN_CODE_TOO_LARGE.
func writeConstants(b *bytes.Buffer) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "wire.go", nil, 0)
	if err != nil {
		return err
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := conf.Check("api", fset, []*ast.File{f}, info); err != nil {
		return err
	}
	b.WriteString("enum {\n")
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, name := range spec.Names {
			if c, ok := info.Defs[name].(*types.Const); ok {
				v, _ := constant.Int64Val(c.Val())
				fmt.Fprintf(b, "\tLN_%s = %d,\n", screaming(name.Name), v)
			}
		}
		return true
	})
	b.WriteString("};\n\n")
	return nil
}

func writeHeader(b *bytes.Buffer) {
	b.WriteString("/* All fields are in network order. */\nstruct ln_rpc {\n")
	t := reflect.TypeFor[api.Header]()
	for f := range t.Fields() {
		bits := f.Type.Size() * 8
		ctype := fmt.Sprintf("__be%d", bits)
		if bits == 8 {
			ctype = "__u8"
		}
		fmt.Fprintf(b, "\t%s %s;\n", ctype, strings.ToLower(strings.TrimPrefix(screaming(f.Name), "_")))
	}
	// Not packed: its fields are aligned, and a packed struct is read byte by byte.
	fmt.Fprintf(b, "};\n\n_Static_assert(sizeof(struct ln_rpc) == LN_RPC_HEADER_LEN, \"the header has no padding\");\n\n")
}

// screaming turns CodeTooLarge into CODE_TOO_LARGE and RPCHeaderLen into RPC_HEADER_LEN.
func screaming(s string) string {
	r := []rune(s)
	var b strings.Builder
	for i, c := range r {
		lowerBefore := i > 0 && unicode.IsLower(r[i-1])
		acronymEnds := i > 0 && i+1 < len(r) && unicode.IsUpper(r[i-1]) && unicode.IsLower(r[i+1])
		if unicode.IsUpper(c) && (lowerBefore || acronymEnds) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
