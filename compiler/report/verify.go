package report

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/check/percpu"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// Verified is what the kernel's verifier says about a program that it accepts.
type Verified struct {
	Instructions int      `json:"instructions"` // that it walked, in all
	States       int      `json:"states"`
	Stack        int      `json:"stack"` // bytes
	Log          []string `json:"log,omitempty"`
}

// budget is for programs that are loaded but not run.
const budget = time.Microsecond

// Verify loads the program of an object file, returns what the verifier says, and unloads it. The log of an accepted program is short unless
// all is set. If the kernel refuses the program, the error is a *diagnose.Objection.
func Verify(object []byte, all bool) (*Verified, error) {
	spec, err := read(object)
	if err != nil {
		return nil, err
	}
	if _, err := metering.Check(spec); err != nil {
		return nil, err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count the CPUs: %w", err)
	}
	if err := errors.Join(percpu.Fit(spec, cpus), metering.Fill(spec, budget)); err != nil {
		return nil, err
	}
	kernel.Fit(spec)
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("load the program: %w", err)
	}
	program := spec.Programs[compiler.Program]
	if program == nil {
		return nil, fmt.Errorf("%w: the object holds no program %q", compiler.ErrForbidden, compiler.Program)
	}
	level := ebpf.LogLevelBranch | ebpf.LogLevelStats
	if all {
		level |= ebpf.LogLevelInstruction
	}
	c, err := load(spec, level)
	if all && errors.Is(err, unix.EINVAL) { // the log exceeds the kernel's maximum
		c, err = load(spec, ebpf.LogLevelBranch)
	}
	if o := diagnose.Explain(err, program.Instructions); o != nil {
		return nil, o
	} else if err != nil {
		return nil, fmt.Errorf("load the program: %w", err)
	}
	defer c.Close()
	return readLog(c.Programs[compiler.Program].VerifierLog), nil
}

func load(spec *ebpf.CollectionSpec, level ebpf.LogLevel) (*ebpf.Collection, error) {
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: level}})
}

var (
	processed  = regexp.MustCompile(`processed (\d+) insns .*total_states (\d+)`)
	stackDepth = regexp.MustCompile(`stack depth (\d+)((?:\+\d+)*)`)
	plus       = regexp.MustCompile(`\d+`)
)

// readLog reads the statistics at the end of a log.
func readLog(log string) *Verified {
	v := &Verified{}
	for line := range strings.Lines(log) {
		v.Log = append(v.Log, strings.TrimRight(line, "\n"))
		if m := processed.FindStringSubmatch(line); m != nil {
			v.Instructions, _ = strconv.Atoi(m[1])
			v.States, _ = strconv.Atoi(m[2])
		}
		if m := stackDepth.FindStringSubmatch(line); m != nil {
			v.Stack = 0
			for _, n := range plus.FindAllString(m[0], -1) {
				bytes, _ := strconv.Atoi(n)
				v.Stack += bytes
			}
		}
	}
	return v
}
