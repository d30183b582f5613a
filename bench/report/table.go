package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table lays rows out in columns: the first to the left, the others to the right. The first row is the heading.
func Table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		if n == 0 {
			b.WriteString(strings.Repeat("─", lineWidth(widths)) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func lineWidth(widths []int) int {
	total := -2
	for _, n := range widths {
		total += n + 2
	}
	return max(total, 0)
}

// WriteTable writes the suite for a reader at a terminal.
func (s Suite) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d CPUs, %s, Linux %s\n\n", s.Suite, s.Machine.CPUs, s.Machine.Link, s.Machine.Kernel)
	rows := [][]string{{"figure", "unit", "median", "min", "max", "against", "value", "times better", "95 % interval"}}
	for _, r := range s.Results {
		row := []string{r.Name, r.Unit, Number(r.Value), Number(r.Spread[0]), Number(r.Spread[1])}
		for i, other := range slices.Sorted(maps.Keys(r.Against)) {
			if i > 0 {
				row = []string{"", "", "", "", ""}
			}
			rows = append(rows, append(row, other, Number(r.Against[other]), Number(r.Ratio[other]), interval(r, other)))
		}
		if len(r.Against) == 0 {
			rows = append(rows, row)
		}
	}
	return Table(w, rows)
}

// interval writes the confidence interval of a ratio; "" where the rounds are too few.
func interval(r Result, other string) string {
	between, ok := r.Interval[other]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.3f to %.3f", between[0], between[1])
}

// Number writes three significant digits, and whole numbers from 1,000 on with their thousands apart.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	if math.Abs(v) < 999.5 {
		digits := 2
		if v != 0 {
			digits = min(2, max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))))
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		s = "-" + s
	}
	return s
}
