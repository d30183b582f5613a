// Package diagnose says in an author's terms what the kernel's verifier objects to: at which line, what it could not prove, and
// what to change.
package diagnose

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// An Objection is why the verifier refuses a program.
type Objection struct {
	Place   Place    `json:"place"`
	Message string   `json:"message"`           // the verifier's
	Meaning string   `json:"meaning,omitempty"` // what could not be proven; "" if the message is not known here
	Advice  string   `json:"advice,omitempty"`  // what to change
	Log     []string `json:"log,omitempty"`     // all that the verifier said
}

// Error is one line with what an author needs.
func (o *Objection) Error() string {
	var b strings.Builder
	if o.Place.File != "" {
		b.WriteString(o.Place.String() + ": ")
	}
	if o.Place.Text != "" {
		b.WriteString("in \"" + o.Place.Text + "\": ")
	}
	if o.Meaning == "" {
		b.WriteString("the kernel's verifier cannot prove this safe: " + o.Message)
		return b.String()
	}
	b.WriteString(o.Meaning + ": " + o.Advice + " (the kernel's verifier says: " + o.Message + ")")
	return b.String()
}

// Explain finds the verifier's objection in an error of loading a program; nil if it has none. insns are the program's instructions, if
// known: the log of an old kernel names no lines.
func Explain(err error, insns asm.Instructions) *Objection {
	var ve *ebpf.VerifierError
	if !errors.As(err, &ve) || len(ve.Log) == 0 {
		return withoutLog(err)
	}
	o := read(ve.Log)
	if o.Message == "" {
		return nil
	}
	if at, ok := instruction(o.Message); ok || o.Place.File == "" {
		if !ok {
			at = lastInstruction(ve.Log)
		}
		if p := placeOfRaw(insns, at); p.File != "" {
			o.Place = p
		}
	}
	return o
}

// withoutLog explains the error "bad address", which comes without a log: the verifier has no room to follow another branch (push_stack
// in kernel/bpf/verifier.c, until Linux 6.18).
func withoutLog(err error) *Objection {
	if !errors.Is(err, unix.EFAULT) {
		return nil
	}
	o := &Objection{Message: "The sequence of 8193 jumps is too complex."}
	o.Meaning, o.Advice = explain(o.Message)
	return o
}

var (
	// note is how the log names the source line of what follows (verbose_linfo in kernel/bpf/log.c; with its file since Linux 6.9).
	note = regexp.MustCompile(`^; (.*) @ (\S+):(\d+)$`)
	step = regexp.MustCompile(`^(\d+): \([0-9a-f]{2}\) `)
	// about matches everything in the log but objections: states, steps, calls, and the final statistics.
	about = regexp.MustCompile(`^(\d+: .*|from \d+ to \d+:.*|; .*|processed \d+ insns.*|(verification time|stack depth) .*|` +
		`frame\d+:.*|caller:|callee:|returning from callee:|to caller at .*|mark_precise:.*|R\d+(_\w+)?=.*|` +
		`(cur|old) state:.*|Func#\d+ \(.*is (safe|global).*|Validating \w+\(\) func#\d+\.\.\.|func#\d+ @\d+|arg#\d+ .*|live regs.*|.*: safe|\(truncated.*)$`)
	at = regexp.MustCompile(`(?:at|from|unreachable) insn (\d+)`)
)

// read finds what the verifier says after the last instruction that it walked, and the last line of a C file before that: code of a header
// was inlined there. Of several messages, the first known one is the most precise.
func read(log []string) *Objection {
	o := &Objection{Log: log}
	for _, text := range log {
		text = strings.TrimSpace(text)
		if m := note.FindStringSubmatch(text); m != nil {
			if line, err := strconv.Atoi(m[3]); err == nil && path.Ext(m[2]) == ".c" {
				o.Place = Place{File: path.Base(m[2]), Line: line, Text: strings.TrimSpace(m[1])}
			}
		} else if step.MatchString(text) {
			o.Message, o.Meaning, o.Advice = "", "", ""
		} else if text != "" && !about.MatchString(text) && o.Meaning == "" {
			o.Message = text
			o.Meaning, o.Advice = explain(text)
			if isNull(log, text) {
				o.Meaning, o.Advice = "the pointer may be NULL", nullAdvice
			}
		}
	}
	return o
}

const nullAdvice = "compare it with NULL before it is used: payload() returns NULL where the packet does not have these bytes"

// notPointer is the verifier's message on an access through a register that holds a number.
var notPointer = regexp.MustCompile(`^(R\d+) invalid mem access '(?:scalar|inv)'`)

// isNull says whether that number is NULL plus a small offset. To the verifier, NULL is the number 0: it follows the path on which an
// element was not found separately.
func isNull(log []string, message string) bool {
	m := notPointer.FindStringSubmatch(message)
	if m == nil {
		return false
	}
	state := regexp.MustCompile(`\b` + m[1] + `(?:_w)?=(\S+)`)
	for _, text := range slices.Backward(log) {
		if all := state.FindAllStringSubmatch(text, -1); all != nil {
			return smallNumber.MatchString(all[len(all)-1][1])
		}
	}
	return false
}

// smallNumber is a known number below 10,000 in a state, as Linux 6.1 and later write it (6.1 with inv, and P if precise, before it).
var smallNumber = regexp.MustCompile(`^(inv)?P?\d{1,4}$`)

// instruction is the index of the instruction that a message names.
func instruction(message string) (int, bool) {
	m := at.FindStringSubmatch(message)
	if m == nil {
		return 0, false
	}
	i, err := strconv.Atoi(m[1])
	return i, err == nil
}

// lastInstruction is the index of the last instruction that the verifier walked.
func lastInstruction(log []string) (last int) {
	for _, text := range log {
		if m := step.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
			last, _ = strconv.Atoi(m[1])
		}
	}
	return last
}

// placeOfRaw is PlaceOf for the kernel's indices, which count an instruction of 16 bytes twice.
func placeOfRaw(insns asm.Instructions, raw int) Place {
	for iter := insns.Iterate(); iter.Next(); {
		if int(iter.Offset) == raw {
			return PlaceOf(insns, iter.Index)
		}
	}
	return Place{}
}
