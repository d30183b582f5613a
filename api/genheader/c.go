package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// writeC writes the constants as one enum, CodeTooLarge as LN_CODE_TOO_LARGE, and the header as a struct.
func writeC(b *bytes.Buffer, consts []constantOf) {
	b.WriteString("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n")
	b.WriteString(generated("/* %s */"))
	b.WriteString("#ifndef LN_RPC_WIRE_H\n#define LN_RPC_WIRE_H\n\n#include <linux/types.h>\n\nenum {\n")
	for _, c := range consts {
		fmt.Fprintf(b, "\tLN_%s = %d,\n", strings.ToUpper(words(c.name, "_")), c.value)
	}
	b.WriteString("};\n\n/* All fields are in network order. */\nstruct ln_rpc {\n")
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
	b.WriteString("_Static_assert(sizeof(struct ln_rpc) == LN_RPC_HEADER_LEN, \"the header has no padding\");\n#endif\n\n#endif\n")
}
