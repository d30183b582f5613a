package compiler_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/report"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/rig"
	"github.com/lambdanic/lambdanic/test/seed"
)

// A card is the program for a card, in the kernel.
type card struct{ *ebpf.Collection }

func loadCard(t *testing.T, source []byte) card {
	t.Helper()
	object, err := compiler.ForNFP(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := report.Offload(t.Context(), source); err != nil || len(found) > 0 {
		t.Fatalf("the checker says %v, %v", found, err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	config := compiler.NFPConfig{Workload: rig.Workload, Revision: 1, Address: [4]byte(packets.NICIP4)}
	if err := c.Maps[compiler.NFPConfigMap].Put(uint32(0), config); err != nil {
		t.Fatal(err)
	}
	return card{c}
}

func (c card) run(t *testing.T, frame []byte) (uint32, []byte) {
	t.Helper()
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 1<<14)}
	verdict, err := c.Programs[compiler.Program].Run(&opts)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, opts.DataOut
}

// count is the lambda's count in a map.
func (c card) count(t *testing.T, name string, n int) (sum uint64) {
	t.Helper()
	for i := range n {
		var v uint64
		if err := c.Maps[name].Lookup(uint32(i), &v); err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

const pass, transmit = 2, 3 // XDP's

// linear is how many bytes of a frame are contiguous in BPF_PROG_TEST_RUN; on a card, all are.
const linear = 3000

// Each lambda for a card passes the checker and the kernel's verifier. It answers a packet byte for byte as the NIC program does, or leaves
// the packet to that.
func TestNFPAnswersAsTheNIC(t *testing.T) {
	r := rig.ForTest(t, "nfp")
	for _, c := range []struct {
		name     string
		requests []string
		counters string
		slots    int
	}{
		{"page", []string{"", "/", "/hello", "/other", "x"}, "served", 2},
		{"visits", []string{"", "a", "some bytes", strings.Repeat("long", 350)}, "requests", 4},
		{"sum", []string{"", "1234", "12345678", "1234567890"}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, err := compiler.PackSource("testdata/nfp/" + c.name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := compiler.BuildSource(t.Context(), source, compiler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Put(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Remove(context.Background()); err != nil {
					t.Error(err)
				}
			})
			card := loadCard(t, source)
			random := seed.Rand(t)
			counted := uint64(0)
			for _, payload := range c.requests {
				for _, room := range []int{0, 8, 20, 200, api.RPCMaxPayload} {
					for method := range uint32(5) {
						f := packets.Frame{TOS: 4, Padding: int(method), RPC: packets.RPC{Workload: "it", Method: method, Request: 1 << 40, Payload: payload, Room: room}}
						frame, err := f.Build(map[string]uint32{"it": rig.Workload})
						if err != nil {
							t.Fatal(err)
						}
						if alike(t, r, card, frame) == pass {
							t.Errorf("%q with room for %d: left to the host", payload, room)
						}
						if counts(c.name, payload, method) {
							counted++
						}
					}
				}
			}
			if c.counters != "" {
				if n := card.count(t, c.counters, c.slots); n != counted {
					t.Errorf("counted %d requests of %d", n, counted)
				}
			}
			compareMutants(t, r, card, random, c.requests)
		})
	}
}

// counts says whether a lambda of the test counts a request.
func counts(name, payload string, method uint32) bool {
	switch name {
	case "page":
		return payload == "" || payload == "/" || payload == "/hello"
	case "visits":
		return payload != "" && method < 4
	}
	return false
}

// alike compares what the card and the NIC do with a frame, and returns the card's verdict.
func alike(t *testing.T, r *rig.Rig, c card, frame []byte) uint32 {
	t.Helper()
	verdict, out := c.run(t, frame)
	if verdict == pass {
		if !bytes.Equal(out, frame) {
			t.Errorf("%x was changed, and left to the host", frame)
		}
		return verdict
	}
	want, wantOut, err := r.RunNIC(frame)
	if err != nil {
		t.Fatal(err)
	}
	if verdict != want || verdict == transmit && !bytes.Equal(out, wantOut) {
		t.Fatalf("%x\ncard %d, %d bytes %x\nNIC  %d, %d bytes %x", frame, verdict, len(out), out, want, len(wantOut), wantOut)
	}
	if verdict == transmit {
		if _, _, err := packets.Answer(frame, out); err != nil {
			t.Errorf("%x: %v", frame, err)
		}
	}
	return verdict
}

// compareMutants compares requests, and frames that differ from requests in a few places. Of the requests, the card must answer all but
// those that cards leave to the host.
func compareMutants(t *testing.T, r *rig.Rig, c card, random *rand.Rand, requests []string) {
	t.Helper()
	for _, flag := range []api.Flag{api.FlagOnce, api.FlagRegion} { // a card remembers nothing, and has no regions
		f := packets.Frame{RPC: packets.RPC{Workload: "it", Payload: requests[0], Flags: flag}}
		frame, err := f.Build(map[string]uint32{"it": rig.Workload})
		if err != nil {
			t.Fatal(err)
		}
		if verdict := alike(t, r, c, frame); verdict != pass {
			t.Errorf("flag %d: verdict %d of the card, want it left to the host", flag, verdict)
		}
	}
	for i := range 2000 {
		f := packets.Frame{IPv6: i%16 == 1, RPC: packets.RPC{Workload: "it", Payload: requests[random.IntN(len(requests))], Room: random.IntN(api.RPCMaxPayload)}}
		switch i % 16 {
		case 2:
			f.VLAN = []uint16{5}
		case 3:
			f.Options = 4
		case 4:
			f.Checksum = "none"
		}
		frame, err := f.Build(map[string]uint32{"it": rig.Workload})
		if err != nil {
			t.Fatal(err)
		}
		mutated := i%2 == 0
		if mutated {
			frame = packets.Mutate(random, frame)
			frame = frame[:min(len(frame), linear)]
		}
		forHost := f.IPv6 || f.Options > 0
		if verdict := alike(t, r, c, frame); !mutated && forHost != (verdict == pass) {
			t.Errorf("%x: verdict %d of the card, left to the host %t, want %t", frame, verdict, verdict == pass, forHost)
		}
		if t.Failed() {
			return
		}
	}
}

// probe packs a lambda of a spec and some statements.
func probe(t *testing.T, spec, statements string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		api.SpecFile: "name: it\n" + spec,
		"it.c":       "#include \"lambda.h\"\nint it(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n" + statements + "\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := compiler.PackSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// What a card lacks is an error at the author's line, with what to do instead.
func TestNFPRefuses(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"clock":     {"uint64_t n = lambda_now(); return lambda_reply(headers, 0, n & 1);", "let the host keep the time"},
		"long text": {"static const char t[2000] = \"x\"; return lambda_reply_from(headers, match_data, t, 0, 1);", "lambda_put_text()"},
		"store":     {"static char t[2000]; lambda_store_to(headers, t, 0, 4); return RETURN_DROP;", "on the host"},
		"move":      {"lambda_move(headers, 0, 4, 4); return RETURN_DROP;", "through payload()"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compiler.ForNFP(t.Context(), probe(t, "", c.source))
			var e *compiler.Error
			if !errors.As(err, &e) || e.Diagnostics[0].File != "it.c" || !strings.Contains(e.Diagnostics[0].Message, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, spec := range map[string]string{
		"messages": "message: {mode: assemble, max: 32KiB, in_flight: 2}\nlimits: {memory: 256KiB}\n",
		"services": "services:\n- {name: cache, protocol: memcached, address: \"192.0.2.1:11211\", timeout: 1ms}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := compiler.ForNFP(t.Context(), probe(t, spec, "return RETURN_DROP;")); !errors.Is(err, compiler.ErrNFP) || !strings.Contains(err.Error(), api.SpecFile) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The configuration has the layout of struct lambda_nfp_config.
func TestNFPConfig(t *testing.T) {
	if n := binary.Size(compiler.NFPConfig{}); n != 16 {
		t.Errorf("%d bytes", n)
	}
}
