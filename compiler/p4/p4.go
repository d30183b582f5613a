// Package p4 reads P4_14 in the dialect of Netronome's tools, and its rules files, into the match stage of a program (package match). The
// language is that of the P4 Language Specification 1.0.5.
package p4

import (
	"github.com/lambdanic/lambdanic/compiler/match"
)

// Parse reads the program in a file, and the files that it includes, only by open. The error joins all *Errors that were found.
func Parse(name string, open Open) (*match.Program, error) {
	var errors errorList
	pre := &preprocessor{open: open, errors: &errors, macros: map[string][]token{}}
	pre.file(name, position{name, 1, 1}, 0)
	end := position{file: name, line: 1, column: 1}
	if n := len(pre.out); n > 0 {
		end = pre.out[n-1].position
		end.column += len(pre.out[n-1].text)
	}
	tree := parse(append(pre.out, token{position: end}), &errors)
	if len(errors) > 0 { // the checker would also report names lost to syntax errors
		return nil, errors.err()
	}
	program := check(name, tree, &errors)
	return program, errors.err()
}
