package match

// walk calls f with every statement in list, and with nested statements, outer ones first.
func walk(list []Stmt, f func(Stmt)) {
	for _, s := range list {
		f(s)
		switch s := s.(type) {
		case If:
			walk(s.Then, f)
			walk(s.Else, f)
		case Apply:
			walk(s.Hit, f)
			walk(s.Miss, f)
			for _, a := range s.Table.Actions {
				walk(s.After[a], f)
			}
			walk(s.Otherwise, f)
		}
	}
}

// walkExprs calls f with every expression directly in s, and with their operands.
func walkExprs(s Stmt, f func(Expr)) {
	switch s := s.(type) {
	case Assign:
		walkExpr(s.From, f)
	case If:
		walkExpr(s.Cond, f)
	case Apply:
		for _, a := range s.Args {
			walkExpr(a, f)
		}
	}
}

func walkExpr(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	switch e := e.(type) {
	case Unary:
		walkExpr(e.X, f)
	case Binary:
		walkExpr(e.X, f)
		walkExpr(e.Y, f)
	}
}

// mapExpr rebuilds e bottom-up.
func mapExpr(e Expr, f func(Expr) Expr) Expr {
	switch x := e.(type) {
	case nil:
		return nil
	case Unary:
		x.X = mapExpr(x.X, f)
		return f(x)
	case Binary:
		x.X, x.Y = mapExpr(x.X, f), mapExpr(x.Y, f)
		return f(x)
	}
	return f(e)
}

// mapStmts rebuilds list with f applied to every expression in it.
func mapStmts(list []Stmt, f func(Expr) Expr) []Stmt {
	out := make([]Stmt, 0, len(list))
	for _, s := range list {
		switch x := s.(type) {
		case Assign:
			x.From = mapExpr(x.From, f)
			s = x
		case If:
			x.Cond = mapExpr(x.Cond, f)
			x.Then, x.Else = mapStmts(x.Then, f), mapStmts(x.Else, f)
			s = x
		case Apply:
			s = mapApply(x, f)
		}
		out = append(out, s)
	}
	return out
}

func mapApply(x Apply, f func(Expr) Expr) Apply {
	args := make([]Expr, len(x.Args))
	for i, a := range x.Args {
		args[i] = mapExpr(a, f)
	}
	x.Args, x.Hit, x.Miss, x.Otherwise = args, mapStmts(x.Hit, f), mapStmts(x.Miss, f), mapStmts(x.Otherwise, f)
	after := make(map[*Action][]Stmt, len(x.After))
	for a, list := range x.After {
		after[a] = mapStmts(list, f)
	}
	x.After = after
	return x
}

// Substitute returns list with args in place of an action's or a table's parameters.
func Substitute(list []Stmt, args []Expr) []Stmt {
	return mapStmts(list, func(e Expr) Expr {
		if a, ok := e.(Arg); ok && a.Index < len(args) {
			return args[a.Index]
		}
		return e
	})
}
