package compiler

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

// The declarations that crash clang, or that LLVM has no line for, and what to do about them. The plugin uses the same names
// (compiler/passes/declarations.cpp).
const (
	fileAssembly = "assembly outside of functions"
	otherName    = "another name of a function or an object"
)

var unplacedRemedies = map[string]string{
	fileAssembly: "write it in C, or in a function",
	otherName:    "leave the attribute out, and use the name that it has",
}

func isUnplaced(d Diagnostic) bool { return d.File == "" && unplacedRemedies[d.Message] != "" }

// unplaced finds such declarations in the author's files if the compiler's messages are about one.
func unplaced(ctx context.Context, tools *toolchain, args []string, input []sandbox.File, crashed bool, list []Diagnostic) []Diagnostic {
	if !crashed && !slices.ContainsFunc(list, isUnplaced) {
		return nil
	}
	at := slices.Index(args, "-c")
	if args[0] != tools.clang || at < 0 {
		return nil // for the host, which has neither problem
	}
	args = slices.Replace(slices.Clone(args), at, at+1, "-E")
	text, _, err := sandbox.Run(ctx, sandbox.Command{
		Args: slices.DeleteFunc(args, isPlugin), ReadOnly: tools.visible, Files: input, Dir: lambdaDir, Limits: limits,
	})
	if err != nil {
		return nil // the compiler's own message has to do
	}
	return findDeclarations(string(text))
}

// cToken is a line marker of the preprocessor's, or a token of C: a literal, a word, one character of anything else.
var cToken = regexp.MustCompile(`(?m)^# (\d+) "([^"\n]*)".*\n|^#.*\n|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\w+|\n|[^\s\w]`)

// findDeclarations reads what the preprocessor made of a unit.
func findDeclarations(text string) (list []Diagnostic) {
	var file, before string
	line, depth := 1, 0
	inAttribute := false
	for _, m := range cToken.FindAllStringSubmatch(text, -1) {
		token := m[0]
		switch {
		case m[1] != "":
			line, _ = strconv.Atoi(m[1])
			file = m[2]
			continue
		case strings.HasSuffix(token, "\n"):
			line++
			continue
		}
		what := ""
		switch strings.Trim(token, "_") {
		case "{", "(", "[":
			depth++
		case "}", ")", "]":
			depth--
			inAttribute = inAttribute && depth > 0
		case "attribute":
			inAttribute = true
		case "asm":
			if depth == 0 && strings.Contains(" ; } extension ", " "+strings.Trim(before, "_")+" ") {
				what = fileAssembly
			}
		case "alias", "ifunc":
			if inAttribute {
				what = otherName
			}
		}
		if what != "" && strings.HasPrefix(file, lambdaDir+"/") {
			list = append(list, Diagnostic{
				File: hidePaths.Replace(file), Line: line, Column: 1, Severity: "error", Message: what + ": " + unplacedRemedies[what],
			})
		}
		before = token
	}
	return list
}
