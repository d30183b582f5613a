package compiler_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/packets"
)

const hostileDir = "testdata/hostile"

// A hostileProgram says in its first comments what must happen to it:
//
//	refused    at build or at load, at the line that is marked "here", if there is one
//	fault      its attack ends with the error "lambda fault"
//	contained  its attack ends somehow, and harms nobody else
//
// Another comment holds more of its spec.
type hostileProgram struct {
	name, want, spec string
	text             []byte
	line             int // 0 if none is marked
}

var hostileComment = regexp.MustCompile(`(?m)^/\* (refused|fault|contained) \*/\n(?:/\* spec: (.*) \*/\n)?`)

func readHostile(t *testing.T, path string) hostileProgram {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := hostileComment.FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s does not say what is expected of it", path)
	}
	p := hostileProgram{name: strings.TrimSuffix(filepath.Base(path), ".c"), want: string(m[1]), spec: string(m[2]), text: text}
	if before, _, marked := strings.Cut(string(text), "/* here */"); marked {
		p.line = strings.Count(before, "\n") + 1
	}
	return p
}

func (p hostileProgram) build(t *testing.T) (*compiler.Artifact, error) {
	t.Helper()
	header, err := os.ReadFile(filepath.Join(hostileDir, "hostile.h"))
	if err != nil {
		t.Fatal(err)
	}
	spec := "name: hostile\nlimits: { time: 1ms, memory: 8MiB }\n" + p.spec + "\n"
	if !strings.Contains(p.spec, "targets:") {
		spec += "targets: [nic]\n"
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"hostile.h": header, "hostile.c": p.text, api.SpecFile: []byte(spec)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return compiler.Build(t.Context(), dir, compiler.Options{})
}

// The workloads on the test's NIC.
const (
	neighbourID = 1
	hostileID   = 2
)

var hostileWorkloads = map[string]uint32{"neighbour": neighbourID, "hostile": hostileID}

// A neighbourhood is a NIC with a lambda that must stay unharmed.
type neighbourhood struct {
	*nic.NIC
	requests uint64
	served   uint64 // by the neighbour
	seed     uint64 // of its kept objects
}

func openNeighbourhood(t *testing.T) *neighbourhood {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	c := nic.Config{
		Instance: fmt.Sprintf("hostile%d", os.Getpid()), RunDir: t.TempDir(), UnknownError: true,
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte(packets.NICIP4))}, Log: slog.New(slog.DiscardHandler),
	}
	n, err := nic.Up(t.Context(), c)
	t.Cleanup(func() {
		if n != nil {
			err = n.Close()
		}
		if err := errors.Join(err, nic.Down(t.Context(), c)); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := compiler.Build(t.Context(), filepath.Join(hostileDir, "neighbour"), compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &neighbourhood{NIC: n, seed: 0x9e3779b97f4a7c15}
	if err := h.put(t, a, neighbourID); err != nil {
		t.Fatal(err)
	}
	h.served++
	h.ask(t, "neighbour", 1, binary.NativeEndian.AppendUint64(nil, h.seed))
	h.checkNeighbour(t)
	return h
}

func (h *neighbourhood) put(t *testing.T, a *compiler.Artifact, workload uint32) error {
	d := backend.Deployment{
		Namespace: "test", Name: a.Manifest.Spec.Name, Workload: workload, Revision: 1, Spec: a.Manifest.Spec, Layouts: a.Manifest.Layouts, BPF: a.BPF,
	}
	for _, s := range a.Manifest.Spec.Services {
		d.Services = append(d.Services, backend.Service{Name: s.Name, Protocol: s.Protocol, Servers: []netip.AddrPort{netip.MustParseAddrPort(s.Address)}, Timeout: s.Timeout})
	}
	return h.Deploy(t.Context(), d)
}

// ask runs the NIC program on a request. Without an answer the header is zero.
func (h *neighbourhood) ask(t *testing.T, workload string, method uint32, body []byte) (api.Header, []byte) {
	t.Helper()
	h.requests++
	f := packets.Frame{RPC: packets.RPC{
		Workload: workload, Method: method, Request: h.requests, Payload: string(body), Room: api.RPCMaxPayload,
	}}
	frame, err := f.Build(hostileWorkloads)
	if err != nil {
		t.Fatal(err)
	}
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 1<<13)}
	verdict, err := h.Root().Run(&opts)
	if err != nil {
		t.Fatal(err)
	}
	if verdict != xdpTX {
		return api.Header{}, nil
	}
	header, payload, err := packets.Answer(frame, opts.DataOut)
	if err != nil {
		return api.Header{}, nil
	}
	return header, payload
}

const xdpTX = 3

// answer is the answer that the neighbour must give after the requests that it served.
func (h *neighbourhood) answer() (want []byte) {
	var kept uint64
	for i := range uint64(64) {
		kept += h.seed*(i+1) ^ i
	}
	for _, v := range []uint64{kept, kept, 2 + 3 + 5 + 7 + 11 + 13 + 17 + 19, h.served} {
		want = binary.NativeEndian.AppendUint64(want, v)
	}
	return want
}

