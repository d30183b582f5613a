package compiler_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/rig"
)

// atomics counts the atomic operations of a lambda's program.
func atomics(t *testing.T, source string) (n int) {
	t.Helper()
	a, err := buildOrdinary(t, source)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		t.Fatal(err)
	}
	for _, ins := range spec.Programs[compiler.Program].Instructions {
		if ins.OpCode.Class() == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode {
			n++
		}
	}
	return n
}

const sharing = `#include <stdlib.h>
static uint64_t count, table[16];
static uint32_t word;
static uint8_t byte;
static float real;
static struct { uint32_t a : 5, b : 27; } bits;
static struct __attribute__((packed)) { uint8_t first; uint64_t rest; } packed;
LAMBDA_KEPT uint64_t kept[4];
LAMBDA_ATOMIC static uint64_t marked;
static uint64_t *pointer;
struct node { struct node *next; uint64_t hits; };
static void bump(uint64_t *c) { ++*c; }
static uint64_t *slot(uint32_t i) { return &table[i & 15]; }
static uint32_t bounded(uint32_t x) { return x < 100 ? x : 100; }
` + ordinaryEntry

// One expression on memory that CPUs share is one atomic operation, and nothing else is.
func TestAtomicChanges(t *testing.T) {
	for _, tc := range []struct {
		body string
		want int
	}{
		{"count++;", 1},
		{"n = count++ + ++count;", 2},
		{"count += n; count -= n; count &= n; count |= n; count ^= n;", 5},
		{"count = count + n; count = n ^ count;", 2},
		{"word += count; word -= n;", 2}, // in 64 bits, of which 32 are kept
		{"count += n > 3 ? n : 3;", 1},
		{"table[n & 15]++; table[n & 15] = table[n & 15] + 2;", 2},
		{"kept[n & 3] |= 1;", 1},
		{"struct node *p = malloc(sizeof(*p)); if (p) { p->hits = n; p->hits++; n = p->hits; }", 0},
		{"uint64_t *c = &table[n & 15]; *c += 1;", 1},
		{"uint64_t *c = n & 1 ? &count : table; *c += 1;", 1},
		{"bump(&kept[n & 3]); bump(slot(n));", 2},
		{"bump(&count); bump(&local[n & 3]);", 1},
		{"for (uint32_t i = 0; i < n; i++) count += i;", 1},
		{"uint64_t m = marked; m += 3; marked = m;", 1}, // in several statements
		{"for (uint32_t i = 0; i < n; i++) local[i & 3] += i;", 0},
		{"lambda_write(headers, &n, 4); n++;", 0},
		{"byte++; real += 1; bits.b += 1; packed.rest++;", 0},
		{"count = count * 3; count = n - count; count ^= count >> 7;", 0},
		{"word = bounded(word + 1);", 0},
		{"count = n; n = count;", 0},
		{"uint64_t m = count; local[0] = m; count = m + 1;", 0}, // in several statements: the intention is unknown
	} {
		source := sharing + "{\n\tuint64_t local[4] = { 0 };\n\tuint32_t n = match_data->payload_len;\n" + tc.body +
			"\nlocal[1] += n + (pointer != 0);\nreturn lambda_write(headers, local, sizeof(local));\n}"
		if got := atomics(t, source); got != tc.want {
			t.Errorf("%s: %d atomic operations, want %d", tc.body, got, tc.want)
		}
	}
}

// The expressions have the values that C gives them.
func TestAtomicValues(t *testing.T) {
	const source = `static uint64_t a = 5, b = 5, c = 0xff00ff, d = 3;
static uint32_t e = 0xfffffff0, f = 7;
static int32_t g = -3;
` + ordinaryEntry + `{
	uint64_t out[10], n = match_data->payload_len;
	out[0] = a++;
	out[1] = ++a;
	out[2] = b -= n;
	out[3] = c &= ~n;
	out[4] = d = n ^ d;
	out[5] = e += n * 0x100000001;
	out[6] = f = f | 0x1200000000 | n;
	out[7] = g -= n;
	out[8] = a + b + c + d + e + f;
	out[9] = g--;
	return lambda_write(headers, out, sizeof(out));
}`
	const n = uint64(0x21)
	g := int32(-3) - int32(n)
	base := uint64(0xfffffff0)
	e, f := uint32(base+n), uint32(7|n)
	minus := uint64(5)
	minus -= n
	want := []uint64{5, 7, minus, 0xff00ff &^ n, n ^ 3, uint64(e), uint64(f), uint64(g)}
	want = append(want, 7+want[2]+want[3]+want[4]+want[5]+want[6], want[7])
	for place, ask := range inBothPlaces(t, source) {
		answer, err := ask(0, make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := binary.NativeEndian.Uint64(answer.Payload[8*i:]); got != w {
				t.Errorf("%s: value %d is %#x, want %#x", place, i, got, w)
			}
		}
	}
}

