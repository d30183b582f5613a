package compiler

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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

var (
	located   = regexp.MustCompile(`^(/[^:]*):(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)$`)
	unlocated = regexp.MustCompile(`^(?:[a-z.-]+: )?(error|warning|note): (.*)$`)
	undefined = regexp.MustCompile(`^undefined symbol: (.*)$`)
	// excerpt is a line of the source under a message, or marks under it. Nothing else that the tools print is shown: where
	// they crash, they print where they are installed and how they were called.
	excerpt = regexp.MustCompile(`^ *\d* \|`)
	// hidePaths leaves of a path in the sandbox what the author knows.
	hidePaths = strings.NewReplacer(lambdaDir+"/", "", sdkDir+"/", "")
)

// parseDiagnostics reads what clang and lld print. What they say of the generated unit means nothing to an author, so it is
// left out, with the notes that belong to it.
func parseDiagnostics(text string) []Diagnostic {
	var list []Diagnostic
	keep := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := located.FindStringSubmatch(line); m != nil {
			followsDropped := m[4] == "note" && !keep && len(list) == 0
			if keep = m[1] != unitFile && !followsDropped; keep {
				list = append(list, diagnosticAt(m))
			}
		} else if m := unlocated.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[2], "clang frontend command failed") {
			keep = true
			list = append(list, Diagnostic{Severity: m[1], Message: explain(m[2])})
		} else if keep && excerpt.MatchString(line) {
			last := &list[len(list)-1]
			last.Excerpt = strings.TrimPrefix(last.Excerpt+"\n"+line, "\n")
		}
	}
	return list
}

func diagnosticAt(m []string) Diagnostic {
	line, _ := strconv.Atoi(m[2])
	column, _ := strconv.Atoi(m[3])
	return Diagnostic{
		File: hidePaths.Replace(m[1]), Line: line, Column: column, Severity: m[4], Message: hidePaths.Replace(m[5]),
	}
}

func explain(message string) string {
	if m := undefined.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s is declared, but nowhere defined", m[1])
	}
	return message
}
