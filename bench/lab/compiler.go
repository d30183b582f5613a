package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/bench/loops"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
	"github.com/lambdanic/lambdanic/test/randomc"
	"github.com/lambdanic/lambdanic/test/rig"
)

const (
	sourceCorpus  = "plain C, built, loaded and asked by BPF_PROG_TEST_RUN and as a process; vectors from elsewhere"
	sourceRandom  = "random programs, one per seed from --seed on, asked six requests by BPF_PROG_TEST_RUN and as a process"
	sourceLoop    = "BPF_PROG_TEST_RUN of the NIC program, less a run that does nothing; native -O2 without vectors, same core"
	sourceBuild   = "source to artifact, both targets, of a source that was never compiled"
	sourceFloat   = "BPF_PROG_TEST_RUN of the NIC program, less a run that does nothing; native: the processor's own floating point, same core"
	sourceInteger = "one step of a chain of multiplications and additions of integers, between the builds: how fast the machine is now"
)

// randomPrograms is the number of random programs per round.
const randomPrograms = 200

// compilerBenchmarks can be measured alone, as only some of them need a quiet machine.
var compilerBenchmarks = []struct {
	name string
	run  func(context.Context, *rig.Rig, measure.Options) ([]report.Result, error)
}{
	{"build", buildTimes},
	{"fused", figure9},
	{"costs", operationCosts},
	{"grey", greyLoop},
	{"float", multiplyAdd},
	{"aead", sealing},
	{"corpus", corpusShare},
	{"random", randomShare},
}

func benchmarkNames() (names []string) {
	for _, p := range compilerBenchmarks {
		names = append(names, p.name)
	}
	return names
}

// runCompiler measures how much of ordinary C loads on the NIC, how fast it runs, and how long compiling takes.
func runCompiler(ctx context.Context, _ *stand.Stand, o measure.Options) (rs []report.Result, err error) {
	r, err := rig.Open(ctx, rig.Config{LambdaHost: o.LambdaHost, Instance: "rig" + strconv.Itoa(os.Getpid())})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, p := range compilerBenchmarks {
		if o.Benchmark != "" && o.Benchmark != p.name {
			continue
		}
		results, err := p.run(ctx, r, o)
		if err != nil {
			return nil, fmt.Errorf("benchmark %s: %w", p.name, err)
		}
		rs = append(rs, results...)
	}
	return rs, nil
}

// buildTimes compiles a changed source each time, as an author does.
func buildTimes(ctx context.Context, _ *rig.Rig, o measure.Options) ([]report.Result, error) {
	var times, machine report.Samples
	err := measure.WithSource(o, func(dir string) error {
		for round := range 3*o.Rounds + 1 {
			if err := measure.Edit(dir, round); err != nil {
				return err
			}
			start := time.Now()
			if _, err := compiler.Build(ctx, dir, compiler.Options{}); err != nil {
				return fmt.Errorf("build web_server: %w", err)
			}
			if round > 0 { // the first warms up
				times, machine = append(times, measure.Milliseconds(start)), append(machine, integerLoop())
			}
		}
		return nil
	})
	return []report.Result{
		report.Compare("web_server.source_to_artifact", "ms", report.Lower, sourceBuild, times, nil),
		report.Compare("machine.integer_loop", "ns", report.Lower, sourceInteger, machine, nil),
	}, err
}

// chainSteps is the length of the chains that this machine computes natively.
const chainSteps = 1_000_000

// integerLoop is how many ns the machine takes for one step of a fixed chain: a multiplication and an addition, which wait for the
// previous ones. It depends only on the processor's clock and on other work on the processor.
func integerLoop() float64 {
	start, x := time.Now(), uint64(1)
	for range chainSteps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	runtime.KeepAlive(x) // or the compiler leaves the chain out
	return float64(time.Since(start).Nanoseconds()) / chainSteps
}

