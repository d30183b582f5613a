package match

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Lambda is what the match stage has to know of a lambda's C.
type Lambda struct {
	Source string // the path of the file to include
	Uses   Uses
}

// Code is a match stage in C for BPF.
type Code struct {
	// Header declares what the lambda sees of its packets; <pif_plugin.h> includes it as HeaderFile.
	Header []byte
	// Unit is the file to compile: it includes the lambda.
	Unit []byte
	// Headers are the headers of its packets, in the order of the parser.
	Headers []*Header
	// Reads and Writes are the fields that a line of Unit, counted from 1, reads from a packet or writes to it. The compiler removes the
	// instructions of lines whose fields turn out to be unused.
	Reads, Writes map[int][]*Field
	Calculations  []*Calculation
}

// HeaderFile is the name under which the lambda's headers include Code.Header.
const HeaderFile = "pif_program.h"

// Emit lowers a program without tables, as Reduce leaves it, to C. The C parses what the program needs of a packet, runs both controls and the
// lambda between them, and writes back what was changed. The error says that a checksum cannot be updated.
func Emit(p *Program, lambda Lambda) (Code, error) {
	e := &emitter{Program: p, lambda: lambda, used: p.usedBy(lambda.Uses), reads: map[int][]*Field{}, writes: map[int][]*Field{}}
	if err := e.checkPayloads(); err != nil {
		return Code{}, err
	}
	e.findNeeded()
	return Code{
		Header: e.header(), Unit: e.unit(), Headers: e.order(), Reads: e.reads, Writes: e.writes, Calculations: e.Calculations,
	}, nil
}

type emitter struct {
	*Program
	lambda Lambda
	used   *use
	needed map[*Field]bool
	out    strings.Builder
	lines  int // in out
	depth  int

	reads, writes map[int][]*Field // by line
}

// line writes one line, indented by the braces before it.
func (e *emitter) line(format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	if strings.HasPrefix(text, "}") {
		e.depth--
	}
	depth := e.depth
	if text == "" || strings.HasPrefix(text, "#") || strings.HasSuffix(text, ":") && !strings.Contains(text, " ") {
		depth = 0
	}
	e.out.WriteString(strings.Repeat("\t", depth) + text + "\n")
	e.lines += 1 + strings.Count(text, "\n")
	if strings.HasSuffix(text, "{") {
		e.depth++
	}
}

// note remembers that the last line reads or writes a field.
func (e *emitter) note(lines map[int][]*Field, f *Field) {
	if !slices.Contains(lines[e.lines], f) {
		lines[e.lines] = append(lines[e.lines], f)
	}
}

func (e *emitter) take() []byte {
	out := e.out.String()
	e.out.Reset()
	e.lines = 0
	return []byte(out)
}

// word is a field of up to 32 bits, or one of the words of a wider field.
type word struct {
	field  *Field
	index  int
	name   string
	width  int
	offset int // bits from the header's beginning
}

func (f *Field) words() []word {
	if f.Width <= WordBits {
		return []word{{f, 0, f.Name, f.Width, f.Offset}}
	}
	var list []word
	for i, at := 0, 0; at < f.Width; i, at = i+1, at+WordBits {
		list = append(list, word{f, i, fmt.Sprintf("__%s_%d", f.Name, i), min(WordBits, f.Width-at), f.Offset + at})
	}
	return list
}

// low is how many of the field's bits follow the word.
func (w word) low() int { return w.field.Offset + w.field.Width - w.offset - w.width }

func (h *Header) words() []word {
	var list []word
	for _, f := range h.Fields {
		list = append(list, f.words()...)
	}
	return list
}

// bytesView tells whether the lambda may also use the field as an array of bytes, in wire order.
func (e *emitter) bytesView(f *Field) bool {
	return f.Width > WordBits && f.Width%8 == 0 && f.Offset%8 == 0 && e.lambda.Uses.header(f.Header) && e.lambda.Uses[f.Name]
}

