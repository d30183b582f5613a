package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// writeC writes the constants as one enum, CodeTooLarge as LN_CODE_TOO_LARGE, and λ-RPC's header as a struct.
func writeC(b *bytes.Buffer, consts []constantOf, prefix string) {
	name, source := "RPC", "api/wire.go"
	if prefix != "" {
		name, source = prefix, "api/"+strings.ToLower(prefix)+"/wire.go"
		prefix += "_"
	}
	b.WriteString("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n")
	b.WriteString(generatedFrom(source, "/* %s */"))
	fmt.Fprintf(b, "#ifndef LN_%s_WIRE_H\n#define LN_%[1]s_WIRE_H\n\n", name)
	if prefix == "" {
		b.WriteString("#include <linux/types.h>\n\n")
	}
	b.WriteString("enum {\n")
	for _, c := range consts {
		fmt.Fprintf(b, "\tLN_%s%s = %d,\n", prefix, strings.ToUpper(words(c.name, "_")), c.value)
	}
	b.WriteString("};\n\n")
	if prefix == "" {
		writeStruct(b)
	}
	b.WriteString("#endif\n")
}

func writeStruct(b *bytes.Buffer) {
	b.WriteString("/* All fields are in network order. */\nstruct ln_rpc {\n")
	for f := range reflect.TypeFor[api.Header]().Fields() {
		bits := f.Type.Size() * 8
		ctype := fmt.Sprintf("__be%d", bits)
		if bits == 8 {
			ctype = "__u8"
		}
		fmt.Fprintf(b, "\t%s %s;\n", ctype, words(f.Name, "_"))
	}
	// Not packed: its fields are aligned, and a packed struct is read byte by byte.
	b.WriteString("};\n\n#ifndef __cplusplus\n")
	b.WriteString("_Static_assert(sizeof(struct ln_rpc) == LN_RPC_HEADER_LEN, \"the header has no padding\");\n#endif\n\n")
}
