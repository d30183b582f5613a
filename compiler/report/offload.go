package report

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/compiler/target"
	"github.com/lambdanic/lambdanic/sdk"
)

const offloadModel = "agilio-cx"

// Offload lists what keeps a lambda off the only card that takes programs: what the SDK lacks there, else what the compiler cannot translate
// without our passes, else what the driver refuses in its program. Errors are those of compiler.BuildSource.
func Offload(ctx context.Context, source []byte) ([]target.Violation, error) {
	m, err := target.Load(offloadModel)
	if err != nil {
		return nil, err
	}
	object, err := compiler.ForNFP(ctx, source)
	var found []target.Violation
	var unfit *compiler.Error
	switch {
	case err == nil:
		if found, err = m.Offload.Check(object, compiler.Program); err != nil {
			return nil, err
		}
	case errors.Is(err, compiler.ErrNFP):
		return []target.Violation{{What: err.Error()}}, nil
	case errors.As(err, &unfit):
		if _, err := compiler.BuildSource(ctx, source, compiler.Options{}); err != nil {
			return nil, err // it does not compile for any target
		}
		found = unfits(unfit.Diagnostics)
	default:
		return nil, err
	}
	return byLine(found), nil
}

// unfits turns the compiler's messages into violations, for a lambda that compiles for the NIC.
func unfits(diagnostics []compiler.Diagnostic) (found []target.Violation) {
	for _, d := range diagnostics {
		what, remedy, ok := strings.Cut(d.Message, compiler.NFPRemedy)
		if !ok {
			what, remedy = withoutPasses(d.Message)
		}
		if ok || d.Severity == "error" {
			found = append(found, target.Violation{Place: diagnose.Place{File: d.File, Line: d.Line}, What: what, Remedy: remedy})
		}
	}
	return found
}

// uncalled is LLVM's message for an operation without instructions and without a library function (lib/Target/BPF/BPFISelLowering.cpp in
// LLVM 19).
var uncalled = regexp.MustCompile(`built-in function '(\w+)' is not supported`)

// libraries are functions that our passes provide for the NIC, and that the card lacks: the compiler's own by their names in libgcc.
var libraries = []struct {
	name         *regexp.Regexp
	what, remedy string
}{
	{
		regexp.MustCompile(`^__\w*[sdx]f\w*$|^(sqrt|fma|fmod|floor|ceil|trunc|round|roundeven|rint|nearbyint|l?lround|l?lrint|ldexp|frexp|modf|f?min|f?max|exp|exp2|exp10|log|log2|log10|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh)f?$`),
		"floating point, which the card cannot compute", "use integers, or __fixed of <fixed.h>",
	},
	{
		regexp.MustCompile(`^__\w+ti\d?$`),
		"an integer of 128 bits, which the card cannot compute", "use uint32_t",
	},
	{
		regexp.MustCompile(`^(mem|str|bcmp)`),
		"many bytes at once, or a number of bytes that is not constant", "take few bytes, and a constant number of them",
	},
}

// withoutPasses says in an author's terms what LLVM cannot compile for the card.
func withoutPasses(message string) (what, remedy string) {
	name := uncalled.FindStringSubmatch(message)
	if name == nil {
		return message, ""
	}
	for _, l := range libraries {
		if l.name.MatchString(name[1]) {
			return l.what, l.remedy
		}
	}
	return "a call of " + name[1] + ", which the card has not", "do without it, or run on target nic"
}

// byLine sorts violations by their lines, and removes duplicates. It drops lines of the SDK, which mean nothing to an author, and a violation
// without a line if it also occurs with one.
func byLine(found []target.Violation) []target.Violation {
	placed := map[string]bool{}
	for i := range found {
		if isSDK(found[i].Place.File) {
			found[i].Place = diagnose.Place{}
		}
		placed[found[i].What] = placed[found[i].What] || found[i].Place.File != ""
	}
	found = slices.DeleteFunc(found, func(v target.Violation) bool { return v.Place.File == "" && placed[v.What] })
	slices.SortStableFunc(found, func(a, b target.Violation) int {
		return cmp.Or(strings.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line), strings.Compare(a.What, b.What))
	})
	return slices.CompactFunc(found, func(a, b target.Violation) bool { return a.String() == b.String() })
}

func isSDK(file string) bool {
	f, err := sdk.Headers.Open(file)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