// locked counts the atomic operations of a lambda's machine code.
func locked(t *testing.T, source string) int {
	t.Helper()
	a, err := compiler.Build(t.Context(), writeSource(t, "name: probe\n", source), compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(t.TempDir(), "native")
	if err := os.WriteFile(object, a.Native, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("llvm-objdump-19", "-d", "--no-show-raw-insn", object).Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`\t(lock|ldadd\w*|stadd\w*|ldaxr)\b`).FindAll(out, -1)) // x86-64, arm64
}

// On both targets, counting in one expression is an atomic operation, and nothing else is.
func TestCountersAreAtomic(t *testing.T) {
	for way, want := range map[string]bool{oneExpression: true, twoStatements: false} {
		source := countTo(way)
		if n := atomics(t, source); n > 0 != want {
			t.Errorf("%s: %d atomic operations on the NIC", way, n)
		}
		if n := locked(t, source); n > 0 != want {
			t.Errorf("%s: %d atomic operations in the process", way, n)
		}
	}
}

// A counter that requests on two CPUs increment at once.
func countTo(way string) string {
	return "static uint64_t count;\n" + ordinaryEntry + `{
	if (match_data->payload_len) {
		for (int i = 0; i < 1000; i++) {
			` + way + `
		}
	}
	return lambda_write(headers, &count, sizeof(count));
}`
}

const (
	oneExpression = "count++;"
	twoStatements = "uint64_t n = count; lambda_opaque(n); count = n + 1;"
)

func TestNothingIsLostOnTheNIC(t *testing.T) {
	cpus := usableCPUs(t)
	if len(cpus) < 2 {
		t.Skip("one CPU alone loses nothing")
	}
	if lost := lostOnNIC(t, cpus[:2]); lost != 0 {
		t.Errorf("%d changes are lost", lost)
	}
}

// lostOnNIC runs a lambda on two CPUs at once, until a count is lost or that has become unlikely.
func lostOnNIC(t *testing.T, cpus []int) uint64 {
	const requests, times = 500, 10
	lambda := loadOrdinary(t, countTo(oneExpression))
	packet := make([]byte, payloadAt+api.RPCMaxPayload)
	lambda.run(t, nil) // the record of a request
	lambda.run(t, []byte{1})
	counted := uint64(1000)
	for range times {
		var both errgroup.Group
		for _, cpu := range cpus {
			both.Go(func() (err error) {
				onCPU(t, cpu, func() {
					// Run starts again when a signal interrupts it, such as the one by which Go's runtime preempts a thread.
					var preemption, before unix.Sigset_t
					preemption.Val[0] = 1 << (unix.SIGURG - 1)
					if err = unix.PthreadSigmask(unix.SIG_BLOCK, &preemption, &before); err != nil {
						return
					}
					_, err = lambda.program.Run(&ebpf.RunOptions{Data: packet, Repeat: requests})
					err = errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil))
				})
				return err
			})
		}
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		counted += uint64(len(cpus)) * requests * 1000
		_, out := lambda.run(t, nil)
		got := binary.NativeEndian.Uint64(out)
		lambda.run(t, []byte{1}) // the record again
		if counted != got {
			return counted - got
		}
		counted += 1000
	}
	return 0
}

func TestNothingIsLostInTheProcess(t *testing.T) {
	if len(usableCPUs(t)) < 2 {
		t.Skip("one CPU alone loses nothing")
	}
	r := rig.ForTestWith(t, "lost", rig.Config{Threads: 2})
	if lost := lostInProcess(t, r); lost != 0 {
		t.Errorf("%d changes are lost", lost)
	}
}

