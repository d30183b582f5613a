package cluster

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	most     = 1e9  // of any number in a table
	slowest  = 0.01 // krps, so that a simulation does not outlast the clock
	maxCores = 1024
	maxNICs  = 16
	// Nodes have at least 1 Mb/s and 1 MiB, the units of placement.
	leastGbps = 0.1
	leastGiB  = 0.001

	maxTable = 16 << 20 // bytes
	maxLines = 1000
	maxField = 200 // bytes
)

// fields are those of a line. The first error of a line is kept.
type fields struct {
	columns, record []string
	err             error
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", f.record[0], err)
	}
}

func (f *fields) name(i int) string {
	name := strings.TrimSpace(f.record[i])
	if name == "" || strings.ContainsAny(name, ">+*@:/") || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		f.fail(fmt.Errorf("%s %q: a name is not empty, can be printed, and has none of > + * @ : /", f.columns[i], name))
	}
	return name
}

func (f *fields) number(i int, low, high float64) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(f.record[i]), 64)
	if err != nil || !(x >= low && x <= high) {
		f.fail(fmt.Errorf("%s %q: it has to be a number from %v to %v", f.columns[i], f.record[i], low, high))
		return high
	}
	return x
}

func (f *fields) positive(i int) float64 { return f.number(i, 1e-6, most) }

func (f *fields) count(i int) int {
	x := f.number(i, 1, maxCores)
	if x != math.Trunc(x) {
		f.fail(fmt.Errorf("%s %q: it has to be a whole number", f.columns[i], f.record[i]))
	}
	return int(x)
}

// readTable reads at most maxTable bytes, so that a file without an end does not fill the memory.
func readTable(r io.Reader, columns []string, each func(*fields)) error {
	in := csv.NewReader(&bounded{r, maxTable + 1})
	in.Comment, in.FieldsPerRecord = '#', len(columns)
	head, err := in.Read()
	if err != nil {
		return fmt.Errorf("read the columns %s: %w", strings.Join(columns, ","), err)
	}
	if !slices.Equal(head, columns) {
		if err := short(head); err != nil {
			return fmt.Errorf("read the columns %s: %w", strings.Join(columns, ","), err)
		}
		return fmt.Errorf("the columns are %s; they have to be %s", strings.Join(head, ","), strings.Join(columns, ","))
	}
	lines := make(map[string]int)
	for {
		record, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
		line, _ := in.FieldPos(0)
		if err := short(record); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if len(lines) == maxLines {
			return fmt.Errorf("line %d: there are more than %d lines: take fewer", line, maxLines)
		}
		name := strings.ToLower(strings.TrimSpace(record[0]))
		if before, ok := lines[name]; ok {
			return fmt.Errorf("lines %d and %d both have the %s %q: take one of them out", before, line, columns[0], strings.TrimSpace(record[0]))
		}
		lines[name] = line
		f := &fields{columns: columns, record: record}
		if each(f); f.err != nil {
			return fmt.Errorf("line %d: %w", line, f.err)
		}
	}
}

func short(record []string) error {
	for _, field := range record {
		if len(field) > maxField {
			return fmt.Errorf("a field that begins with %.20q has %d bytes, which are more than %d: look for a missing quote", field, len(field), maxField)
		}
	}
	return nil
}

// bounded is a reader that fails, and does not end, beyond so many bytes.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("it has more than %d MiB, which no table needs: give a file in this form", maxTable>>20)
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
