package placement

import (
	"bufio"
	"fmt"
	"io"
	"math"
)

// model is a mixed integer linear program: minimise a sum over columns, none of which is negative, under rows.
type model struct {
	columns []column
	rows    []row
	scale   float64 // of the objective as it is written
}

type column struct {
	cost    float64
	binary  bool
	entries []coefficient
}

type coefficient struct {
	row   int
	value float64
}

// row is a sum that is at most, or exactly, a bound.
type row struct {
	bound float64
	exact bool
}

func (m *model) column(cost float64, binary bool) int {
	m.columns = append(m.columns, column{cost: cost, binary: binary})
	return len(m.columns) - 1
}

func (m *model) row(bound float64, exact bool) int {
	m.rows = append(m.rows, row{bound, exact})
	return len(m.rows) - 1
}

func (m *model) add(row, column int, value float64) {
	c := &m.columns[column]
	if last := len(c.entries) - 1; last >= 0 && c.entries[last].row == row {
		c.entries[last].value += value
		return
	}
	c.entries = append(c.entries, coefficient{row, value})
}

// write writes the model as MPS. FREE after the name is for CBC, which otherwise takes short lines for fields of fixed columns. Its objective is scaled, so that solvers' absolute tolerances do not matter.
func (m *model) write(w io.Writer) error {
	largest := 0.0
	for i := range m.columns {
		largest = max(largest, math.Abs(m.columns[i].cost))
	}
	m.scale = 1
	if largest > 0 {
		m.scale = 1e5 / largest
	}
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "NAME placement FREE\nROWS\n N cost\n")
	for i, r := range m.rows {
		fmt.Fprintf(b, " %s r%d\n", map[bool]string{true: "E", false: "L"}[r.exact], i)
	}
	fmt.Fprint(b, "COLUMNS\n")
	inside := false
	for i := range m.columns {
		c := &m.columns[i]
		if c.binary != inside {
			fmt.Fprintf(b, " MARKER 'MARKER' %s\n", map[bool]string{true: "'INTORG'", false: "'INTEND'"}[c.binary])
			inside = c.binary
		}
		fmt.Fprintf(b, " c%d cost %.17g\n", i, c.cost*m.scale)
		for _, e := range c.entries {
			fmt.Fprintf(b, " c%d r%d %.17g\n", i, e.row, e.value)
		}
	}
	if inside {
		fmt.Fprint(b, " MARKER 'MARKER' 'INTEND'\n")
	}
	fmt.Fprint(b, "RHS\n")
	for i, r := range m.rows {
		fmt.Fprintf(b, " RHS r%d %.17g\n", i, r.bound)
	}
	fmt.Fprint(b, "BOUNDS\n")
	for i := range m.columns {
		if m.columns[i].binary {
			fmt.Fprintf(b, " UP BND c%d 1\n", i)
		}
	}
	fmt.Fprint(b, "ENDATA\n")
	return b.Flush()
}