func lostInProcess(t *testing.T, r *rig.Rig) uint64 {
	const clients, requests, times = 16, 20, 10
	putSource(t, r, countTo(oneExpression))
	defer r.Remove(t.Context())
	_, endpoint := r.Endpoints()
	for round := range times {
		var all errgroup.Group
		for range clients { // the kernel spreads them over the threads
			all.Go(func() error { return askOften(endpoint, requests) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		answer, err := r.AskProcess(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(round+1) * clients * requests * 1000
		if got := binary.NativeEndian.Uint64(answer.Payload); got != want {
			return want - got
		}
	}
	return 0
}

// askOften sends requests of one byte from a port of its own, one after the other.
func askOften(endpoint string, requests int) error {
	conn, err := net.Dial("udp", endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	reply := make([]byte, api.RPCHeaderLen+api.RPCMaxPayload)
	for i := range requests {
		q := packets.RPC{Workload: "it", Request: uint64(i + 1), Payload: "x", Room: api.RPCMaxPayload}
		if _, err := conn.Write(q.Build(map[string]uint32{"it": rig.Workload})); err != nil {
			return err
		}
		n, err := conn.Read(reply)
		if err != nil {
			return err
		}
		if h, _, err := api.ParsePacket(reply[:n]); err != nil || h.Type != api.TypeResponse {
			return fmt.Errorf("answer %+v: %w", h, err)
		}
	}
	return nil
}

// putSource compiles a lambda for both targets and puts it into a rig.
func putSource(t *testing.T, r *rig.Rig, source string) {
	t.Helper()
	a, err := compiler.Build(t.Context(), writeSource(t, "name: probe\n", source), compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func writeSource(t *testing.T, spec, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{api.SpecFile: spec, "probe.c": "#include <lambda.h>\n" + source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func inBothPlaces(t *testing.T, source string) map[string]func(uint32, []byte) (rig.Answer, error) {
	t.Helper()
	r := rig.ForTest(t, "both")
	putSource(t, r, source)
	return map[string]func(uint32, []byte) (rig.Answer, error){"NIC": r.AskNIC, "process": r.AskProcess}
}

// A LAMBDA_ATOMIC update that cannot be atomic is refused at its line, on each target.
func TestAtomicMark(t *testing.T) {
	const declarations = "LAMBDA_ATOMIC static uint64_t count;\n" + // line 2
		"static LAMBDA_ATOMIC struct { uint32_t n; uint16_t small; float real; } s;\n" +
		"uint64_t *keep;\n" +
		"static uint64_t *same(uint64_t *p) { keep = p; return p; }\n" +
		ordinaryEntry + "{\n\tuint64_t n = match_data->method;\n" // lines 6 to 8
	for _, tc := range []struct {
		body, want string
		line       int
	}{
		{"s.small++;", "32 or 64 bits", 9},
		{"s.real += 1;", "not an integer", 9},
		{"count *= 3;", "this change of count", 9},
		{"count = (count + 1) % 10;", "this change of count", 9},
		{"n = count;\nif (n & 1) n *= 5;\ncount = n;", "this change of count", 11},
		{"count += count;", "this change of count", 9},
		{"keep = &count;", "the address of count", 9},
		{"n += *same(&count);", "the address of count", 5},
		{"LAMBDA_ATOMIC uint64_t own = n; n += own;", "local object", 9},
		{"count = 0; if (n > count) count = n; count++; n = count + s.n++;", "", 0},
	} {
		source := declarations + tc.body + "\nreturn lambda_write(headers, &n, *keep ? 4 : 8);\n}"
		for _, target := range []api.Target{api.TargetNIC, api.TargetProcess} {
			_, err := compiler.Build(t.Context(), writeSource(t, "name: probe\ntargets: ["+string(target)+"]\n", source), compiler.Options{})
			var failed *compiler.Error
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s, %s: %v", tc.body, target, err)
			case tc.want != "" && !errors.As(err, &failed):
				t.Errorf("%s, %s: got %v", tc.body, target, err)
			case tc.want != "":
				if !slices.ContainsFunc(failed.Diagnostics, func(d compiler.Diagnostic) bool {
					return d.File == "probe.c" && d.Line == tc.line && strings.Contains(d.Message, tc.want)
				}) {
					t.Errorf("%s, %s: no %q in line %d: %v", tc.body, target, tc.want, tc.line, failed)
				}
			}
		}
	}
}
