package match

import (
	"fmt"
	"slices"
)

// shifted is an input's word at its place in a sum of 16-bit words. In such a sum 2^16 counts as 1, so a 64-bit number equals the sum of its
// four words (RFC 1071, section 2).
func shifted(text string, w word, at int) string {
	end := at + (w.offset - w.field.Offset) + w.width
	if shift := (16 - end%16) % 16; shift > 0 {
		return fmt.Sprintf("((uint64_t)%s << %d)", text, shift)
	}
	return "(uint64_t)" + text
}

// sum adds a calculation's list to the variable sum.
func (e *emitter) sum(c *Calculation, headers string) {
	at := 0
	for _, in := range c.Inputs {
		if in.Field == nil {
			for _, w := range (&Field{Width: in.Width}).words() {
				if text := constWord(in.Value, w); text != "0x0" {
					e.line("sum += %s;", shifted(text, w, at))
				}
			}
		} else if e.present(in.Field.Header) {
			open := e.ifValid(c, in.Field.Header, headers)
			for _, w := range in.Field.words() {
				e.line("sum += %s;", shifted(fmt.Sprintf("%s->%s->%s", headers, in.Field.Header.Name, w.name), w, at))
			}
			if open {
				e.line("}")
			}
		}
		at += in.Width
	}
}

func (e *emitter) present(h *Header) bool { return e.Header(h.Name) == h }

// ifValid opens a block for a header that may be absent although the calculation's own is there.
func (e *emitter) ifValid(c *Calculation, h *Header, headers string) bool {
	if h.Metadata || h == c.Field.Header {
		return false
	}
	e.line("if (%s->%s->pif_valid) {", headers, h.Name)
	return true
}

// verifyFunction drops packets whose checksums are wrong.
func (e *emitter) verifyFunction() {
	e.line("static __always_inline int pif_verify(struct pif_packet *p)")
	e.line("{")
	e.line("EXTRACTED_HEADERS_T *h = &p->h;")
	e.line("")
	e.line("(void)h;")
	for _, c := range e.Calculations {
		if !c.Verify {
			continue
		}
		e.line("if (%s) {", e.applies(c))
		e.line("uint64_t sum = h->%s->%s;", c.Field.Header.Name, c.Field.Name)
		e.line("")
		e.sum(c, "h")
		e.line("if (pif_fold(sum) != 0xffff)")
		e.line("\treturn PIF_STOP;")
		e.line("}")
	}
	e.line("return 0;")
	e.line("}")
	e.line("")
}

func (e *emitter) applies(c *Calculation) string {
	text := fmt.Sprintf("h->%s->pif_valid", c.Field.Header.Name)
	if c.When != nil {
		text += " && (" + e.expr(c.When, "h") + ")"
	}
	return text
}

// checksumFunction sets the checksums of packets that leave: from the old checksum and the changes if the header came with the packet
// (RFC 1624, equation 3), else from the whole list.
func (e *emitter) checksumFunction() {
	e.line("static __always_inline void pif_checksums(struct pif_packet *p)")
	e.line("{")
	e.line("EXTRACTED_HEADERS_T *h = &p->h, *was = &p->was;")
	e.line("")
	e.line("(void)h, (void)was;")
	for _, c := range e.Calculations {
		if c.Update {
			e.update(c)
		}
	}
	e.line("}")
	e.line("")
}

