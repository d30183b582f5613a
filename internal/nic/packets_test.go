package nic

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// The workloads of test/packets. Their high halves differ from zero, so that these are matched too.
var workloads = map[string]uint32{"packet": 0x10001, "stream": 0x20002, "assemble": 0x30003, "web": 0x40004, "nobody": 0x50001, "free": 0x60006, "other": 0x80008, "kv": kvWorkload}

const (
	packetSpec   = "message: {mode: packet}"
	streamSpec   = "message: {mode: stream, max: 64KiB, in_flight: 8, timeout: 1m}" // none expires, however busy the machine
	assembleSpec = "message: {mode: assemble, max: 64KiB, in_flight: 8, timeout: 1m}"
)

// everyMode brings a NIC up with a lambda of each mode.
func everyMode(t testing.TB) *NIC {
	t.Helper()
	n := newTestNIC(t)
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec), probe(t, workloads["stream"], 1, streamSpec),
		probe(t, workloads["assemble"], 1, assembleSpec), bundled(t, "web_server", workloads["web"], 1))
	return n
}

func loadCases(t testing.TB, names ...string) (cases []packets.Case) {
	t.Helper()
	for _, name := range names {
		c, err := packets.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c...)
	}
	return cases
}

func build(t testing.TB, f *packets.Frame) []byte {
	t.Helper()
	b, err := f.Build(workloads)
	if err != nil {
		t.Error(err)
	}
	return b
}

// Packet in, packet and verdict out: the cases of test/packets.
func TestPackets(t *testing.T) {
	n := everyMode(t)
	for _, c := range loadCases(t, "requests.yml", "foreign.yml") {
		t.Run(c.Name, func(t *testing.T) {
			frame := build(t, &c.Frame)
			verdict, out := inject(t, n, frame)
			if verdict != c.Want.Verdict {
				t.Fatalf("got verdict %s, want %s", verdict, c.Want.Verdict)
			}
			if verdict == "pass" && !bytes.Equal(out, frame) {
				t.Error("the host gets another packet than came in")
			}
			if verdict != "reply" {
				return
			}
			h, payload, err := packets.Answer(frame, out)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Want.Check(&h, payload); err != nil {
				t.Error(err)
			}
		})
	}
}

// A frame that ends too early, at any place, goes to the host unchanged.
func TestTruncatedPackets(t *testing.T) {
	n := everyMode(t)
	for _, c := range loadCases(t, "requests.yml") {
		if c.Frame.Padding > 0 {
			continue
		}
		frame := build(t, &c.Frame)
		for size := 14; size < len(frame); size++ { // BPF_PROG_TEST_RUN takes no less
			if verdict, out := inject(t, n, frame[:size]); verdict != "pass" || !bytes.Equal(out, frame[:size]) {
				t.Fatalf("%s: cut to %d of %d bytes: verdict %s, %d bytes", c.Name, size, len(frame), verdict, len(out))
			}
		}
	}
}

// By default a packet for an unknown workload goes to the host, as in the λ-NIC paper's Listing 3.
func TestUnknownWorkloadPasses(t *testing.T) {
	c := testConfig(t)
	c.UnknownError = false
	n := open(t, c)
	frame := build(t, &packets.Frame{RPC: packets.RPC{Workload: "packet"}})
	if verdict, out := inject(t, n, frame); verdict != "pass" || !bytes.Equal(out, frame) {
		t.Errorf("verdict %s", verdict)
	}
	// The low half of another workload's ID is not its ID.
	deploy(t, n, probe(t, workloads["packet"]^0x70000, 1, packetSpec))
	if verdict, _ := inject(t, n, frame); verdict != "pass" {
		t.Errorf("verdict %s where another workload has the same low half", verdict)
	}
}

