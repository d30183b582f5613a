package ordinary_test

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rig"
)

// wideSize is the size of an __int128.
const wideSize = 16

// little returns a number, or its two's complement, as an __int128 lies in memory.
func little(n *big.Int) []byte {
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*wideSize))
	}
	b := n.FillBytes(make([]byte, wideSize))
	slices.Reverse(b)
	return b
}

// asSigned reads the bits of an unsigned number as a signed one.
func asSigned(n *big.Int) *big.Int {
	if n.Bit(8*wideSize-1) == 0 {
		return n
	}
	return new(big.Int).Sub(n, new(big.Int).Lsh(big.NewInt(1), 8*wideSize))
}

// wideNumber returns a number of any length, or one next to a power of two.
func wideNumber(rng *rand.Rand) *big.Int {
	n := new(big.Int).SetUint64(rng.Uint64())
	n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(rng.Uint64()))
	n.Rsh(n, uint(rng.IntN(8*wideSize)))
	if rng.IntN(3) > 0 {
		return n
	}
	n.Lsh(big.NewInt(1), uint(rng.IntN(8*wideSize))).Add(n, big.NewInt(int64(rng.IntN(5)-2)))
	if n.Sign() < 0 { // the complement
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), 8*wideSize))
	}
	return n
}

// Divisions of 128 bits give what math/big gives, whose Quo and Rem are C's.
func TestWideDivision(t *testing.T) {
	r := put(t, "wide")
	rng := rand.New(rand.NewPCG(5, 6))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for range rounds {
		a, b := wideNumber(rng), wideNumber(rng)
		if b.Sign() == 0 {
			continue
		}
		q, m := new(big.Int).QuoRem(a, b, new(big.Int))
		sq, sm := new(big.Int).QuoRem(asSigned(a), asSigned(b), new(big.Int))
		want := slices.Concat(little(q), little(m), little(sq), little(sm))
		for place, ask := range map[string]func(uint32, []byte) (rig.Answer, error){"NIC": r.AskNIC, "process": r.AskProcess} {
			got, err := ask(0, slices.Concat(little(a), little(b)))
			if err != nil || got.Type != api.TypeResponse || !slices.Equal(got.Payload, want) {
				t.Fatalf("%s: %v and %v: %v, %v, want %x", place, a, b, got, err, want)
			}
		}
	}
}

// On the NIC, zero is the quotient of a division by it, and the dividend the remainder; in a process it is a fault.
func TestWideDivisionByZero(t *testing.T) {
	r := put(t, "wide")
	a, zero := little(big.NewInt(77)), make([]byte, wideSize)
	got, err := r.AskNIC(0, slices.Concat(a, zero))
	if err != nil || got.Type != api.TypeResponse || !slices.Equal(got.Payload, slices.Concat(zero, a, zero, a)) {
		t.Errorf("NIC: %v, %v", got, err)
	}
	got, err = r.AskProcess(0, slices.Concat(a, zero))
	if err != nil || got.Type != api.TypeError || api.Code(got.Code) != api.CodeLambdaFault {
		t.Errorf("process: %v, %v", got, err)
	}
}

// Overflow checks of products, and 128-bit shifts, rotations, arguments and results, work as in a process.
func TestProducts(t *testing.T) {
	r := put(t, "products")
	rng := rand.New(rand.NewPCG(9, 10))
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		agree(t, r, slices.Concat(little(wideNumber(rng)), little(wideNumber(rng))))
		if t.Failed() {
			return
		}
	}
	for by := range int64(130) { // each distance of a shift
		agree(t, r, slices.Concat(little(wideNumber(rng)), little(big.NewInt(by))))
	}
}