func (e *emitter) update(c *Calculation) {
	field := c.Field.Header.Name + "->" + c.Field.Name
	e.line("if (%s) {", e.applies(c))
	e.line("uint64_t sum = 0;")
	e.line("")
	if e.used.toggled[c.Field.Header] {
		e.line("if (!was->%s->pif_valid) {", c.Field.Header.Name)
		if !c.Payload { // else it stays as the program left it
			e.sum(c, "h")
			e.line("h->%s = ~pif_fold(sum);", field)
		}
		e.line("} else {")
	}
	e.line("sum = (uint16_t)~was->%s;", field)
	at := 0
	for _, in := range c.Inputs {
		if in.Field != nil && e.present(in.Field.Header) && e.changes(in.Field) {
			e.difference(c, in.Field, at)
		}
		at += in.Width
	}
	if c.Payload {
		e.payload(c, at)
		e.line("if (was->%s && h->%s)", field, field) // 0 means no checksum, and a sum of 0 is sent as ones (RFC 768)
		e.line("\th->%s = pif_fold(sum) == 0xffff ? 0xffff : ~pif_fold(sum);", field)
	} else {
		e.line("h->%s = ~pif_fold(sum);", field)
	}
	if e.used.toggled[c.Field.Header] {
		e.line("}")
	}
	e.line("}")
}

// behind are the headers after a checksum's own that its list does not name: they belong to its payload.
func (e *emitter) behind(c *Calculation) []*Header {
	order := e.order()
	order = order[slices.Index(order, c.Field.Header)+1:]
	return slices.DeleteFunc(order, func(h *Header) bool {
		return slices.ContainsFunc(c.Inputs, func(in Input) bool { return in.Field != nil && in.Field.Header == h })
	})
}

// checkPayloads refuses to add or remove headers of an odd number of bytes in a checksum's payload: in the sum, all following bytes would swap
// places, and the program does not read these.
func (e *emitter) checkPayloads() error {
	for _, c := range e.Calculations {
		if !c.Update || !c.Payload {
			continue
		}
		for _, h := range e.behind(c) {
			if e.used.toggled[h] && h.Bytes()%2 == 1 {
				return fmt.Errorf("header %s of %d bytes is added or removed in the payload of the checksum %s.%s: give it an even number of bytes, or take payload out of the list and set the checksum to 0",
					h.Name, h.Bytes(), c.Field.Header.Name, c.Field.Name)
			}
		}
	}
	return nil
}

// payload adds the changes of headers in a checksum's payload, which begins at a bit of its list. After a header of an odd number of bytes, the
// bytes of a word swap places, and so do those of its sum (RFC 1071, section 2 (B)).
func (e *emitter) payload(c *Calculation, at int) {
	odd := false
	for _, h := range e.behind(c) {
		if odd {
			e.line("rest = sum, sum = 0;")
		}
		for _, f := range h.Fields {
			if e.changes(f) {
				e.difference(c, f, at+f.Offset)
			}
		}
		if odd {
			e.line("sum = rest + (odd ? __builtin_bswap16(pif_fold(sum)) : sum);")
		}
		if h.Bytes()%2 == 0 {
			continue
		}
		if !odd {
			e.line("uint64_t rest;")
			e.line("int odd = 0;")
			e.line("")
		}
		odd = true
		e.line("odd ^= h->%s->pif_valid;", h.Name)
	}
}

// difference adds the new value of a field and subtracts the old one, by adding the old one's complement over the bits of its place.
func (e *emitter) difference(c *Calculation, f *Field, at int) {
	for _, w := range f.words() {
		name := f.Header.Name + "->" + w.name
		gone := fmt.Sprintf("sum += 0xffffffffffffULL - %s;", shifted("was->"+name, w, at))
		added := fmt.Sprintf("sum += %s;", shifted("h->"+name, w, at))
		if f.Header == c.Field.Header || f.Header.Metadata || !e.used.toggled[f.Header] {
			open := e.ifValid(c, f.Header, "h")
			e.line("if (h->%s != was->%s) {", name, name)
			e.line("%s", gone)
			e.line("%s", added)
			e.line("}")
			if open {
				e.line("}")
			}
			continue
		}
		e.line("if (was->%s->pif_valid)", f.Header.Name)
		e.line("\t%s", gone)
		e.line("if (h->%s->pif_valid)", f.Header.Name)
		e.line("\t%s", added)
	}
}
