package sdk_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
)

func clang(t testing.TB, args ...string) {
	t.Helper()
	for _, pattern := range []string{"*.h", "testdata/*"} { // so that go test knows the files on which a result depends
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command("clang-19", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("clang-19 %v: %v\n%s", args, err, out)
	}
}

// TestFloatNative compares lambda_float.h with the processor's floating point.
func TestFloatNative(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("NaNs are checked against those of x86-64")
	}
	rounds := "2000000"
	if testing.Short() {
		rounds = "100000"
	}
	program := filepath.Join(t.TempDir(), "float_test")
	clang(t, "-std=gnu17", "-O2", "-Wall", "-fwrapv", "-ffp-contract=off", "-msse4.1", "-I.", "-o", program, "testdata/float_test.c", "-lm")
	if out, err := exec.Command(program, rounds).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func loadFloat(t testing.TB) map[string]*ebpf.Program {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(t.TempDir(), "float.o")
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	clang(t, "-target", "bpf", "-mcpu=v3", "-std=gnu17", "-O2", "-g", "-Wall", "-fwrapv", "-I.", "-idirafter", "/usr/include/"+triplet,
		"-c", "-o", object, "testdata/float.bpf.c")
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	programs := make(map[string]*ebpf.Program)
	for name, spec := range spec.Programs {
		if spec.Type != ebpf.XDP {
			continue
		}
		program, err := ebpf.NewProgram(spec)
		if err != nil {
			t.Fatalf("%s: %+v", name, err)
		}
		t.Cleanup(func() { program.Close() })
		programs[name] = program
	}
	return programs
}

func operands(a, b, c uint64) []byte {
	packet := make([]byte, 64)
	for i, v := range []uint64{a, b, c} {
		binary.NativeEndian.PutUint64(packet[8*i:], v)
	}
	return packet
}

// The functions' rounding modes and results of comparisons, as in lambda_float.h.
var roundings = []func(float64) float64{math.RoundToEven, math.Floor, math.Ceil, math.Trunc, math.Round}

func relation[F float32 | float64](x, y F) uint64 {
	switch {
	case x == y:
		return 1
	case x > y:
		return 2
	case x < y:
		return 4
	}
	return 8
}

func toInt64(x float64) uint64 {
	switch {
	case x != x:
		return 0
	case x >= 1<<63:
		return math.MaxInt64
	case x < -1<<63:
		return 1 << 63
	}
	return uint64(int64(x))
}

func toUint64(x float64) uint64 {
	switch {
	case !(x > 0):
		return 0
	case x >= 1<<64:
		return math.MaxUint64
	}
	return uint64(x)
}

// The same operations by Go, thus by the processor.
var floatOracles = map[string]func(a, b, c uint64) uint64{
	"f64_add":     on64(func(x, y, _ float64) float64 { return x + y }),
	"f64_sub":     on64(func(x, y, _ float64) float64 { return x - y }),
	"f64_mul":     on64(func(x, y, _ float64) float64 { return x * y }),
	"f64_div":     on64(func(x, y, _ float64) float64 { return x / y }),
	"f64_rem":     on64(func(x, y, _ float64) float64 { return math.Mod(x, y) }),
	"f64_sqrt":    on64(func(x, _, _ float64) float64 { return math.Sqrt(x) }),
	"f64_fma":     on64(math.FMA),
	"f64_mul_add": on64(func(x, y, z float64) float64 { return float64(x*y) + z }),
	"f64_add_mul": on64(func(x, y, z float64) float64 { return x + float64(y*z) }),
	"f32_add":     on32(func(x, y, _ float32) float32 { return x + y }),
	"f32_sub":     on32(func(x, y, _ float32) float32 { return x - y }),
	"f32_mul":     on32(func(x, y, _ float32) float32 { return x * y }),
	"f32_div":     on32(func(x, y, _ float32) float32 { return x / y }),
	"f32_sqrt":    on32(func(x, _, _ float32) float32 { return float32(math.Sqrt(float64(x))) }),
	"f32_mul_add": on32(func(x, y, z float32) float32 { return float32(x*y) + z }),
	"f32_add_mul": on32(func(x, y, z float32) float32 { return x + float32(y*z) }),
	"f64_round":   func(a, b, _ uint64) uint64 { return math.Float64bits(roundings[b](math.Float64frombits(a))) },
	"f32_round":   func(a, b, _ uint64) uint64 { return bits32(float32(roundings[b](float64(from32(a))))) },
	"f64_compare": func(a, b, _ uint64) uint64 { return relation(math.Float64frombits(a), math.Float64frombits(b)) },
	"f32_compare": func(a, b, _ uint64) uint64 { return relation(from32(a), from32(b)) },
	"f32_to_f64":  func(a, _, _ uint64) uint64 { return math.Float64bits(float64(from32(a))) },
	"f64_to_f32":  func(a, _, _ uint64) uint64 { return bits32(float32(math.Float64frombits(a))) },
	"f32_to_i64":  func(a, _, _ uint64) uint64 { return toInt64(float64(from32(a))) },
	"f32_to_u64":  func(a, _, _ uint64) uint64 { return toUint64(float64(from32(a))) },
	"f64_to_i64":  func(a, _, _ uint64) uint64 { return toInt64(math.Float64frombits(a)) },
	"f64_to_u64":  func(a, _, _ uint64) uint64 { return toUint64(math.Float64frombits(a)) },
	"i64_to_f32":  func(a, _, _ uint64) uint64 { return bits32(float32(int64(a))) },
	"u64_to_f32":  func(a, _, _ uint64) uint64 { return bits32(float32(a)) },
	"i64_to_f64":  func(a, _, _ uint64) uint64 { return math.Float64bits(float64(int64(a))) },
	"u64_to_f64":  func(a, _, _ uint64) uint64 { return math.Float64bits(float64(a)) },
	"nothing":     func(a, _, _ uint64) uint64 { return a },
}

func bits32(x float32) uint64 { return uint64(math.Float32bits(x)) }
func from32(a uint64) float32 { return math.Float32frombits(uint32(a)) }

func on64(f func(x, y, z float64) float64) func(a, b, c uint64) uint64 {
	return func(a, b, c uint64) uint64 {
		return math.Float64bits(f(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
	}
}

func on32(f func(x, y, z float32) float32) func(a, b, c uint64) uint64 {
	return func(a, b, c uint64) uint64 { return bits32(f(from32(a), from32(b), from32(c))) }
}

func isNaN(name string, result uint64) bool {
	if name[:3] == "f64" && name != "f64_to_f32" || name == "f32_to_f64" {
		return math.IsNaN(math.Float64frombits(result))
	}
	return math.IsNaN(float64(from32(result)))
}

// TestFloatBPF lets the verifier prove each function as a global one, and compares results with Go's arithmetic. Any NaN counts as
// equal to any other.
func TestFloatBPF(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for name, program := range loadFloat(t) {
		oracle, ok := floatOracles[name]
		if !ok {
			if name != "f32_fma" {
				t.Errorf("%s has no oracle", name)
			}
			continue
		}
		rng := rand.New(rand.NewPCG(1, 2))
		narrow := name[:3] == "f32"
		for range rounds {
			a, b, c := operand(rng, narrow), operand(rng, narrow), operand(rng, narrow)
			if name[4:] == "round" {
				b = rng.Uint64N(uint64(len(roundings)))
			}
			out := make([]byte, 64)
			if _, err := program.Run(&ebpf.RunOptions{Data: operands(a, b, c), DataOut: out}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, want := binary.NativeEndian.Uint64(out[24:]), oracle(a, b, c)
			if got != want && !(isNaN(name, got) && isNaN(name, want)) {
				t.Errorf("%s(%#x, %#x, %#x) = %#x, want %#x", name, a, b, c, got, want)
				break
			}
		}
	}
}

// operand returns numbers near 1, numbers of any size, and the special ones.
func operand(rng *rand.Rand, narrow bool) uint64 {
	bits := rng.Uint64()
	switch rng.IntN(8) {
	case 0:
		bits &= 1<<63 | 7
	case 1:
		bits |= 0x7ff << 52
	case 2:
		bits &= 0xfff << 52
	case 3:
		bits &^= 0x7ff << 52
	case 4, 5:
		bits = bits&^(0x7ff<<52) | (0x3e8+rng.Uint64N(64))<<52
	}
	if narrow {
		return bits32(float32(math.Float64frombits(bits)))
	}
	return bits
}

// BenchmarkFloat gives nanoseconds for each function in the kernel, less those of an empty program.
func BenchmarkFloat(b *testing.B) {
	programs := loadFloat(b)
	measure := func(name string) float64 {
		b.Helper()
		wide := math.Float64bits
		packet := operands(wide(math.Pi), wide(math.E), wide(-math.Phi))
		if name[:3] == "f32" {
			packet = operands(bits32(math.Pi), bits32(math.E), bits32(-math.Phi))
		}
		const repeat = 1_000_000
		_, took, err := programs[name].Benchmark(packet, repeat, nil)
		if err != nil {
			b.Fatal(err)
		}
		return float64(took.Nanoseconds())
	}
	for name := range programs {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(measure(name)-measure("nothing"), "ns/run")
			}
		})
	}
}