// changes tells whether the field's value may change.
func (e *emitter) changes(f *Field) bool {
	return e.used.written[f] || e.lambda.Uses.header(f.Header) || e.used.toggled[f.Header]
}

// resizes tells whether the packet may leave with other headers than it came with.
func (e *emitter) resizes() bool {
	_, move := e.movable()
	return len(move) > 0
}

// findNeeded finds the fields that have to be read from the packet: those that are used, that may move, or that share bytes with a field that
// may be written.
func (e *emitter) findNeeded() {
	e.needed = map[*Field]bool{}
	_, move := e.movable()
	for _, h := range e.packetHeaders() {
		for _, f := range h.Fields {
			e.needed[f] = e.used.read[f] || e.changes(f) || slices.Contains(move, h)
		}
		for _, c := range h.cells() {
			if slices.ContainsFunc(c.words, func(w word) bool { return e.changes(w.field) }) {
				for _, w := range c.words {
					e.needed[w.field] = true
				}
			}
		}
	}
	for _, c := range e.Calculations {
		for _, in := range c.Inputs {
			if in.Field != nil && e.used.toggled[c.Field.Header] {
				e.needed[in.Field] = true // the sum may have to be recomputed
			}
		}
	}
}

func (e *emitter) packetHeaders() []*Header {
	return slices.DeleteFunc(slices.Clone(e.Headers), func(h *Header) bool { return h.Metadata })
}

func (e *emitter) hasClone() bool {
	found := false
	walk(e.Egress, func(s Stmt) {
		if _, ok := s.(Clone); ok {
			found = true
		}
	})
	return found
}

// ctype is the C type for a number of bits, and the suffix of the name that limits it to these.
func ctype(width int) (name, suffix string) {
	for _, n := range []int{8, 16, 32} {
		if width == n {
			return fmt.Sprintf("uint%d_t", n), ""
		}
		if width < n {
			return fmt.Sprintf("uint%d_t", n), fmt.Sprintf(" : %d", width)
		}
	}
	panic("a word has more than 32 bits")
}

// header declares the types.
func (e *emitter) header() []byte {
	e.line("/* The headers of this program, as its lambda sees them: made from its match stage. */")
	e.line("#ifndef PIF_PROGRAM_H")
	e.line("#define PIF_PROGRAM_H")
	e.line("")
	for _, h := range e.Headers {
		e.headerStruct(h)
	}
	e.line("typedef struct pif_headers {")
	for _, h := range e.Headers {
		e.line("struct pif_header_%s *%s;", h.Name, h.Name)
	}
	e.line("} EXTRACTED_HEADERS_T;")
	e.line("")
	for _, h := range e.Headers {
		if h.Metadata {
			e.metadataAccessors(h)
		} else {
			e.headerAccessors(h)
		}
	}
	e.line("#endif")
	return e.take()
}

func (e *emitter) headerStruct(h *Header) {
	e.line("struct pif_header_%s {", h.Name)
	for _, w := range h.words() {
		name, suffix := ctype(w.width)
		e.line("%s %s%s;", name, w.name, suffix)
		if suffix != "" {
			e.line("%s : 0;", name) // no word shares memory with another
		}
	}
	for _, f := range h.Fields {
		if e.bytesView(f) {
			e.line("uint8_t %s[%d]; /* the same in the order of the wire: what changed is written */", f.Name, f.Width/8)
		}
	}
	if !h.Metadata {
		e.line("uint8_t pif_valid;")
	}
	e.line("};")
	e.line("")
}

