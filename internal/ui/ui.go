// Package ui is the output of the command line: tables and JSON on standard output, progress on standard error.
package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// Terminal reports whether f is a terminal.
func Terminal(f io.Writer) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// JSON writes v, indented.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Table writes rows below a head, in columns. Cells may have untrusted text, so control characters in them lose their effect.
func Table(w io.Writer, head []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Printable(c)
		}
		if len(cells) > 0 {
			fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
	}
	return table.Flush()
}

// Printable makes one line of s without terminal control sequences.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '\uFFFD'
		}
		return r
	}, s)
}

// Colours (ECMA-48, "select graphic rendition").
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Colour paints s where w is a terminal and NO_COLOR (no-color.org) is not set.
func Colour(w io.Writer, colour, s string) string {
	if !Terminal(w) || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// Progress shows what on w if it takes over a second and w is a terminal. The returned function ends that.
func Progress(w io.Writer, what string) (end func()) {
	return Watch(w, func() string { return what })
}

// Watch is Progress of something that changes.
func Watch(w io.Writer, what func() string) (end func()) {
	if !Terminal(w) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-tick.C:
				shown = true
				fmt.Fprintf(w, "\r\x1b[K%s… %ds", what(), int(time.Since(start).Seconds()))
			case <-stop:
				if shown {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
