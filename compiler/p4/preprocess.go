package p4

import (
	"path"
	"slices"
)

// Limits against hostile programs.
const (
	maxDepth  = 16      // of #include, of macros and of nested blocks
	maxTokens = 1 << 18 // after expansion
)

// Open reads a file of a program. Names are cleaned, and relative to the program's directory. Names that lead out of it begin with .. or /.
type Open func(name string) ([]byte, error)

// preprocessor returns the tokens of a file and of the files that it includes, with macros expanded.
type preprocessor struct {
	open   Open
	errors *errorList
	macros map[string][]token
	out    []token
	full   bool
}

func (p *preprocessor) emit(t token) {
	if len(p.out) >= maxTokens {
		if !p.full {
			p.errors.add(t.position, "the program has more than %d tokens", maxTokens)
		}
		p.full = true
		return
	}
	p.out = append(p.out, t)
}

// file appends the tokens of one file.
func (p *preprocessor) file(name string, from position, depth int) {
	if depth > maxDepth {
		p.errors.add(from, "#include is nested more than %d deep", maxDepth)
		return
	}
	text, err := p.open(name)
	if err != nil {
		p.errors.add(from, "cannot include %q: %v", name, err)
		return
	}
	l := newLexer(name, string(text), p.errors)
	f := &sourceFile{preprocessor: p, lexer: l, name: name, depth: depth}
	f.ahead = l.next()
	for f.ahead.kind != kindEOF && !p.full {
		if f.ahead.first && f.ahead.text == "#" && f.ahead.kind == kindMark {
			f.directive()
			continue
		}
		t := f.take()
		switch {
		case f.hidden():
		case t.kind == kindMark && t.text == "@": // @pragma: hints for other targets
			f.line()
		default:
			p.expand(t, nil)
		}
	}
	if len(f.conditions) > 0 {
		p.errors.add(f.ahead.position, "file ends within #if: expected \"#endif\"")
	}
}

// expand emits a token, or the expansion of the macro of its name, at the place of the name.
func (p *preprocessor) expand(t token, within []string) {
	body, ok := p.macros[t.text]
	if t.kind != kindName || !ok || slices.Contains(within, t.text) {
		p.emit(t)
		return
	}
	if len(within) >= maxDepth {
		p.errors.add(t.position, "macros are nested more than %d deep", maxDepth)
		return
	}
	within = append(slices.Clone(within), t.text)
	for _, b := range body {
		if p.full {
			return
		}
		b.position = t.position
		p.expand(b, within)
	}
}

// sourceFile is a file on its way through the preprocessor.
type sourceFile struct {
	*preprocessor
	*lexer
	name       string
	depth      int
	ahead      token
	conditions []condition
}

// condition is an #if around the current line.
type condition struct {
	hides bool // the lines up to the next #else or #endif
	taken bool // no further branch may be shown
}

func (f *sourceFile) hidden() bool {
	return slices.ContainsFunc(f.conditions, func(c condition) bool { return c.hides })
}

func (f *sourceFile) take() token {
	t := f.ahead
	f.ahead = f.next()
	return t
}

// line takes the rest of the last token's line.
func (f *sourceFile) line() []token {
	var list []token
	for f.ahead.kind != kindEOF && !f.ahead.first {
		list = append(list, f.take())
	}
	return list
}

func (f *sourceFile) directive() {
	f.take()
	rest := f.line()
	if len(rest) == 0 {
		return // an empty directive means nothing
	}
	word, args := rest[0], rest[1:]
	switch word.text {
	case "ifdef", "ifndef", "if", "else", "endif":
		f.conditional(word, args)
		return
	}
	if f.hidden() {
		return
	}
	switch word.text {
	case "include":
		f.include(word, args)
	case "define":
		f.define(word, args)
	case "undef":
		if name, ok := f.macroName(word, args); ok {
			delete(f.macros, name)
		}
	case "pragma", "line":
	default:
		f.preprocessor.errors.add(word.position, "unknown directive %q: expected %s", "#"+word.text,
			quoted("include", "define", "undef", "if", "ifdef", "ifndef", "else", "endif"))
	}
}

func (f *sourceFile) conditional(word token, args []token) {
	last := len(f.conditions) - 1
	switch word.text {
	case "else", "endif":
		if last < 0 {
			f.preprocessor.errors.add(word.position, "#%s without #if", word.text)
			return
		}
		if word.text == "endif" {
			f.conditions = f.conditions[:last]
			return
		}
		f.conditions[last] = condition{hides: f.conditions[last].taken, taken: true}
		return
	}
	if len(f.conditions) >= maxDepth {
		f.preprocessor.errors.add(word.position, "#if is nested more than %d deep", maxDepth)
	}
	shown := f.condition(word, args)
	f.conditions = append(f.conditions, condition{hides: !shown, taken: shown})
}

// condition tells whether an #if shows its lines. #if takes a number, or defined(NAME).
func (f *sourceFile) condition(word token, args []token) bool {
	if word.text != "if" {
		name, _ := f.macroName(word, args)
		_, defined := f.macros[name]
		return defined == (word.text == "ifdef")
	}
	negated := false
	for len(args) > 0 && args[0].text == "!" {
		negated, args = !negated, args[1:]
	}
	if len(args) > 1 && args[0].text == "defined" {
		name := args[1]
		if name.text == "(" && len(args) > 3 {
			name = args[2]
		}
		_, defined := f.macros[name.text]
		return defined != negated
	}
	if len(args) == 1 {
		t := args[0]
		if body := f.macros[t.text]; t.kind == kindName && len(body) == 1 {
			t = body[0]
		}
		if t.kind == kindNumber {
			return (t.value.Sign() != 0) != negated
		}
	}
	f.preprocessor.errors.add(word.position, "this #if is not understood: expected a number or \"defined(NAME)\"")
	return false
}

func (f *sourceFile) macroName(word token, args []token) (string, bool) {
	if len(args) == 0 || args[0].kind != kindName {
		f.preprocessor.errors.add(word.position, "#%s: expected a name behind it", word.text)
		return "", false
	}
	return args[0].text, true
}

func (f *sourceFile) define(word token, args []token) {
	name, ok := f.macroName(word, args)
	if !ok {
		return
	}
	if len(args) > 1 && args[1].text == "(" && !args[1].space {
		f.preprocessor.errors.add(args[1].position, "macros with parameters are not supported: write %s out", name)
		return
	}
	f.macros[name] = args[1:]
}

func (f *sourceFile) include(word token, args []token) {
	name := ""
	switch {
	case len(args) == 1 && args[0].kind == kindString:
		name = path.Join(path.Dir(f.name), args[0].text)
	case len(args) > 2 && args[0].text == "<" && args[len(args)-1].text == ">":
		for _, t := range args[1 : len(args)-1] {
			name += t.text
		}
		name = path.Clean(name)
	default:
		f.preprocessor.errors.add(word.position, "#include: expected \"FILE\" or <FILE> behind it")
		return
	}
	f.file(name, args[0].position, f.depth+1)
}