func (e *emitter) headerAccessors(h *Header) {
	n := h.Name
	e.line("typedef struct pif_header_%s PIF_PLUGIN_%s_T;", n, n)
	getters := []string{"pif_plugin_hdr_get_" + n}
	if e.lambda.Uses["hdr_get_"+n] { // the paper's spelling
		e.line("typedef struct pif_header_%s %s_T;", n, n)
		getters = append(getters, "hdr_get_"+n)
	}
	for _, getter := range getters {
		e.line("static __always_inline PIF_PLUGIN_%s_T *%s(EXTRACTED_HEADERS_T *headers)", n, getter)
		e.function("return headers->%s;", n)
	}
	e.line("static __always_inline int pif_plugin_hdr_%s_present(EXTRACTED_HEADERS_T *headers)", n)
	e.function("return headers->%s->pif_valid;", n)
	for _, verb := range []string{"add", "remove"} {
		if !e.lambda.Uses["pif_plugin_hdr_"+n+"_"+verb] {
			continue
		}
		e.line("static __always_inline int pif_plugin_hdr_%s_%s(EXTRACTED_HEADERS_T *headers)", n, verb)
		e.line("{")
		e.setValid(SetValid{h, verb == "add"}, "headers")
		e.line("return 0;")
		e.line("}")
		e.line("")
	}
}

func (e *emitter) metadataAccessors(h *Header) {
	for _, w := range h.words() {
		name := h.Name + "__" + w.field.Name
		if w.field.Width > WordBits {
			name += fmt.Sprintf("__%d", w.index)
		}
		e.line("static __always_inline uint32_t pif_plugin_meta_get__%s(EXTRACTED_HEADERS_T *headers)", name)
		e.function("return headers->%s->%s;", h.Name, w.name)
		e.line("static __always_inline void pif_plugin_meta_set__%s(EXTRACTED_HEADERS_T *headers, uint32_t value)", name)
		e.function("headers->%s->%s = value;", h.Name, w.name)
	}
}

func (e *emitter) function(body string, args ...any) {
	e.line("{")
	e.line(body, args...)
	e.line("}")
	e.line("")
}

// unit is the whole program. What all programs have in common is in <pif_stage.h>.
func (e *emitter) unit() []byte {
	uses := e.lambda.Uses
	e.line("/* A match stage and its lambda: made from its parser, tables and rules. */")
	if uses["sleep"] {
		e.line("#define PIF_WAITS 1")
	}
	if e.hasClone() {
		e.line("#define PIF_CLONES 1")
	}
	if e.resizes() {
		e.line("#define PIF_RESIZES 1")
	}
	e.line("#include <pif_plugin.h>")
	e.line("")
	for _, p := range e.Primitives {
		e.line("static int %s(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data);", e.primitive(p))
	}
	// The lambda is inlined, so that a wait in any of its functions can leave the whole run (pif_pass.h).
	e.line("#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)")
	if e.lambda.Source != "" {
		e.line("#include \"%s\"", e.lambda.Source)
	}
	e.line("#pragma clang attribute pop")
	e.line("")
	if e.hasClone() {
		e.line("#define PIF_SHAPE 0x%08x /* of the metadata that clones keep */", e.shape())
		e.line("#define PIF_KEPT_WORDS %d", KeptWords)
	}
	e.line("#include <pif_stage.h>")
	e.line("")
	e.packetStruct()
	e.parseFunction()
	e.verifyFunction()
	e.controlFunction("ingress", e.Ingress)
	e.controlFunction("egress", e.Egress)
	e.checksumFunction()
	e.deparseFunction()
	e.passFunction()
	e.line("#include <pif_entry.h>")
	return e.take()
}

// primitive is the C function of that name: Netronome's spelling, or the paper's.
func (e *emitter) primitive(name string) string {
	if !e.lambda.Uses["pif_plugin_"+name] && e.lambda.Uses[name] {
		return name
	}
	return "pif_plugin_" + name
}

// shape digests the fields that clones keep, and their places: a revision with other fields cannot continue a waiting clone.
func (e *emitter) shape() uint32 {
	h := fnv.New32a()
	for _, w := range e.keptWords() {
		fmt.Fprintln(h, w.field.Header.Name, w.name, w.width)
	}
	return h.Sum32()
}

