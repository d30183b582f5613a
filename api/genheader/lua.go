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
	kinds := map[string][]constantOf{}
	var order []string
	for _, c := range consts {
		if c.kind == "" {
			fmt.Fprintf(b, "\t%s = %d,\n", strings.TrimPrefix(words(c.name, "_"), "rpc_"), c.value)
			continue
		}
		if kinds[c.kind] == nil {
			order = append(order, c.kind)
		}
		kinds[c.kind] = append(kinds[c.kind], c)
	}
	for _, kind := range order {
		fmt.Fprintf(b, "\t%s = {\n", words(kind, "_"))
		for _, c := range kinds[kind] {
			fmt.Fprintf(b, "\t\t[%d] = %q,\n", c.value, words(strings.TrimPrefix(c.name, kind), " "))
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
