package match

import "slices"

// use says which fields a program reads and writes, without the lambda's C.
type use struct {
	read, written map[*Field]bool
	valid         map[*Header]bool // headers that may be in a packet
	toggled       map[*Header]bool // headers that are added or removed
}

func (r *reducer) used() *use { return r.usedBy(r.uses) }

// usedBy finds the uses in states, controls, the actions of tables, and calculations, and the metadata that the C uses.
func (p *Program) usedBy(uses Uses) *use {
	u := &use{map[*Field]bool{}, map[*Field]bool{}, map[*Header]bool{}, map[*Header]bool{}}
	for _, s := range p.States {
		u.stmts(s.Steps)
		for _, k := range s.Keys {
			u.expr(k)
		}
	}
	u.stmts(p.Ingress)
	u.stmts(p.Egress)
	for _, c := range p.Calculations {
		u.expr(c.When)
		for _, in := range c.Inputs {
			if in.Field != nil && (c.Verify || in.Field.Header.Metadata) {
				u.read[in.Field] = true
			}
		}
		u.read[c.Field] = true
		if c.Update {
			u.written[c.Field] = true
		}
	}
	for _, h := range p.Headers {
		if uses.validity(h) {
			u.valid[h], u.toggled[h] = true, true
		}
		for _, f := range h.Fields {
			if h.Metadata && uses.metadata(f, "get") {
				u.read[f] = true
			}
			if h.Metadata && uses.metadata(f, "set") {
				u.written[f] = true
			}
		}
	}
	if f := p.standard("egress_spec"); f != nil {
		u.read[f] = true // by whoever sends the packet
	}
	return u
}

func (u *use) expr(e Expr) {
	walkExpr(e, func(e Expr) {
		if ref, ok := e.(Ref); ok {
			u.read[ref.Field] = true
		}
	})
}

func (u *use) stmts(list []Stmt) {
	walk(list, func(s Stmt) {
		walkExprs(s, u.expr)
		switch s := s.(type) {
		case Assign:
			u.written[s.To] = true
		case Extract:
			u.valid[s.Header] = true
		case SetValid:
			u.toggled[s.Header] = true
			u.valid[s.Header] = u.valid[s.Header] || s.Valid
		case Clone:
			for _, f := range s.Keep {
				u.read[f] = true
			}
		case Apply:
			for _, k := range s.Table.Keys {
				u.expr(k.Expr)
			}
			for _, c := range s.Table.calls() {
				u.stmts(c.Action.Body)
			}
		}
	})
}

// leaveOutUnused removes unreachable states, headers that are in no packet, values that are never read, and what becomes unused by that.
func (r *reducer) leaveOutUnused() {
	for before := -1; ; {
		r.dropStates()
		used := r.used()
		never := func(e Expr) Expr {
			if v, ok := e.(IsValid); ok && !used.valid[v.Header] {
				return Num(0)
			}
			return e
		}
		r.controls(func(list []Stmt) []Stmt { return foldStmts(dropWrites(list, used, r.uses), never) })
		for _, s := range r.States {
			s.Steps = dropWrites(s.Steps, used, r.uses)
		}
		r.dropHeaders(used)
		now := r.measure("").Statements + len(r.Headers) + len(r.States)
		if now == before {
			break
		}
		before = now
	}
	r.dropPrimitives()
}

// dropStates removes the states that no packet reaches, and final states that parse nothing.
func (r *reducer) dropStates() {
	if len(r.States) == 0 {
		return
	}
	reached := []*State{r.States[0]}
	for i := 0; i < len(reached); i++ {
		s := reached[i]
		next := []*State{s.Next}
		for _, c := range s.Cases {
			next = append(next, c.Next)
		}
		for _, n := range next {
			if n != nil && !slices.Contains(reached, n) {
				reached = append(reached, n)
			}
		}
	}
	r.States = reached
}

// dropWrites removes statements that set unread values: of metadata, and of headers that are in no packet.
func dropWrites(list []Stmt, used *use, uses Uses) []Stmt {
	var out []Stmt
	for _, s := range list {
		switch x := s.(type) {
		case Assign:
			f := x.To
			if !used.read[f] && f.Header.Metadata {
				continue
			}
			if !f.Header.Metadata && !used.valid[f.Header] && !used.read[f] && !uses.header(f.Header) {
				continue
			}
		case SetValid:
			if !used.valid[x.Header] {
				continue // it was never there
			}
		case If:
			x.Then, x.Else = dropWrites(x.Then, used, uses), dropWrites(x.Else, used, uses)
			s = x
		}
		out = append(out, s)
	}
	return out
}

// dropHeaders removes headers that no packet has and nothing names, with calculations over them, and metadata fields that nothing names.
func (r *reducer) dropHeaders(used *use) {
	r.Calculations = slices.DeleteFunc(r.Calculations, func(c *Calculation) bool { return !used.valid[c.Field.Header] })
	r.Headers = slices.DeleteFunc(r.Headers, func(h *Header) bool {
		if h.Metadata {
			h.Fields = slices.DeleteFunc(h.Fields, func(f *Field) bool {
				return !used.read[f] && !used.written[f]
			})
			return len(h.Fields) == 0
		}
		named := slices.ContainsFunc(h.Fields, func(f *Field) bool { return used.read[f] || used.written[f] })
		return !used.valid[h] && !named && !r.uses.header(h)
	})
}

func (r *reducer) dropPrimitives() {
	called := map[string]bool{}
	for _, list := range [][]Stmt{r.Ingress, r.Egress} {
		walk(list, func(s Stmt) {
			if p, ok := s.(Primitive); ok {
				called[p.Name] = true
			}
		})
	}
	r.Primitives = slices.DeleteFunc(r.Primitives, func(name string) bool { return !called[name] })
}