func (e *emitter) keptWords() []word {
	var list []word
	for _, f := range e.kept() {
		list = append(list, f.words()...)
	}
	return list
}

// kept are the fields of metadata that clones keep.
func (e *emitter) kept() []*Field {
	var list []*Field
	walk(e.Egress, func(s Stmt) {
		if c, ok := s.(Clone); ok {
			for _, f := range c.Keep {
				if !slices.Contains(list, f) {
					list = append(list, f)
				}
			}
		}
	})
	return list
}

func (e *emitter) packetStruct() {
	e.line("struct pif_packet {")
	e.line("EXTRACTED_HEADERS_T h, was; /* as they are, and as they came */")
	for _, h := range e.packetHeaders() {
		e.line("uint32_t at_%s;", h.Name)
	}
	e.line("uint32_t parsed; /* bytes */")
	e.line("uint32_t clone;")
	e.line("};")
	e.line("")
}

// passFunction is one pass of a packet through the stage.
func (e *emitter) passFunction() {
	e.line("static __always_inline int pif_pass(struct xdp_md *ctx, struct ln_pass *pass)")
	e.line("{")
	for _, h := range e.Headers {
		e.line("struct pif_header_%s h_%s = {}, was_%s;", h.Name, h.Name, h.Name)
	}
	e.line("struct pif_packet p = {};")
	e.line("uint32_t port = 0;")
	e.line("int verdict;")
	e.line("")
	if !e.hasClone() {
		e.line("(void)pass;")
	}
	for _, h := range e.Headers {
		e.line("p.h.%s = &h_%s;", h.Name, h.Name)
		e.line("p.was.%s = &was_%s;", h.Name, h.Name)
	}
	e.initMetadata()
	e.line("verdict = pif_parse(ctx, &p);")
	e.line("if (verdict != PIF_GO_ON)")
	e.line("\treturn verdict;")
	for _, h := range e.Headers {
		e.line("was_%s = h_%s;", h.Name, h.Name)
	}
	e.line("if (pif_verify(&p) || pif_ingress(&p))")
	e.line("\treturn XDP_DROP;")
	if f := e.standard("egress_spec"); f != nil {
		e.line("port = h_standard_metadata.egress_spec;")
	}
	e.line("if (port == PIF_PORT_NONE)")
	e.line("\treturn XDP_DROP;")
	if f := e.standard("egress_port"); f != nil {
		e.line("h_standard_metadata.egress_port = port;")
	}
	e.line("if (pif_egress(&p) || pif_deparse(ctx, &p))")
	e.line("\treturn XDP_DROP;")
	if e.hasClone() {
		e.line("pass->clone = p.clone;")
		e.line("pass->shape = PIF_SHAPE;")
		for i, w := range e.keptWords() {
			e.line("pass->kept[%d] = h_%s.%s;", i, w.field.Header.Name, w.name)
		}
	}
	e.line("return pif_action(port);")
	e.line("}")
	e.line("")
}

func (e *emitter) initMetadata() {
	for _, h := range e.Headers {
		if !h.Metadata {
			continue
		}
		for _, f := range h.Fields {
			if f.Init != nil && f.Init.Sign() != 0 {
				for _, w := range f.words() {
					e.line("h_%s.%s = %s;", h.Name, w.name, constWord(f.Init, w))
				}
			}
		}
	}
	if f := e.standard("packet_length"); f != nil {
		e.line("h_standard_metadata.packet_length = ctx->data_end - ctx->data;")
	}
	if f := e.standard("instance_type"); f != nil && e.hasClone() {
		e.line("h_standard_metadata.instance_type = pass->instance;")
	}
	if list := e.keptWords(); len(list) > 0 {
		e.line("if (pass->instance) {")
		for i, w := range list {
			e.line("h_%s.%s = pass->kept[%d];", w.field.Header.Name, w.name, i)
		}
		e.line("}")
	}
}
