package match

import (
	"fmt"
	"strings"
)

// parseFunction is the parse graph in C. A packet that ends before a header that it should have is not for the program: the host gets it
// unchanged.
func (e *emitter) parseFunction() {
	e.line("static __always_inline int pif_parse(struct xdp_md *ctx, struct pif_packet *p)")
	e.line("{")
	e.line("const uint8_t *data = (const void *)(long)ctx->data, *end = (const void *)(long)ctx->data_end;")
	e.line("EXTRACTED_HEADERS_T *h = &p->h;")
	e.line("const uint8_t *at;")
	e.line("uint32_t off = 0;")
	e.line("")
	e.line("(void)data, (void)end, (void)h, (void)at;")
	if len(e.States) > 0 {
		e.gotoState(e.States[0])
	}
	meets := e.meetings()
	for _, s := range e.States {
		e.state(s, meets[s])
	}
	e.line("done:")
	e.line("p->parsed = off;")
	e.line("return PIF_GO_ON;")
	e.line("}")
	e.line("")
}

func (e *emitter) gotoState(s *State) {
	if s == nil {
		e.line("goto done;")
		return
	}
	e.line("goto state_%s;", s.Name)
}

// meetings are the states at which packets arrive with different offsets.
func (e *emitter) meetings() map[*State]bool {
	at, meets := map[*State]int{}, map[*State]bool{}
	var visit func(s *State, off int)
	visit = func(s *State, off int) {
		if s == nil || meets[s] {
			return
		}
		if before, been := at[s]; been && before == off {
			return
		} else if been {
			meets[s] = true
		}
		at[s] = off
		for _, step := range s.Steps {
			if x, ok := step.(Extract); ok {
				off += x.Header.Bytes()
			}
		}
		for _, c := range s.Cases {
			visit(c.Next, off)
		}
		visit(s.Next, off)
	}
	if len(e.States) > 0 {
		visit(e.States[0], 0)
	}
	return meets
}

func (e *emitter) state(s *State, meets bool) {
	e.line("state_%s:", s.Name)
	if meets { // else LLVM may carry and keep an address in place of the offset, which no lambda may
		e.line("asm volatile(\"\" : \"+r\"(off));")
	}
	for _, step := range s.Steps {
		if x, ok := step.(Extract); ok {
			e.extract(x.Header)
		} else {
			e.stmt(step, "h")
		}
	}
	for _, c := range s.Cases {
		conditions := []string{}
		for i, v := range c.Values {
			conditions = append(conditions, e.expr(masked(s.Keys[i], v), "h"))
		}
		e.line("if (%s)", bare(strings.Join(conditions, " && ")))
		e.depth++
		e.gotoState(c.Next)
		e.depth--
	}
	e.gotoState(s.Next)
}

// extract takes a header from the packet, and reads only the needed fields.
func (e *emitter) extract(h *Header) {
	e.line("at = data + off;")
	e.line("if (at + %d > end)", h.Bytes())
	e.line("\treturn XDP_PASS;")
	if e.Header(h.Name) != nil { // it did not vanish
		for _, f := range h.Fields {
			if !e.needed[f] {
				continue
			}
			for _, w := range f.words() {
				e.line("h->%s->%s = %s;", h.Name, w.name, loadWord(w))
				e.note(e.reads, f)
			}
			if e.bytesView(f) {
				e.line("__builtin_memcpy(h->%s->%s, at + %d, %d);", h.Name, f.Name, f.Offset/8, f.Width/8)
				e.note(e.reads, f)
			}
		}
		e.line("h->%s->pif_valid = 1;", h.Name)
		e.line("p->at_%s = off;", h.Name)
	}
	e.line("off += %d;", h.Bytes())
}

// loadWord reads the bytes that hold the word, and extracts its bits.
func loadWord(w word) string {
	first, last := w.offset/8, (w.offset+w.width-1)/8
	n := last - first + 1
	text := map[int]string{
		1: "at[%[1]d]", 2: "pif_get16(at + %[1]d)", 3: "((uint32_t)pif_get16(at + %[1]d) << 8 | at[%[1]d + 2])",
		4: "pif_get32(at + %[1]d)", 5: "((uint64_t)pif_get32(at + %[1]d) << 8 | at[%[1]d + 4])",
	}[n]
	text = fmt.Sprintf(text, first)
	if shift := (last+1)*8 - w.offset - w.width; shift > 0 {
		text = fmt.Sprintf("(%s >> %d)", text, shift)
	}
	if w.width < n*8 {
		text = fmt.Sprintf("(%s & %#x)", text, uint64(1)<<w.width-1)
	}
	return text
}
