package p4

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is an error at one place of a program or of its rules.
type Error struct {
	File         string
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: error: %s", e.File, e.Line, e.Column, e.Message)
}

// maxErrors keeps a file that is not P4 from filling the screen.
const maxErrors = 20

// errorList collects errors, one for each place.
type errorList []*Error

func (l *errorList) add(at position, format string, args ...any) {
	if len(*l) > 0 {
		if last := (*l)[len(*l)-1]; last.File == at.file && last.Line == at.line && last.Column == at.column {
			return
		}
	}
	*l = append(*l, &Error{at.file, at.line, at.column, fmt.Sprintf(format, args...)})
}

// err joins the first errors: by file, in the order in which the files were read, and by place.
func (l *errorList) err() error {
	files := map[string]int{}
	for _, e := range *l {
		if _, known := files[e.File]; !known {
			files[e.File] = len(files)
		}
	}
	list := slices.Clone(*l)
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(files[a.File]-files[b.File], a.Line-b.Line, a.Column-b.Column)
	})
	if len(list) > maxErrors {
		list = list[:maxErrors]
	}
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// quoted lists names for a message: "a", "b" or "c".
func quoted(names ...string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
