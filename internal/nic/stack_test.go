package nic

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// What check_max_stack_depth() of kernel/bpf/verifier.c allows. Linux 6.8 counts frames in steps of 32 bytes; later kernels with a JIT
// count in steps of 16.
const (
	stackStep      = 32
	stackMax       = 512
	stackMaxBefore = 256 // of the callers of a function that makes a tail call: less than this
)

// stackFrames are the functions of one program, as the verifier measured them.
type stackFrames struct {
	bytes map[string]int
	calls map[string][]string
	tails map[string]bool
}

// depthsOf reads the frames' sizes from the verifier's statistics, which have them in the order of the functions: in one line, or, as of
// Linux 7.3, one in each function's line.
func depthsOf(t *testing.T, log string) (depths []string) {
	for _, line := range regexp.MustCompile(`(?m)^subprog \d+ .* stack (\d+)$`).FindAllStringSubmatch(log, -1) {
		depths = append(depths, line[1])
	}
	if depths != nil {
		return depths
	}
	found := regexp.MustCompile(`stack depth ([0-9+]+)`).FindStringSubmatch(log)
	if found == nil {
		t.Fatalf("the verifier did not tell: %s", log)
	}
	return strings.Split(found[1], "+")
}

// framesOf tells how the functions of a program use the stack.
func framesOf(t *testing.T, insns asm.Instructions, log string) stackFrames {
	f := stackFrames{bytes: map[string]int{}, calls: map[string][]string{}, tails: map[string]bool{}}
	depths := depthsOf(t, log)
	var function string
	for _, insn := range insns {
		if s := insn.Symbol(); s != "" {
			n, err := strconv.Atoi(depths[len(f.bytes)])
			if err != nil {
				t.Fatal(err)
			}
			function = s
			f.bytes[s] = (max(n, 1) + stackStep - 1) / stackStep * stackStep
		}
		if insn.IsFunctionCall() {
			f.calls[function] = append(f.calls[function], insn.Reference())
		}
		if insn.IsBuiltinCall() && insn.Constant == int64(asm.FnTailCall) {
			f.tails[function] = true
		}
	}
	return f
}

// check follows every path from the end of one.
func (f stackFrames) check(t *testing.T, path []string, before int) {
	function := path[len(path)-1]
	if len(path) > 1 && f.tails[function] && before >= stackMaxBefore {
		t.Errorf("%d bytes of stack before a tail call, %d are too many: %s", before, stackMaxBefore, strings.Join(path, " > "))
	}
	if before += f.bytes[function]; before > stackMax {
		t.Errorf("%d bytes of stack, %d are allowed: %s", before, stackMax, strings.Join(path, " > "))
	}
	for _, callee := range f.calls[function] {
		f.check(t, append(path[:len(path):len(path)], callee), before)
	}
}

// The NIC's programs fit the stack that Linux 6.8 gives them.
func TestStackOfOlderKernels(t *testing.T) {
	for _, h := range program.All(newModules(Config{}).halves()) {
		spec, c := verified(t, h, 0, 0)
		for name, p := range c.Programs {
			t.Run(name, func(t *testing.T) {
				f := framesOf(t, spec.Programs[name].Instructions, p.VerifierLog)
				t.Log(f.bytes)
				f.check(t, []string{name}, 0)
			})
		}
	}
}
