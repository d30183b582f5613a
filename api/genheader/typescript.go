package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// writeTypeScript writes the constants without a type by their names, those with one as an enumeration (Code.TooLarge), and the header as
// an interface with functions that read and write it. Fields of 64 bits are bigint, since a number has 53.
func writeTypeScript(b *bytes.Buffer, consts []constantOf) {
	b.WriteString("// SPDX-License-Identifier: Apache-2.0\n" + generated("// %s"))
	b.WriteString("// What λ-RPC's packets look like: constants and header (docs/protocol.md).\n\n")
	plain, kinds := byKind(consts)
	for _, c := range plain {
		fmt.Fprintf(b, "export const %s = %d;\n", strings.ToUpper(words(strings.TrimPrefix(c.name, "RPC"), "_")), c.value)
	}
	for _, k := range kinds {
		fmt.Fprintf(b, "\nexport enum %s {\n", k.name)
		for _, c := range k.consts {
			fmt.Fprintf(b, "  %s = %d,\n", strings.TrimPrefix(c.name, c.kind), c.value)
		}
		b.WriteString("}\n")
	}
	var fields, read, write bytes.Buffer
	at := uintptr(0)
	for f := range reflect.TypeFor[api.Header]().Fields() {
		name, kind, accessor := camel(f.Name), "number", fmt.Sprintf("Uint%d", f.Type.Size()*8)
		if f.Type.Size() == 8 {
			kind, accessor = "bigint", "BigUint64"
		}
		fmt.Fprintf(&fields, "  %s: %s;\n", name, kind)
		fmt.Fprintf(&read, "    %s: view.get%s(%d),\n", name, accessor, at)
		fmt.Fprintf(&write, "  view.set%s(%d, header.%s);\n", accessor, at, name)
		at += f.Type.Size()
	}
	fmt.Fprintf(b, "\n/** The fields in the order in which they stand. */\nexport interface Header {\n%s}\n", &fields)
	fmt.Fprintf(b, "\nexport function readHeader(view: DataView): Header {\n  return {\n%s  };\n}\n", &read)
	fmt.Fprintf(b, "\nexport function writeHeader(view: DataView, header: Header): void {\n%s}\n", &write)
}

// camel turns MessageLen into messageLen and DeadlineUS into deadlineUs.
func camel(s string) string {
	first, rest, _ := strings.Cut(words(s, "_"), "_")
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return first
}
