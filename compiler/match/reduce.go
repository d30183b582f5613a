package match

import (
	"fmt"
	"slices"
)

// Step is the size of a program after one step of the reduction.
type Step struct {
	Name       string `json:"name"`
	Tables     int    `json:"tables"`
	Headers    int    `json:"headers"`    // of packets
	Fields     int    `json:"fields"`     // that are read or written
	Metadata   int    `json:"metadata"`   // fields of metadata
	Statements int    `json:"statements"` // of the controls, with their tables' actions
}

func (s Step) String() string {
	return fmt.Sprintf("%-28s %3d tables %3d headers %3d fields %3d metadata %4d statements",
		s.Name, s.Tables, s.Headers, s.Fields, s.Metadata, s.Statements)
}

// Reduce makes the program smaller, in place, without changing what it does to packets on this NIC (λ-NIC, section 5.1: match reduction), and
// tells what each step did. uses are the identifiers in the lambda's C.
func Reduce(p *Program, uses Uses) []Step {
	r := &reducer{Program: p, uses: uses}
	steps := []Step{r.measure("as written")}
	for _, s := range []struct {
		name string
		run  func()
	}{
		{"known values", r.knownValues},
		{"tables merged", r.mergeTables},
		{"tables to if-else", r.tablesToBranches},
		{"unused left out", r.leaveOutUnused},
	} {
		s.run()
		steps = append(steps, r.measure(s.name))
	}
	return steps
}

type reducer struct {
	*Program
	uses   Uses
	merged *Header // made by merging tables
}

// controls applies f to both controls.
func (r *reducer) controls(f func([]Stmt) []Stmt) {
	r.Ingress, r.Egress = f(r.Ingress), f(r.Egress)
}

func (r *reducer) measure(name string) Step {
	s := Step{Name: name, Tables: len(r.applied())}
	used := r.used()
	for _, h := range r.Headers {
		if !h.Metadata {
			s.Headers++
		}
		for _, f := range h.Fields {
			switch {
			case h.Metadata && (used.read[f] || used.written[f]):
				s.Metadata++
			case !h.Metadata && (used.read[f] || used.written[f] || r.uses.header(h)):
				s.Fields++
			}
		}
	}
	count := func(list []Stmt) {
		walk(list, func(st Stmt) {
			s.Statements++
			if a, ok := st.(Apply); ok {
				s.Statements += a.Table.size()
			}
		})
	}
	count(r.Ingress)
	count(r.Egress)
	return s
}

// size is the number of statements that the table becomes.
func (t *Table) size() int {
	n := 0
	for _, rule := range t.Rules {
		n += 1 + len(rule.Call.Action.Body)
	}
	if t.Default != nil {
		n += len(t.Default.Action.Body)
	}
	return n
}

// applied are the tables that the controls apply, in order of application.
func (r *reducer) applied() []*Table {
	var list []*Table
	for _, control := range [][]Stmt{r.Ingress, r.Egress} {
		walk(control, func(s Stmt) {
			if a, ok := s.(Apply); ok && !slices.Contains(list, a.Table) {
				list = append(list, a.Table)
			}
		})
	}
	return list
}

// knownValues fills in values that are the same for every packet: all arrive from the wire.
func (r *reducer) knownValues() {
	port := r.standard("ingress_port")
	written := r.used().written
	replace := func(e Expr) Expr {
		if ref, ok := e.(Ref); ok && ref.Field == port && !written[port] {
			return Num(PortWire)
		}
		return e
	}
	for _, t := range r.applied() {
		for i := range t.Keys {
			if t.Keys[i].Expr != nil {
				t.Keys[i].Expr = mapExpr(t.Keys[i].Expr, func(e Expr) Expr { return fold(replace(e)) })
			}
		}
		t.dropImpossible()
	}
	for _, a := range r.actions() {
		a.Body = foldStmts(a.Body, replace)
	}
	r.controls(func(list []Stmt) []Stmt { return foldStmts(list, replace) })
}

func (r *reducer) actions() []*Action {
	var list []*Action
	add := func(a *Action) {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	for _, t := range r.applied() {
		for _, rule := range t.Rules {
			add(rule.Call.Action)
		}
		if t.Default != nil {
			add(t.Default.Action)
		}
	}
	return list
}

// dropImpossible removes the rules that cannot match, and those after a rule that always matches.
func (t *Table) dropImpossible() {
	var rules []Rule
	for _, rule := range t.Rules {
		possible, known := truth(t.condition(rule))
		if known && !possible {
			continue
		}
		rules = append(rules, rule)
		if known {
			break
		}
	}
	t.Rules = rules
}

// condition is the condition for the rule to match.
func (t *Table) condition(rule Rule) Expr {
	var cond Expr = Num(1)
	for i, k := range t.Keys {
		cond = fold(Binary{"&&", cond, k.matches(rule.Values[i])})
	}
	return cond
}

func (k Key) matches(v Masked) Expr {
	if k.Kind == Valid {
		if v.Value.Sign() != 0 {
			return IsValid{k.Header}
		}
		return Unary{"!", IsValid{k.Header}}
	}
	return masked(k.Expr, v)
}

// masked compares the bits of x that count.
func masked(x Expr, v Masked) Expr {
	value := Expr(Const{v.Value})
	if v.Mask != nil {
		if v.Mask.Sign() == 0 {
			return Num(1)
		}
		x = fold(Binary{"&", x, Const{v.Mask}})
		value = fold(Binary{"&", value, Const{v.Mask}})
	}
	return fold(Binary{"==", x, value})
}

// tablesToBranches replaces each table by a sequence of if and else.
func (r *reducer) tablesToBranches() {
	r.controls(branches)
	r.Tables = nil
	r.controls(func(list []Stmt) []Stmt { return foldStmts(list, func(e Expr) Expr { return e }) })
}

func branches(list []Stmt) []Stmt {
	var out []Stmt
	for _, s := range list {
		switch s := s.(type) {
		case If:
			s.Then, s.Else = branches(s.Then), branches(s.Else)
			out = append(out, s)
		case Apply:
			out = append(out, s.branch(0)...)
		default:
			out = append(out, s)
		}
	}
	return out
}

// branch is the rules from i on, followed by the default.
func (a Apply) branch(i int) []Stmt {
	t := a.Table
	if i < len(t.Rules) {
		rule := t.Rules[i]
		then := slices.Concat(a.body(rule.Call), branches(a.Hit), a.behind(rule.Call.Action))
		return []Stmt{If{t.condition(rule), then, a.branch(i + 1)}}
	}
	if t.Default == nil {
		return branches(a.Miss)
	}
	return slices.Concat(a.body(*t.Default), branches(a.Miss), a.behind(t.Default.Action))
}

// body is the action's body, with the rule's data and the table's parameters in it.
func (a Apply) body(c Call) []Stmt {
	args := make([]Expr, len(c.Args))
	for i, e := range c.Args {
		if p, ok := e.(Arg); ok {
			e = a.Args[p.Index]
		}
		args[i] = e
	}
	return Substitute(c.Action.Body, args)
}

func (a Apply) behind(act *Action) []Stmt {
	if list, ok := a.After[act]; ok {
		return branches(list)
	}
	return branches(a.Otherwise)
}
