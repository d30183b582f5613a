package compiler_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/check/percpu"
)

const ordinaryEntry = "int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n"

// buildOrdinary compiles a lambda "probe" for the NIC.
func buildOrdinary(t *testing.T, source string) (*compiler.Artifact, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		api.SpecFile: "name: probe\ntargets: [nic]\n", "probe.c": "#include <lambda.h>\n" + source,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return compiler.Build(t.Context(), dir, compiler.Options{})
}

// Offsets of a run's inputs and outputs in the hand-over record (struct ln_request in bpf/layout.h), and of the payload in the test's
// packet.
const (
	recordPayloadLen = 32
	recordRoom       = 36
	recordWindowLen  = 44
	recordPayloadOff = 72
	recordOutLen     = 84
	payloadAt        = 42
	verdictForward   = 1
	verdictTime      = 5 // LN_VERDICT_OF(LN_FAULT_TIME) of bpf/layout.h
	verdictBounds    = 6
)

// A loaded lambda, without a NIC program around it.
type loadedLambda struct {
	program *ebpf.Program
	record  *ebpf.Map
	memory  *ebpf.Map // nil if it has none
}

func loadOrdinary(t *testing.T, source string) *loadedLambda {
	t.Helper()
	return loadOrdinaryFor(t, source, ebpf.MustPossibleCPU())
}

