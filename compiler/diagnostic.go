package compiler

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// Diagnostic is one message of the compiler about the author's source.
type Diagnostic struct {
	File     string `json:"file"` // relative to the lambda's directory
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"` // error, warning or note
	Message  string `json:"message"`
	Excerpt  string `json:"excerpt,omitempty"` // the line, and marks under it
}

func (d Diagnostic) String() string {
	text := d.Severity + ": " + d.Message
	if d.File != "" {
		text = fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, text)
	}
	if d.Excerpt != "" {
		text += "\n" + d.Excerpt
	}
	return text
}

func (d Diagnostic) isError() bool { return d.Severity == "error" }

// Error says that a lambda does not compile.
type Error struct {
	Lambda      string
	Diagnostics []Diagnostic
}

func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("lambda %s does not compile:", e.Lambda)}
	for _, d := range e.Diagnostics {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n")
}

// Faults are the errors with their notes, without the warnings.
func (e *Error) Faults() string {
	var lines []string
	kept := true
	for _, d := range e.Diagnostics {
		if d.Severity != "note" { // a note belongs to the message before it
			kept = d.isError()
		}
		if kept {
			lines = append(lines, d.String())
		}
	}
	return strings.Join(lines, "\n")
}

var (
	located   = regexp.MustCompile(`^(/[^:]*):(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)$`)
	included  = regexp.MustCompile(`^In file included from (/[^:]*):(\d+):$`)
	unlocated = regexp.MustCompile(`^(?:[a-z.-]+: )?(?:fatal )?(error|warning|note): (.*)$`)
	undefined = regexp.MustCompile(`^undefined symbol: (.*)$`)
	// excerpt is a line of the source under a message, or marks under it. Nothing else that the tools print is shown: when they crash,
	// they print where they are installed and how they were called.
	excerpt = regexp.MustCompile(`^ *\d* \|`)
	// hidePaths cuts the sandbox's directories from a path.
	hidePaths = strings.NewReplacer(lambdaDir+"/", "", sdkDir+"/", "")
)

// broken is LLVM's message about invalid IR that compiler/passes made (lib/IR/Verifier.cpp in LLVM 19). If only the debug information is
// invalid, LLVM may drop it and go on, to an object file without the types that the kernel asks for.
var broken = regexp.MustCompile(`(?m)^(?:[\w./-]+: )*(?:(?:fatal )?error: |warning: |LLVM ERROR: )(?:error in backend: )?` +
	`(ignoring (?:invalid )?debug info .*|Broken (?:module|(?:machine )?function) found.*|input module is broken!)$`)

// findDefect looks for such a message, however severe the tool takes it to be.
func findDefect(messages string) error {
	m := broken.FindStringSubmatch(messages)
	if m == nil {
		return nil
	}
	return fmt.Errorf("%w: LLVM takes what it made for broken (%s): %s, with the source", ErrDefect, m[1], kernel.Defect)
}

// noPlace begins a useless note of clang's under an error of the code generator.
const noPlace = "could not determine the original source location"

// parseDiagnostics reads what clang and lld print. Messages about the generated unit mean nothing to an author, so they are left out, with
// their notes. Messages that the code generator repeats for each instruction come once, at an author's line if they name one.
func parseDiagnostics(text string) []Diagnostic {
	var list []Diagnostic
	keep := false
	var by []string // the author's #include that a system header came by
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := included.FindStringSubmatch(line); m != nil {
			if strings.HasPrefix(m[1], lambdaDir+"/") {
				by = m
			}
		} else if m := located.FindStringSubmatch(line); m != nil {
			d := diagnosticAt(m)
			if by != nil && strings.HasPrefix(m[1], systemHeaders) {
				d.File, d.Column = hidePaths.Replace(by[1]), 1
				d.Line, _ = strconv.Atoi(by[2])
				list, keep = append(list, d), false
				continue
			}
			if text := diagnose.Compiler(d.Message); text != "" {
				d.Message = text
				list, keep = once(list, d, strings.HasPrefix(m[1], lambdaDir+"/"))
				continue
			}
			followsDropped := m[4] == "note" && (!keep || strings.HasPrefix(m[5], noPlace))
			if keep = m[1] != unitFile && !followsDropped; keep {
				list = append(list, d)
			}
		} else if m := unlocated.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[2], "clang frontend command failed") {
			keep = true
			list = append(list, Diagnostic{Severity: m[1], Message: cmp.Or(diagnose.Compiler(m[2]), explain(m[2]))})
		} else if keep && excerpt.MatchString(line) {
			last := &list[len(list)-1]
			last.Excerpt = strings.TrimPrefix(last.Excerpt+"\n"+line, "\n")
		}
	}
	return list
}

