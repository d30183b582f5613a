package match

import (
	"math/big"
)

// fold returns an expression's value if it is known, or a simpler expression.
func fold(e Expr) Expr {
	switch e := e.(type) {
	case Unary:
		if e.Op == "!" {
			if v, known := truth(e.X); known {
				return boolean(!v)
			}
		}
	case Binary:
		return foldBinary(e)
	}
	return e
}

func foldBinary(e Binary) Expr {
	switch e.Op {
	case "&&", "||":
		// A constant operand decides the result, or has no effect.
		decides := e.Op == "||"
		for _, sides := range [][2]Expr{{e.X, e.Y}, {e.Y, e.X}} {
			if v, known := truth(sides[0]); known {
				if v == decides {
					return boolean(decides)
				}
				return sides[1]
			}
		}
		return e
	}
	x, okX := e.X.(Const)
	y, okY := e.Y.(Const)
	if !okX || !okY {
		return e
	}
	c := x.Value.Cmp(y.Value)
	switch e.Op {
	case "==":
		return boolean(c == 0)
	case "!=":
		return boolean(c != 0)
	case "<":
		return boolean(c < 0)
	case ">":
		return boolean(c > 0)
	case "<=":
		return boolean(c <= 0)
	case ">=":
		return boolean(c >= 0)
	case "&":
		return Const{new(big.Int).And(x.Value, y.Value)}
	case "|":
		return Const{new(big.Int).Or(x.Value, y.Value)}
	}
	return e // the C compiler folds arithmetic
}

func truth(e Expr) (value, known bool) {
	c, ok := e.(Const)
	return ok && c.Value.Sign() != 0, ok
}

func boolean(b bool) Const {
	if b {
		return Num(1)
	}
	return Num(0)
}

// foldStmts simplifies conditions, and removes statements that never run.
func foldStmts(list []Stmt, replace func(Expr) Expr) []Stmt {
	return prune(mapStmts(list, func(e Expr) Expr { return fold(replace(e)) }))
}

func prune(list []Stmt) []Stmt {
	var out []Stmt
	for _, s := range list {
		x, ok := s.(If)
		if !ok {
			out = append(out, s)
			continue
		}
		x.Then, x.Else = prune(x.Then), prune(x.Else)
		v, known := truth(x.Cond)
		switch {
		case known && v:
			out = append(out, x.Then...)
		case known:
			out = append(out, x.Else...)
		case len(x.Then) == 0 && len(x.Else) == 0:
		case len(x.Then) == 0:
			out = append(out, If{Cond: Unary{"!", x.Cond}, Then: x.Else})
		default:
			out = append(out, x)
		}
	}
	return out
}
