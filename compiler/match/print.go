package match

import (
	"fmt"
	"strings"
)

// The text of a program, which people can read: equal texts mean equal programs.

func text(list []Stmt) string {
	var b strings.Builder
	for _, s := range list {
		writeStmt(&b, s, 0)
	}
	return b.String()
}

func writeStmt(b *strings.Builder, s Stmt, depth int) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
	}
	block := func(list []Stmt) {
		for _, s := range list {
			writeStmt(b, s, depth+1)
		}
	}
	switch s := s.(type) {
	case Extract:
		line("extract %s", s.Header.Name)
	case Assign:
		line("%s = %s", exprText(Ref{s.To}), exprText(s.From))
	case SetValid:
		line("%s %s", map[bool]string{true: "add", false: "remove"}[s.Valid], s.Header.Name)
	case Primitive:
		line("call %s", s.Name)
	case Drop:
		line("drop")
	case Clone:
		names := make([]string, len(s.Keep))
		for i, f := range s.Keep {
			names[i] = exprText(Ref{f})
		}
		line("clone keeping [%s]", strings.Join(names, " "))
	case If:
		line("if %s", exprText(s.Cond))
		block(s.Then)
		if len(s.Else) > 0 {
			line("else")
			block(s.Else)
		}
	case Apply:
		args := make([]string, len(s.Args))
		for i, a := range s.Args {
			args[i] = exprText(a)
		}
		line("apply %s(%s)", s.Table.Name, strings.Join(args, ", "))
		for _, part := range []struct {
			name string
			list []Stmt
		}{{"hit", s.Hit}, {"miss", s.Miss}, {"otherwise", s.Otherwise}} {
			if len(part.list) > 0 {
				line(" %s", part.name)
				block(part.list)
			}
		}
		for _, a := range s.Table.Actions {
			if len(s.After[a]) > 0 {
				line(" after %s", a.Name)
				block(s.After[a])
			}
		}
	}
}

func exprText(e Expr) string {
	switch e := e.(type) {
	case Const:
		return e.Value.String()
	case Ref:
		return e.Field.Header.Name + "." + e.Field.Name
	case Arg:
		return fmt.Sprintf("$%d", e.Index)
	case IsValid:
		return "valid(" + e.Header.Name + ")"
	case Unary:
		return e.Op + exprText(e.X)
	case Binary:
		return "(" + exprText(e.X) + " " + e.Op + " " + exprText(e.Y) + ")"
	}
	return ""
}

// String is the program as text.
func (p *Program) String() string {
	var b strings.Builder
	for _, s := range p.States {
		fmt.Fprintf(&b, "state %s\n", s.Name)
		for _, step := range s.Steps {
			writeStmt(&b, step, 1)
		}
		for _, c := range s.Cases {
			for i, v := range c.Values {
				fmt.Fprintf(&b, "  %s is %s", exprText(s.Keys[i]), v)
			}
			fmt.Fprintf(&b, ": %s\n", c.Next.name())
		}
		fmt.Fprintf(&b, "  else: %s\n", s.Next.name())
	}
	fmt.Fprintf(&b, "ingress\n%segress\n%s", indent(text(p.Ingress)), indent(text(p.Egress)))
	return b.String()
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

func (s *State) name() string {
	if s == nil {
		return "ingress"
	}
	return s.Name
}

// String is the value, and its mask if it has one.
func (m Masked) String() string {
	if m.Mask == nil {
		return m.Value.String()
	}
	return fmt.Sprintf("%v/%v", m.Value, m.Mask)
}
