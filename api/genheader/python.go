package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/lambdanic/lambdanic/api"
)

// writePython writes the constants without a type by their names, those with one as an enumeration (Code.TOO_LARGE), and the header as a
// NamedTuple with the format by which the struct module packs it.
func writePython(b *bytes.Buffer, consts []constantOf) {
	b.WriteString("# SPDX-License-Identifier: Apache-2.0\n" + generated("# %s"))
	b.WriteString("\"\"\"What λ-RPC's packets look like: constants and header (docs/protocol.md).\"\"\"\n\n")
	b.WriteString("from enum import IntEnum, IntFlag\nfrom struct import Struct\nfrom typing import NamedTuple\n\n")
	writePythonConstants(b, consts)
	formats := map[uintptr]string{1: "B", 2: "H", 4: "I", 8: "Q"}
	b.WriteString("\n\nclass Header(NamedTuple):\n    \"\"\"The fields in the order in which they stand.\"\"\"\n\n")
	layout := ">"
	for f := range reflect.TypeFor[api.Header]().Fields() {
		initial := 0
		switch f.Name {
		case "Magic":
			initial = api.RPCMagic
		case "Version":
			initial = api.RPCVersion
		}
		name, ignore := words(f.Name, "_"), ""
		if name == "index" || name == "count" {
			ignore = "  # type: ignore[assignment]  # hides a method of tuple"
		}
		fmt.Fprintf(b, "    %s: int = %d%s\n", name, initial, ignore)
		layout += formats[f.Type.Size()]
	}
	fmt.Fprintf(b, "\n\nLAYOUT = Struct(\"%s\")\n", layout)
}

// writePythonConstants writes the constants without a type by their names, and those with one as an enumeration.
func writePythonConstants(b *bytes.Buffer, consts []constantOf) {
	plain, kinds := byKind(consts)
	for _, c := range plain {
		fmt.Fprintf(b, "%s = %d\n", strings.ToUpper(words(strings.TrimPrefix(c.name, "RPC"), "_")), c.value)
	}
	for _, k := range kinds {
		base := "IntEnum"
		if k.name == reflect.TypeFor[api.Flag]().Name() {
			base = "IntFlag"
		}
		fmt.Fprintf(b, "\n\nclass %s(%s):\n", k.name, base)
		for _, c := range k.consts {
			fmt.Fprintf(b, "    %s = %d\n", strings.ToUpper(words(strings.TrimPrefix(c.name, c.kind), "_")), c.value)
		}
	}
}

// writePythonProtocol writes the constants of another protocol than λ-RPC.
func writePythonProtocol(b *bytes.Buffer, consts []constantOf, name string) {
	source := "api/" + strings.ToLower(name) + "/wire.go"
	b.WriteString("# SPDX-License-Identifier: Apache-2.0\n" + generatedFrom(source, "# %s"))
	fmt.Fprintf(b, "\"\"\"Constants of %s.\"\"\"\n\nfrom enum import IntEnum\n\n", source)
	writePythonConstants(b, consts)
}
