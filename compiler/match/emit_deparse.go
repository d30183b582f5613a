package match

import (
	"fmt"
	"slices"
	"strings"
)

// cell is the shortest run of a header's words that begins and ends at byte boundaries, and so has to be written at once.
type cell struct {
	first, bytes int
	words        []word
}

func (h *Header) cells() []cell {
	var list []cell
	var c cell
	for _, w := range h.words() {
		if len(c.words) == 0 {
			c.first = w.offset / 8
		}
		c.words = append(c.words, w)
		if end := w.offset + w.width; end%8 == 0 {
			c.bytes = end/8 - c.first
			list, c = append(list, c), cell{}
		}
	}
	return list
}

// order is the order of headers in packets that leave: as the parser may find them, then those that it never finds (P4_14, section 5: the
// deparser follows the parse graph).
func (e *emitter) order() []*Header {
	var list []*Header
	done := map[*State]bool{}
	var visit func(s *State)
	visit = func(s *State) { // reverse post-order: a header comes before those that may follow it
		if s == nil || done[s] {
			return
		}
		done[s] = true
		visit(s.Next)
		for _, c := range slices.Backward(s.Cases) {
			visit(c.Next)
		}
		for _, step := range slices.Backward(s.Steps) {
			if x, ok := step.(Extract); ok && e.Header(x.Header.Name) != nil && !slices.Contains(list, x.Header) {
				list = slices.Insert(list, 0, x.Header)
			}
		}
	}
	if len(e.States) > 0 {
		visit(e.States[0])
	}
	for _, h := range e.packetHeaders() {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// movable splits the headers of a packet into those that stay in place, and those from the first one that may be added or removed.
func (e *emitter) movable() (stay, move []*Header) {
	order := e.order()
	first := slices.IndexFunc(order, func(h *Header) bool { return e.used.toggled[h] })
	if first < 0 {
		return order, nil
	}
	return order[:first], order[first:]
}

// deparseFunction writes back what was changed. If headers were added or removed, these and all following headers are rewritten.
func (e *emitter) deparseFunction() {
	e.line("static __always_inline int pif_deparse(struct xdp_md *ctx, struct pif_packet *p)")
	e.line("{")
	e.line("EXTRACTED_HEADERS_T *h = &p->h, *was = &p->was;")
	e.line("uint8_t *data, *end, *at;")
	e.line("int moved = 0;")
	e.line("")
	e.line("(void)h, (void)was, (void)data, (void)end, (void)at, (void)moved;")
	e.line("pif_checksums(p);")
	stay, move := e.movable()
	if len(move) > 0 {
		e.rewrite(move)
	}
	e.line("data = (void *)(long)ctx->data;")
	e.line("end = (void *)(long)ctx->data_end;")
	e.writeBack(stay)
	if len(move) > 0 {
		e.line("if (moved)")
		e.line("\treturn 0;")
		e.writeBack(move)
	}
	e.line("return 0;")
	e.line("}")
	e.line("")
}

// rewrite is for packets whose headers have changed in size.
func (e *emitter) rewrite(list []*Header) {
	var toggled, now, before []string
	for _, h := range list {
		if e.used.toggled[h] {
			toggled = append(toggled, fmt.Sprintf("h->%s->pif_valid != was->%s->pif_valid", h.Name, h.Name))
		}
		now = append(now, fmt.Sprintf("(h->%s->pif_valid ? %d : 0)", h.Name, h.Bytes()))
		before = append(before, fmt.Sprintf("(was->%s->pif_valid ? %d : 0)", h.Name, h.Bytes()))
	}
	e.line("if (%s) {", strings.Join(toggled, " || "))
	e.line("int before = %s;", strings.Join(before, " + "))
	e.line("int delta = %s - before;", strings.Join(now, " + "))
	e.line("uint32_t off = p->parsed - before;")
	e.line("")
	e.line("if (delta && pif_resize(ctx, off, delta))")
	e.line("\treturn PIF_STOP;")
	e.line("data = (void *)(long)ctx->data;")
	e.line("end = (void *)(long)ctx->data_end;")
	e.line("moved = 1;")
	for _, h := range list {
		e.line("if (h->%s->pif_valid) {", h.Name)
		e.line("at = data + off;")
		e.line("if (at + %d > end)", h.Bytes())
		e.line("\treturn PIF_STOP;")
		for _, c := range h.cells() {
			e.storeCell(h, c)
			if f := e.cellView(c); f != nil {
				e.line("if (%s)", e.viewChanged(h, c, f))
				e.line("\t%s", e.storeView(h, c, f))
				e.note(e.writes, f)
			}
		}
		e.line("off += %d;", h.Bytes())
		e.line("}")
	}
	e.line("}")
}

// writeBack writes the changed cells of headers in place.
func (e *emitter) writeBack(list []*Header) {
	for _, h := range list {
		if slices.ContainsFunc(h.Fields, e.changes) {
			e.writeCells(h)
		}
	}
}

func (e *emitter) writeCells(h *Header) {
	e.line("if (h->%s->pif_valid) {", h.Name)
	e.line("at = data + p->at_%s;", h.Name)
	e.line("if (at + %d > end)", h.Bytes())
	e.line("\treturn PIF_STOP;")
	for _, c := range h.cells() {
		var changed []string
		for _, w := range c.words {
			if e.changes(w.field) {
				changed = append(changed, fmt.Sprintf("h->%s->%s != was->%s->%s", h.Name, w.name, h.Name, w.name))
			}
		}
		if len(changed) == 0 {
			continue
		}
		e.line("if (%s) {", strings.Join(changed, " || "))
		e.storeCell(h, c)
		if f := e.cellView(c); f != nil {
			e.line("} else if (%s) {", e.viewChanged(h, c, f))
			e.line("%s", e.storeView(h, c, f))
			e.note(e.writes, f)
		}
		e.line("}")
	}
	e.line("}")
}

// cellView is the field that contains the cell, if the lambda may have written the field as bytes.
func (e *emitter) cellView(c cell) *Field {
	if f := c.words[0].field; len(c.words) == 1 && e.bytesView(f) {
		return f
	}
	return nil
}

func (e *emitter) viewChanged(h *Header, c cell, f *Field) string {
	at := c.first - f.Offset/8
	var parts []string
	for i := range c.bytes {
		parts = append(parts, fmt.Sprintf("h->%[1]s->%[2]s[%[3]d] != was->%[1]s->%[2]s[%[3]d]", h.Name, f.Name, at+i))
	}
	return strings.Join(parts, " || ")
}

func (e *emitter) storeView(h *Header, c cell, f *Field) string {
	return fmt.Sprintf("__builtin_memcpy(at + %d, h->%s->%s + %d, %d);", c.first, h.Name, f.Name, c.first-f.Offset/8, c.bytes)
}

// storeCell writes the words of a cell, most significant byte first.
func (e *emitter) storeCell(h *Header, c cell) {
	value := func(low, bits int) string { // so many bits of the cell, from bit low on
		var parts []string
		for _, w := range c.words {
			shift := (c.first+c.bytes)*8 - w.offset - w.width - low
			if shift >= bits || shift+w.width <= 0 {
				continue
			}
			text := fmt.Sprintf("h->%s->%s", h.Name, w.name)
			switch {
			case shift > 0:
				text = fmt.Sprintf("(uint32_t)%s << %d", text, shift)
			case shift < 0:
				text = fmt.Sprintf("%s >> %d", text, -shift)
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, " | ")
	}
	for at := 0; at < c.bytes; {
		left := c.bytes - at
		switch {
		case left >= 4:
			e.line("pif_put32(at + %d, %s);", c.first+at, value((left-4)*8, 32))
			at += 4
		case left >= 2:
			e.line("pif_put16(at + %d, %s);", c.first+at, value((left-2)*8, 16))
			at += 2
		default:
			e.line("at[%d] = %s;", c.first+at, value(0, 8))
			at++
		}
		for _, w := range c.words {
			e.note(e.writes, w.field)
		}
	}
}