// checkNeighbour asks the neighbour, whose answer depends on all its memory, and reads its counters.
func (h *neighbourhood) checkNeighbour(t *testing.T) {
	t.Helper()
	h.served++
	header, got := h.ask(t, "neighbour", 0, nil)
	want := h.answer()
	if header.Type != api.TypeResponse || !bytes.Equal(got, want) {
		t.Fatalf("the neighbour answers %+v %x, want %x", header, got, want)
	}
	s := h.stats(t, neighbourID)
	if s.Requests != h.served || s.Replies != h.served || s.Faults+s.Errors+s.Drops+s.Calls != 0 {
		t.Fatalf("the neighbour's counters are %+v after %d requests", s, h.served)
	}
}

func (h *neighbourhood) stats(t *testing.T, workload uint32) backend.Stats {
	t.Helper()
	all, err := h.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Workload == workload {
			return s.Stats
		}
	}
	t.Fatalf("workload %d is not there", workload)
	return backend.Stats{}
}

// Every hostile program is refused or contained, while a neighbour on the same NIC answers correctly, with correct counters.
func TestHostilePrograms(t *testing.T) {
	files, err := filepath.Glob(hostileDir + "/*.c")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d programs, %v", len(files), err)
	}
	h := openNeighbourhood(t)
	for i, file := range files {
		if testing.Short() && i%8 != 0 {
			continue
		}
		p := readHostile(t, file)
		t.Run(p.name, func(t *testing.T) {
			a, err := p.build(t)
			if err == nil {
				err = h.put(t, a, hostileID)
			}
			switch {
			case err != nil && p.want != "refused":
				t.Errorf("refused: %v", err)
			case err != nil:
				p.checkMessage(t, err)
			default:
				h.attack(t, p)
				if err := h.Remove(t.Context(), hostileID); err != nil {
					t.Error(err)
				}
			}
			h.checkNeighbour(t)
		})
	}
}

// checkMessage expects a line that an author can find, and nothing about the machine.
func (p hostileProgram) checkMessage(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if at := fmt.Sprintf("hostile.c:%d", p.line); p.line > 0 && !regexp.MustCompile(at+`\b`).MatchString(text) {
		t.Errorf("does not say %s:\n%s", at, text)
	}
	for _, leak := range []string{"root:", "/unit.c", "/tmp/", "Stack dump", "PLEASE submit", "permission denied"} {
		if strings.Contains(text, leak) {
			t.Errorf("shows %q:\n%s", leak, text)
		}
	}
	t.Logf("%s", text)
}

// attack runs the attack a few times, between requests that must be answered normally.
func (h *neighbourhood) attack(t *testing.T, p hostileProgram) {
	t.Helper()
	if p.want == "refused" {
		t.Errorf("accepted")
	}
	for round := range 3 {
		before := h.stats(t, hostileID)
		header, _ := h.ask(t, "hostile", 0, []byte{byte(1 + round*round), 2, 3})
		h.checkNeighbour(t)
		after := h.stats(t, hostileID)
		isFault := header.Type == api.TypeError && api.Code(header.Code) == api.CodeLambdaFault
		if p.want == "fault" && (!isFault || after.Faults != before.Faults+1) {
			t.Errorf("round %d: got %+v, %d faults counted", round, header, after.Faults-before.Faults)
		}
		t.Logf("round %d: type %d code %d", round, header.Type, header.Code)
		if header, out := h.ask(t, "hostile", 0, []byte{0, 2, 3}); header.Type != api.TypeResponse || !bytes.Equal(out, []byte{0, 2, 3}) {
			t.Errorf("afterwards: %+v %x", header, out)
		}
	}
}

// In each run, an endless loop has at most the iterations that its budget pays for, whatever the clock says.
func TestEndlessLoopEndsByItsBudget(t *testing.T) {
	const text = `#include <lambda.h>
LAMBDA_KEPT volatile uint64_t rounds;

int hostile(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1];
	uint64_t n = lambda_read(headers, in, sizeof(in));

	if (n && in[0])
		while (1)
			rounds++;
	n = rounds;
	rounds = 0;
	return lambda_write(headers, &n, sizeof(n));
}
`
	h := openNeighbourhood(t)
	a, err := hostileProgram{text: []byte(text)}.build(t)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := metering.Check(spec)
	if err != nil {
		t.Fatal(err)
	}
	loops := bounds[compiler.Program].Loops
	if len(loops) != 1 {
		t.Fatalf("got %+v, want one loop", loops)
	}
	if err := h.put(t, a, hostileID); err != nil {
		t.Fatal(err)
	}
	most := 1000 * metering.PerMicrosecond / loops[0].Cost // the limit of hostile programs is 1 ms
	for range 3 {
		header, _ := h.ask(t, "hostile", 0, []byte{1})
		if header.Type != api.TypeError || api.Code(header.Code) != api.CodeLambdaFault {
			t.Errorf("got %+v, want a fault", header)
		}
		_, out := h.ask(t, "hostile", 0, []byte{0})
		if len(out) != 8 {
			t.Fatalf("the lambda answers %x", out)
		}
		if n := binary.NativeEndian.Uint64(out); n == 0 || n > most {
			t.Errorf("the loop went round %d times, its budget pays for %d", n, most)
		}
		h.checkNeighbour(t)
	}
}