// withoutFigure reports that a lambda did not load, in place of its figures.
func withoutFigure(o measure.Options, what string, err error) ([]report.Result, error) {
	if errors.Is(err, rig.ErrLoad) || errors.As(err, new(*compiler.Error)) {
		o.Log("compiler: %s: %s", what, firstLine(err))
		return nil, nil
	}
	return nil, err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// The methods of bench/loops/grey_loop.
const (
	greyNothing = iota
	greyFill
	greyConvert
	greySum
)

// loopRuns is how many runs a sample is the median of.
const loopRuns = 21

func greyLoop(ctx context.Context, r *rig.Rig, o measure.Options) (rs []report.Result, err error) {
	if err := putLoop(ctx, r, "grey_loop"); err != nil {
		return withoutFigure(o, "grey_loop", err)
	}
	defer func() { err = errors.Join(err, r.Remove(ctx)) }()
	if err := checkGrey(r); err != nil {
		return nil, err
	}
	native, err := loops.BuildNative(ctx, "grey_loop", greyFill, greyConvert, loopRuns)
	if err != nil {
		return nil, err
	}
	defer native.Close()
	var ours, theirs report.Samples
	for round := range o.Rounds {
		o.Log("compiler: greyscale loop, round %d of %d", round+1, o.Rounds)
		err := measure.OnCPU(measure.ServerCPU(), func() error {
			d, err := loopTime(r, nil, greyNothing, greyConvert)
			if err != nil {
				return err
			}
			times, err := native.Run(ctx)
			ours, theirs = append(ours, d/1e3), append(theirs, median(times)/1e3)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return []report.Result{report.Compare("greyscale_256x256", "µs", report.Lower, sourceLoop, ours, map[string]report.Samples{"native": theirs})}, nil
}

func putLoop(ctx context.Context, r *rig.Rig, name string) error {
	a, err := loops.Build(ctx, name)
	if err != nil {
		return err
	}
	return r.Put(ctx, a)
}

// checkGrey has the NIC fill its image and convert it, and compares the result with the process's.
func checkGrey(r *rig.Rig) error {
	var sums []rig.Answer
	for _, ask := range []func(uint32, []byte) (rig.Answer, error){r.AskNIC, r.AskProcess} {
		for _, method := range []uint32{greyFill, greyConvert, greySum} {
			a, err := ask(method, nil)
			if err != nil {
				return err
			}
			if method == greySum {
				sums = append(sums, a)
			}
		}
	}
	if !sums[0].Equal(sums[1]) || len(sums[0].Payload) != 4 {
		return fmt.Errorf("%w: greyscale loop: NIC %v, process %v", measure.ErrWrong, sums[0], sums[1])
	}
	return nil
}

// loopTime is how many ns longer a method takes than another.
func loopTime(r *rig.Rig, body []byte, idle, method uint32) (float64, error) {
	var times [2][]time.Duration
	for range loopRuns {
		for i, m := range []uint32{idle, method} {
			d, err := r.TimeNIC(m, body)
			if err != nil {
				return 0, err
			}
			times[i] = append(times[i], d)
		}
	}
	return median(times[1]) - median(times[0]), nil
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}

func multiplyAdd(ctx context.Context, r *rig.Rig, o measure.Options) (rs []report.Result, err error) {
	if err := putLoop(ctx, r, "multiply_add"); err != nil {
		return withoutFigure(o, "multiply_add", err)
	}
	defer func() { err = errors.Join(err, r.Remove(ctx)) }()
	const n, double = 1000, 1 << 31
	x, a, b := 1.5, 0.99, 0.7
	body := doubles(x, a, b)
	single := float32(x)
	for range n { // this machine's own arithmetic; the conversions keep Go from fusing
		x = float64(x*a) + b
		single = float32(single*float32(a)) + float32(b)
	}
	for _, p := range []struct {
		name   string
		bits   uint32
		want   float64
		native func() float64
	}{{"float", 0, float64(single), nativeChain[float32]}, {"double", double, x, nativeChain[float64]}} {
		if got, err := r.AskNIC(p.bits|n, body); err != nil || !bytes.Equal(got.Payload, doubles(p.want)) {
			return nil, errors.Join(fmt.Errorf("%w: multiply-adds in %s: got %v, want %v", measure.ErrWrong, p.name, got, p.want), err)
		}
		var times, native report.Samples
		for range o.Rounds {
			err := measure.OnCPU(measure.ServerCPU(), func() error {
				d, err := loopTime(r, body, p.bits, p.bits|n)
				times, native = append(times, d/n), append(native, p.native())
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		rs = append(rs, report.Compare("multiply_add_"+p.name, "ns", report.Lower, sourceFloat, times, map[string]report.Samples{"native": native}))
	}
	return rs, nil
}

// nativeChain is how many ns the processor takes for one multiply-add of the same chain.
func nativeChain[F float32 | float64]() float64 {
	x, a, b := F(1.5), F(0.99), F(0.7)
	start := time.Now()
	for range chainSteps {
		x = F(x*a) + b //nolint:unconvert // it keeps Go from fusing
	}
	runtime.KeepAlive(x) // or the compiler leaves the chain out
	return float64(time.Since(start).Nanoseconds()) / chainSteps
}

func doubles(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// corpusShare measures the percentage of the corpus that loads and gives the vectors' replies in both places.
func corpusShare(ctx context.Context, r *rig.Rig, o measure.Options) ([]report.Result, error) {
	programs, err := corpus.Programs()
	if err != nil {
		return nil, err
	}
	agree := 0
	for _, p := range programs {
		a, err := p.Build(ctx, compiler.Options{})
		if err == nil {
			err = r.Check(ctx, a, p.Vectors)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			o.Log("compiler: %s: %s", p.Name, firstLine(err))
			continue
		}
		agree++
	}
	o.Log("compiler: %d of %d programs of the corpus agree", agree, len(programs))
	return []report.Result{report.Compare("corpus_agrees", "%", report.Higher, sourceCorpus, share(agree, len(programs)), nil)}, nil
}

func share(part, of int) report.Samples { return report.Samples{100 * float64(part) / float64(of)} }

// randomShare measures the percentage of random programs that load, and how many of those disagree.
func randomShare(ctx context.Context, r *rig.Rig, o measure.Options) ([]report.Result, error) {
	total := randomPrograms * o.Rounds
	loaded, disagree, done := 0, 0, 0
	var failed []string
	artifacts, wait := buildRandom(ctx, o.Seed, total)
	for b := range artifacts {
		if ctx.Err() != nil {
			break
		}
		err := b.err
		if err == nil {
			err = r.Compare(ctx, b.artifact, randomc.Requests(b.seed))
		}
		switch {
		case err == nil:
			loaded++
		case errors.Is(err, rig.ErrDiffers):
			loaded++
			disagree++
		}
		if err != nil {
			failed = append(failed, fmt.Sprintf("seed %d: %s", b.seed, firstLine(err)))
			o.Log("compiler: random program of %s", failed[len(failed)-1])
		}
		if done++; done%randomPrograms == 0 {
			o.Log("compiler: %d of %d random programs, %d load, %d of these disagree", done, total, loaded, disagree)
		}
	}
	if err := errors.Join(ctx.Err(), wait()); err != nil {
		return nil, err
	}
	load := report.Compare("random_load", "%", report.Higher, sourceRandom, share(loaded, total), nil)
	load.Notes = failed
	return []report.Result{
		load,
		report.Compare("random_disagree", "%", report.Lower, sourceRandom, share(disagree, max(1, loaded)), nil),
	}, nil
}

type randomBuild struct {
	seed     uint64
	artifact *compiler.Artifact
	err      error
}

// buildRandom compiles the programs of the seeds from first on, one per CPU at a time.
func buildRandom(ctx context.Context, first uint64, total int) (<-chan randomBuild, func() error) {
	out := make(chan randomBuild)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, measure.ServerCPU()+1))
	go func() {
		for seed := first; seed < first+uint64(total); seed++ {
			if ctx.Err() != nil {
				break
			}
			group.Go(func() error {
				a, err := randomc.Build(ctx, seed)
				select {
				case out <- randomBuild{seed, a, err}:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		_ = group.Wait()
		close(out)
	}()
	return out, group.Wait
}
