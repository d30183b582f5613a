// Package ordinary_test tests lambdas in C beyond BPF: floating point, recursion and function pointers. Each answers the same on the NIC and
// as a process.
package ordinary_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/rig"
)

// put compiles a lambda of testdata, and puts it on a NIC and beside it.
func put(t *testing.T, name string) *rig.Rig {
	t.Helper()
	r := rig.ForTest(t, "ordinary")
	a, err := compiler.Build(t.Context(), filepath.Join("testdata", name), compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return r
}

// agree asks both, which have to answer the same.
func agree(t *testing.T, r *rig.Rig, request []byte) {
	t.Helper()
	n, err := r.AskNIC(0, request)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.AskProcess(0, request)
	if err != nil {
		t.Fatal(err)
	}
	if n.Type != api.TypeResponse || !n.Equal(p) {
		t.Errorf("request %x:\nNIC     %v\nprocess %v\n%s", request, n, p, firstDifference(n.Payload, p.Payload))
	}
}

func firstDifference(a, b []byte) string {
	for i := 0; i+8 <= min(len(a), len(b)); i += 8 {
		x, y := binary.NativeEndian.Uint64(a[i:]), binary.NativeEndian.Uint64(b[i:])
		if x != y {
			return fmt.Sprintf("word %d: %#x, %#x", i/8, x, y)
		}
	}
	return "the same words"
}

// fault asks the NIC, which has to answer with the error "lambda fault".
func fault(t *testing.T, r *rig.Rig, request []byte) {
	t.Helper()
	if n, err := r.AskNIC(0, request); err != nil || n.Type != api.TypeError || api.Code(n.Code) != api.CodeLambdaFault {
		t.Errorf("request %x: NIC %v, %v, want the error lambda fault", request, n, err)
	}
}

func words(w ...uint32) (request []byte) {
	for _, w := range w {
		request = binary.NativeEndian.AppendUint32(request, w)
	}
	return request
}

// number returns a number near 1, one of any size, or a special one.
func number(rng *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2.5, 255.5, 65536, 1 << 31, -1 << 31, 1 << 32, 1 << 63, -1 << 63, 1 << 64,
		math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, 0x1p-140}
	switch rng.IntN(4) {
	case 0:
		return special[rng.IntN(len(special))]
	case 1:
		return math.Float64frombits(rng.Uint64())
	case 2:
		return float64(rng.IntN(2000) - 1000)
	}
	return rng.NormFloat64() * math.Ldexp(1, rng.IntN(80)-40)
}

func TestNumbers(t *testing.T) {
	r := put(t, "numbers")
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 400
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		var request []byte
		for range 3 {
			request = binary.NativeEndian.AppendUint64(request, math.Float64bits(number(rng)))
		}
		for range 3 {
			request = binary.NativeEndian.AppendUint32(request, math.Float32bits(float32(number(rng))))
		}
		agree(t, r, binary.NativeEndian.AppendUint32(request, rng.Uint32()))
	}
}

func pair(x, y float64) []byte {
	return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, math.Float64bits(x)), math.Float64bits(y))
}

// Numbers of all kinds, powers that are neither 0 nor infinite, and angles of every size.
func TestElementary(t *testing.T) {
	r := put(t, "elementary")
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		agree(t, r, pair(number(rng), number(rng)))
	}
	for range 100 {
		x := math.Exp(rng.NormFloat64() * 40)
		agree(t, r, pair(x, (rng.Float64()*2160-1100)/math.Log2(x)))
	}
	for exponent := -30; exponent < 1024; exponent += 13 {
		agree(t, r, pair(math.Ldexp(rng.Float64()-2, exponent), 2.5))
	}
}

// Each of many calls costs the verifier little.
func TestPowers(t *testing.T) {
	r := put(t, "powers")
	for i := range 10 {
		agree(t, r, pair(float64(i)*1.5-2, float64(i)/7))
	}
}

// A loop that only the request ends, with accesses to the packet in it.
func TestEndless(t *testing.T) {
	r := put(t, "endless")
	for _, request := range []string{".", "a.", "one. two.", strings.Repeat("long ", 200) + "."} {
		agree(t, r, []byte(request))
	}
	request := []byte("no full stop")
	if n, err := r.AskNIC(0, request); err != nil || n.Type != api.TypeResponse || n.Code == 0 {
		t.Errorf("request %q: %v, %v, want it to be refused by the lambda", request, n, err)
	}
}

func TestRecursion(t *testing.T) {
	r := put(t, "recursion")
	for which := range uint32(10) {
		for n := range uint32(24) {
			agree(t, r, words(which, n*n/3))
		}
	}
	agree(t, r, words(1, 100_000)) // mutual tail recursion: as deep as its fuel allows
	agree(t, r, words(10, 20))
	agree(t, r, words(10, 1_500))     // limits.memory pays for it
	fault(t, r, words(10, 1_000_000)) // too deep for its frames
	agree(t, r, words(10, 20))
}

// Live values that exceed the kernel's stack go to memory everywhere: in loops, through branches, in vectors.
func TestCrowded(t *testing.T) {
	r := put(t, "crowded")
	for which := range uint32(4) {
		for rounds := range uint32(12) {
			agree(t, r, words(which, rounds, 0x9e3779b9*rounds+which))
		}
	}
}

func TestPointers(t *testing.T) {
	r := put(t, "pointers")
	for n := range uint32(40) {
		agree(t, r, words(n, 0))
	}
	for _, forged := range []uint32{6, 7, 8, 100, 1 << 31, math.MaxUint32} { // a function of another type, or no function
		fault(t, r, words(1, forged))
	}
	agree(t, r, words(1, 0))
}

// Whichever functions return, choose and store addresses, every variable is found by them.
func TestAddresses(t *testing.T) {
	r := put(t, "addresses")
	for n := range 256 {
		agree(t, r, []byte{byte(n)})
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		request := make([]byte, 1+rng.IntN(64))
		for i := range request {
			request[i] = byte(rng.Uint32())
		}
		agree(t, r, request)
		if t.Failed() {
			return
		}
	}
}

func TestFunctions(t *testing.T) {
	r := put(t, "functions")
	rng := rand.New(rand.NewPCG(5, 6))
	texts := []string{"", "0", "-1", "  +42x", "0x1fG", "077", "99999999999999999999", "-99999999999999999999", "9223372036854775807", "ffffffffffffffff", "zz", "-0x", "-12345678901234567890"}
	for range 300 {
		var request []byte
		for range 2 {
			request = binary.NativeEndian.AppendUint64(request, math.Float64bits(number(rng)))
		}
		for range 2 {
			request = binary.NativeEndian.AppendUint32(request, math.Float32bits(float32(number(rng))))
		}
		request = append(request, words(rng.Uint32(), rng.Uint32())...)
		request = binary.NativeEndian.AppendUint64(request, rng.Uint64())
		request = binary.NativeEndian.AppendUint64(request, rng.Uint64()>>rng.IntN(64))
		var text [32]byte
		copy(text[:], texts[rng.IntN(len(texts))])
		agree(t, r, append(request, text[:]...))
		if t.Failed() {
			return
		}
	}
}