// With Verify a datagram whose checksum is wrong is dropped and counted; one that is right, left out over IPv4, or left to the
// device by a local socket is answered.
func TestChecksumVerification(t *testing.T) {
	c := testConfig(t)
	c.Verify = true
	n := open(t, c)
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	drops := uint64(0)
	for _, ipv6 := range []bool{false, true} {
		for length := range 70 {
			f := packets.Frame{IPv6: ipv6, RPC: packets.RPC{Workload: "packet", Payload: string(randomBytes(length))}}
			for sum, want := range map[string]string{"": "reply", "wrong": "drop", "none": map[bool]string{false: "reply", true: "drop"}[ipv6]} {
				f.Checksum = sum
				if want == "drop" {
					drops++
				}
				if verdict, _ := inject(t, n, build(t, &f)); verdict != want {
					t.Fatalf("IPv6 %t, %d bytes, checksum %q: verdict %s, want %s", ipv6, length, sum, verdict, want)
				}
			}
			frame := unfinished(build(t, &packets.Frame{IPv6: ipv6, RPC: f.RPC}), ipv6)
			if verdict, _ := inject(t, n, frame); verdict != "reply" {
				t.Fatalf("IPv6 %t, %d bytes, unfinished checksum: verdict %s", ipv6, length, verdict)
			}
		}
	}
	for options := range 3 {
		frame := build(t, &packets.Frame{Options: 4 * options, RPC: packets.RPC{Workload: "packet"}})
		frame[14+8]-- // TTL, as a router that forgot the checksum
		drops++
		if verdict, _ := inject(t, n, frame); verdict != "drop" {
			t.Errorf("wrong checksum of an IPv4 header with %d options: verdict %s", options, verdict)
		}
	}
	if got := counted(t, n, "checksum"); got != drops {
		t.Errorf("%d wrong checksums counted, want %d", got, drops)
	}
}

// unfinished puts into the UDP checksum what Linux leaves there for the device to finish: the sum of the pseudo-header, not inverted
// (Documentation/networking/checksum-offloads.rst).
func unfinished(frame []byte, ipv6 bool) []byte {
	addrs, udp := frame[14+12:14+20], 14+20
	if ipv6 {
		addrs, udp = frame[14+8:14+40], 14+40
	}
	sum := uint32(17) + uint32(binary.BigEndian.Uint16(frame[udp+4:]))
	for i := 0; i < len(addrs); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(addrs[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(frame[udp+6:], uint16(sum&0xffff+sum>>16))
	return frame
}

// Whatever comes, the host gets its packets unchanged, and an answer is well formed, goes back to where its request came from, and is
// no longer than that (packets.Answer). The lambdas work meanwhile.
func TestAnyPacket(t *testing.T) {
	n := everyMode(t)
	cases := loadCases(t, "requests.yml", "foreign.yml")
	r := seed.Rand(t)
	rounds := 60000
	if testing.Short() {
		rounds = 5000
	}
	seen := map[string]bool{}
	for _, c := range cases { // the mutated frames include every verdict
		verdict, _ := inject(t, n, build(t, &c.Frame))
		if verdict != c.Want.Verdict {
			t.Fatalf("%s: verdict %s, want %s", c.Name, verdict, c.Want.Verdict)
		}
		seen[verdict] = true
	}
	if len(seen) != len(verdicts) {
		t.Fatalf("there are cases of the verdicts %v, want one of each of %v", seen, verdicts)
	}
	for i := range rounds {
		frame := build(t, &cases[i%len(cases)].Frame)
		frame = packets.Mutate(r, frame)
		verdict, out := inject(t, n, frame)
		switch verdict {
		case "pass":
			if !bytes.Equal(out, frame) {
				t.Fatalf("round %d: the host gets another packet than came in: %x", i, frame)
			}
		case "reply":
			h, _, err := packets.Answer(frame, out)
			if err != nil || h.Type == api.TypeRequest || h.Type == api.TypePull {
				t.Fatalf("round %d: type %d, %v\nfrom %x\nto %x", i, h.Type, err, frame, out)
			}
		case "drop":
		default:
			t.Fatalf("round %d: verdict %q on %x", i, verdict, frame)
		}
	}
	for _, c := range loadCases(t, "requests.yml")[:5] {
		frame := build(t, &c.Frame)
		_, out := inject(t, n, frame)
		h, payload, err := packets.Answer(frame, out)
		if err == nil {
			err = c.Want.Check(&h, payload)
		}
		if err != nil {
			t.Errorf("afterwards, %s: %v", c.Name, err)
		}
	}
}

var contents atomic.Uint64

// randomBytes are different at each call, and the same in every run.
func randomBytes(n int) []byte {
	r := rand.New(rand.NewPCG(contents.Add(1), 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