// loadOrdinaryFor loads a lambda as a machine with a number of CPUs does.
func loadOrdinaryFor(t *testing.T, source string, cpus int) *loadedLambda {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	a, err := buildOrdinary(t, source)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(percpu.Fit(spec, cpus), metering.Fill(spec, 10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(loaded.Close)
	return &loadedLambda{loaded.Programs[compiler.Program], loaded.Maps[compiler.SharedMap], loaded.Maps[".data.memory"]}
}

// run runs the lambda on a request, and returns the verdict and the bytes of the reply.
func (l *loadedLambda) run(t *testing.T, request []byte) (uint32, []byte) {
	t.Helper()
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	records := make([][]byte, cpus)
	for i := range records {
		records[i] = make([]byte, l.record.ValueSize())
		for at, value := range map[int]int{
			recordPayloadLen: len(request), recordRoom: api.RPCMaxPayload, recordWindowLen: api.RPCMaxPayload, recordPayloadOff: payloadAt,
		} {
			binary.NativeEndian.PutUint32(records[i][at:], uint32(value))
		}
	}
	if err := l.record.Put(uint32(0), records); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, payloadAt+api.RPCMaxPayload)
	copy(packet[payloadAt:], request)
	out := ebpf.RunOptions{Data: packet, DataOut: make([]byte, 2*len(packet))}
	verdict, err := l.program.Run(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.record.Lookup(uint32(0), &records); err != nil {
		t.Fatal(err)
	}
	var length uint32
	for _, record := range records { // one of them was written
		length = max(length, binary.NativeEndian.Uint32(record[recordOutLen:]))
	}
	return verdict, out.DataOut[payloadAt : payloadAt+length]
}

// Loops over local and global arrays, stored pointers, and addresses of locals, as in C.
func TestOrdinaryC(t *testing.T) {
	request := make([]byte, 200)
	for i := range request {
		request[i] = byte(i*167 + 13)
	}
	sorted := slices.Sorted(slices.Values(request))
	reversed := slices.Clone(request)
	slices.Reverse(reversed)
	sum := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(request))
	for name, tc := range map[string]struct {
		source string
		want   []byte
	}{
		"table": {`static uint32_t table[256];
static uint32_t crc(const uint8_t *p, uint32_t n)
{
	uint32_t c = ~0u;
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int k = 0; k < 8; k++)
			table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
	}
	while (n--)
		c = c >> 8 ^ table[(c ^ *p++) & 0xff];
	return ~c;
}
` + ordinaryEntry + `{
	uint8_t in[1400];
	uint32_t c = crc(in, lambda_read(headers, in, sizeof(in)));
	return lambda_write(headers, &c, sizeof(c));
}`, sum},
		"local array": {ordinaryEntry + `{
	uint8_t in[1400];
	int n = lambda_read(headers, in, sizeof(in));
	for (int i = 1; i < n; i++) {
		uint8_t x = in[i];
		int k = i;
		for (; k > 0 && in[k - 1] > x; k--)
			in[k] = in[k - 1];
		in[k] = x;
	}
	return lambda_write(headers, in, n);
}`, sorted},
		"linked list": {`struct node { struct node *next; uint8_t value; };
static struct node nodes[1400];
` + ordinaryEntry + `{
	uint8_t in[1400], out[1400];
	int n = lambda_read(headers, in, sizeof(in)), k = 0;
	struct node *list = 0;
	for (int i = 0; i < n; i++) {
		nodes[i].value = in[i];
		nodes[i].next = list;
		list = &nodes[i];
	}
	for (; list; list = list->next)
		out[k++] = list->value;
	return lambda_write(headers, out, k);
}`, reversed},
		"tree on the heap": {`#include <stdlib.h>
struct node { struct node *left, *right; uint8_t value; int times; };
static int walk(const struct node *n, uint8_t *out, int k)
{
	if (!n)
		return k;
	k = walk(n->left, out, k);
	for (int i = 0; i < n->times; i++)
		out[k++] = n->value;
	return walk(n->right, out, k);
}
` + ordinaryEntry + `{
	uint8_t in[1400], out[1400];
	int n = lambda_read(headers, in, sizeof(in));
	struct node *root = 0, **at;
	for (int i = 0; i < n; i++) {
		for (at = &root; *at && (*at)->value != in[i];)
			at = in[i] < (*at)->value ? &(*at)->left : &(*at)->right;
		if (!*at) {
			*at = calloc(1, sizeof(**at));
			(*at)->value = in[i];
		}
		(*at)->times++;
	}
	return lambda_write(headers, out, walk(root, out, 0));
}`, sorted},
	} {
		t.Run(name, func(t *testing.T) {
			lambda := loadOrdinary(t, tc.source)
			for range 2 { // a request leaves nothing to the next one
				if verdict, out := lambda.run(t, request); verdict != verdictForward || !bytes.Equal(out, tc.want) {
					t.Fatalf("got verdict %d, %x\nwant %x", verdict, out, tc.want)
				}
			}
		})
	}
}

// A program that leaves its memory, or does not end, ends with a fault, and the next request runs normally.
func TestFaults(t *testing.T) {
	for name, body := range map[string]string{
		"index too large":     "in[k + 100000] = 1;",
		"negative index":      "table[-1 - k] = 1;",
		"one behind the end":  "table[k + 8] = 1;",
		"NULL":                "*(volatile int *)(uintptr_t)(k - k) = 1;",
		"forged pointer":      "*(volatile int *)(uintptr_t)(0xffff888000000000 + k) = 1;",
		"pointer in a struct": "struct { volatile int *p; } s[2] = { { (void *)(uintptr_t)k }, { 0 } }; *s[k & 1].p = 1;",
		"endless loop":        "for (;;) table[k & 7]++;",
		"endless computation": "while (!table[0]) k = k * 3;",
		"too long a copy":     "__builtin_memcpy(in, table, k * 10000);",
	} {
		t.Run(name, func(t *testing.T) {
			lambda := loadOrdinary(t, "#include <stdint.h>\nstatic volatile uint32_t table[8];\n"+ordinaryEntry+`{
	uint8_t in[64];
	uint32_t n = lambda_read(headers, in, sizeof(in)), k = in[0];
	if (k) { `+body+` }
	return lambda_write(headers, in, n);
}`)
			want := uint32(verdictBounds)
			if strings.HasPrefix(name, "endless") {
				want = verdictTime
			}
			if verdict, _ := lambda.run(t, []byte{1, 2, 3}); verdict != want {
				t.Errorf("got verdict %d, want %d", verdict, want)
			}
			if verdict, out := lambda.run(t, []byte{0, 2, 3}); verdict != verdictForward || !bytes.Equal(out, []byte{0, 2, 3}) {
				t.Errorf("afterwards: verdict %d, %x", verdict, out)
			}
		})
	}
}

// A kernel pointer cannot be stored in a lambda's memory, and the message names the line.
func TestStoredPacketPointerIsRefused(t *testing.T) {
	_, err := buildOrdinary(t, "static uint8_t *kept[4];\n"+ordinaryEntry+`{
	uint8_t *p = payload(headers, 0, 1);

	if (!p)
		return RETURN_FAULT;
	kept[match_data->method & 3] = p;
	return lambda_reply(headers, 0, *kept[match_data->room & 3]);
}`)
	var failed *compiler.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if d := failed.Diagnostics[0]; d.File != "probe.c" || d.Line != 9 || !strings.Contains(d.Message, "keep an offset instead") {
		t.Errorf("got %v", d)
	}
}

// Code that is written for the verifier has no fuel.
func TestPayloadStyleIsNotMetered(t *testing.T) {
	for _, name := range []string{"web_server", "kv_client", "image_transformer"} {
		a, err := compiler.Build(t.Context(), filepath.Join("../lambdas", name), compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range a.Manifest.Maps {
			if m.Name == metering.FuelMap || m.Name == ".data.memory" {
				t.Errorf("%s has a map %s", name, m.Name)
			}
		}
	}
}

// A function that only computes with numbers stays a function, also if it calls the SDK.
func TestComputingFunctionsStay(t *testing.T) {
	artifact, err := buildOrdinary(t, `#include <math.h>
__attribute__((noinline)) static double wave(double x)
{
	return sin(x) * exp(-x) + pow(fma(x, x, 1), fmod(x, 3));
}

`+ordinaryEntry+`{
	double x, y;

	(void)match_data;
	lambda_read(headers, &x, sizeof(x));
	y = wave(x) + wave(x + 1) + wave(x * 3);
	return lambda_write(headers, &y, sizeof(y));
}
`)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(artifact.BPF))
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Programs[compiler.Program].Instructions {
		if spec.Programs[compiler.Program].Instructions[i].Symbol() == "wave" {
			return
		}
	}
	t.Error("wave is inlined")
}