// once adds a message unless it is there already, and says whether its excerpt is wanted. A place outside of the author's files is dropped.
func once(list []Diagnostic, d Diagnostic, authors bool) ([]Diagnostic, bool) {
	i := slices.IndexFunc(list, func(o Diagnostic) bool { return o.Message == d.Message })
	switch {
	case i < 0 && authors:
		return append(list, d), true
	case i < 0:
		return append(list, Diagnostic{Severity: d.Severity, Message: d.Message}), false
	case authors && list[i].File == "":
		return append(slices.Delete(list, i, i+1), d), true
	}
	return list, false
}

func diagnosticAt(m []string) Diagnostic {
	line, _ := strconv.Atoi(m[2])
	column, _ := strconv.Atoi(m[3])
	if strings.HasPrefix(m[1], systemHeaders) && missingHeader.MatchString(m[5]) {
		m[5] += ": a header of the C library that is not there on the NIC, which has " + nicHeaders
	} else if remedy := cmp.Or(undeclared(m[5]), instead(m[5])); remedy != "" {
		m[5] += ": " + remedy
	}
	return Diagnostic{
		File: hidePaths.Replace(m[1]), Line: line, Column: column, Severity: m[4], Message: explain(hidePaths.Replace(m[5])),
	}
}

// systemHeaders is where the C library's headers are.
const systemHeaders = "/usr/include/"

// missingHeader is clang's message when the C library's headers include a header for another processor.
var missingHeader = regexp.MustCompile(`^'gnu/stubs-\w+\.h' file not found`)

// nicHeaders are the C library headers for the NIC: the SDK's and the compiler's own.
const nicHeaders = "<string.h>, <stdlib.h>, <ctype.h>, <math.h>, <fixed.h>, <stdint.h>, <stddef.h>, <stdbool.h>, <limits.h> and <float.h>"

// Functions of the C library that many expect, but that a lambda lacks.
var (
	missing  = regexp.MustCompile(`(?:undeclared function|undeclared library function|a call of) '(\w+)'`)
	printing = regexp.MustCompile(`^(?:(?:v?[fd]?printf|f?puts|putchar|fputc|perror|v?syslog)|bpf_(?:trace_)?v?printk)$`)
	writing  = regexp.MustCompile(`^v?sn?printf$`)
)

// instead says what to write in place of such a function.
func instead(message string) string {
	m := missing.FindStringSubmatch(message)
	switch {
	case m == nil:
		return ""
	case printing.MatchString(m[1]):
		return "a lambda has nowhere to print to: put what you want to see into its reply"
	case writing.MatchString(m[1]):
		return "lambda_put_number() of \"text.h\" writes numbers into a payload"
	case strings.HasPrefix(message, "a call of"):
		return "give the function a fixed number, or an array"
	}
	return ""
}

var (
	undeclaredMessage = regexp.MustCompile(`undeclared (function|identifier) 'lambda_message'`)
	undeclaredService = regexp.MustCompile(`undeclared identifier 'SERVICE_(\w+)'`)
)

// undeclared says what to write in the spec for a name that exists only by it.
func undeclared(message string) string {
	if undeclaredMessage.MatchString(message) {
		return "it is there with message: { mode: assemble } in " + api.SpecFile
	}
	if m := undeclaredService.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("services in %s has no %s", api.SpecFile, m[1])
	}
	return ""
}

func explain(message string) string {
	if m := undefined.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s is declared, but nowhere defined", m[1])
	}
	if strings.HasSuffix(message, "does not support it") && strings.Contains(message, "'long double'") {
		return "long double is not the same on the NIC and on the host: use double"
	}
	return message
}
