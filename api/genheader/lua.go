package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// writeLua writes a table that the file returns: the constants without a type by their names, those with one as a table from
// their numbers to names (code[6] is "too large"), and the header as a list of its fields in order.
func writeLua(b *bytes.Buffer, consts []constantOf) {
	b.WriteString("-- SPDX-License-Identifier: Apache-2.0\n" + generated("-- %s") + "return {\n")
	plain, kinds := byKind(consts)
	for _, c := range plain {
		fmt.Fprintf(b, "\t%s = %d,\n", strings.TrimPrefix(words(c.name, "_"), "rpc_"), c.value)
	}
	for _, k := range kinds {
		fmt.Fprintf(b, "\t%s = {\n", words(k.name, "_"))
		for _, c := range k.consts {
			fmt.Fprintf(b, "\t\t[%d] = %q,\n", c.value, words(strings.TrimPrefix(c.name, c.kind), " "))
		}
		b.WriteString("\t},\n")
	}
	b.WriteString("\tfields = {\n")
	at := uintptr(0)
	for f := range reflect.TypeFor[api.Header]().Fields() {
		fmt.Fprintf(b, "\t\t{ name = %q, offset = %d, size = %d },\n", words(f.Name, "_"), at, f.Type.Size())
		at += f.Type.Size()
	}
	b.WriteString("\t},\n}\n")
}
