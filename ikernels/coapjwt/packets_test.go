package coapjwt

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/fxamacker/cbor/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/plgd-dev/go-coap/v3/message"
	"github.com/plgd-dev/go-coap/v3/message/codes"
	"github.com/plgd-dev/go-coap/v3/udp/coder"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/counters"
)

// port is that of CoAP.
const port = 5683

// Addresses of the server and of its client.
var (
	server = netip.MustParseAddr("192.0.2.1")
	client = netip.MustParseAddr("192.0.2.2")
)

const (
	actionDrop = 1
	actionPass = 2
)

// A bench runs the NIC program, without attaching it.
type bench struct {
	t      testing.TB
	random *rand.Rand
	*Guard
	secrets [][]byte
}

// newBench loads the program with so many keys that have no names.
func newBench(t testing.TB, keys int) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	b := &bench{t: t, random: rand.New(rand.NewPCG(1, 2)), Guard: &Guard{}}
	err := b.load(port, []netip.Addr{server, netip.MustParseAddr("2001:db8::1")}, slog.New(slog.DiscardHandler))
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		t.Fatalf("%+v", refused)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	var all []api.IkernelKey
	for range keys {
		all = append(all, b.newKey(""))
	}
	if keys > 0 {
		b.setKeys(all...)
	}
	return b
}

// newKey makes a key of random length.
func (b *bench) newKey(id string) api.IkernelKey {
	b.t.Helper()
	secret := b.bytes(32 + b.random.IntN(100))
	b.secrets = append(b.secrets, secret)
	return api.IkernelKey{ID: id, File: keyFile(b.t, append(bytes.Clone(secret), '\n'))}
}

// keyFile writes a file that only its owner may read.
func keyFile(t testing.TB, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (b *bench) setKeys(keys ...api.IkernelKey) {
	b.t.Helper()
	if _, err := b.SetKeys(keys); err != nil {
		b.t.Fatal(err)
	}
}

// bytes makes so many random ones, of which none is a line's end.
func (b *bench) bytes(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(11 + b.random.IntN(245))
	}
	return all
}

// judge runs a message through the program and returns its verdict.
func (b *bench) judge(message []byte) GuardCjVerdict {
	b.t.Helper()
	return b.judgeFrame(frame(b.t, client, server, port, message))
}

// verdictNone is that of a packet that the program does not look at.
const verdictNone = GuardCjVerdictCJ_VERDICTS

func (b *bench) judgeFrame(frame []byte) GuardCjVerdict {
	b.t.Helper()
	before := b.count()
	out := make([]byte, len(frame)+256)
	action, err := b.objects.CjGuard.Run(&ebpf.RunOptions{Data: frame, DataOut: out})
	if err != nil {
		b.t.Fatal(err)
	}
	after, verdict := b.count(), verdictNone
	for i := range after {
		if after[i] != before[i] {
			verdict = GuardCjVerdict(i)
		}
	}
	passes := verdict == GuardCjVerdictCJ_PASSED || verdict == GuardCjVerdictCJ_OTHER || verdict == verdictNone
	if passes != (action == actionPass) || passes == (action == actionDrop) {
		b.t.Fatalf("verdict %d has action %d", verdict, action)
	}
	return verdict
}

func (b *bench) count() [GuardCjVerdictCJ_VERDICTS]uint64 {
	b.t.Helper()
	n, err := counters.Sum(b.objects.CjCounters)
	if err != nil {
		b.t.Fatal(err)
	}
	return [GuardCjVerdictCJ_VERDICTS]uint64(n)
}

// frame makes a packet.
func frame(t testing.TB, from, to netip.Addr, port uint16, payload []byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 40000, DstPort: layers.UDPPort(port)}
	var ip gopacket.NetworkLayer
	if to.Is4() {
		ip = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	out := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(out, options, eth, ip.(gopacket.SerializableLayer), udp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// post is a request by go-coap, with the payload.
func (b *bench) post(payload []byte, options ...message.Option) []byte {
	b.t.Helper()
	path := message.Option{ID: message.URIPath, Value: []byte("readings")}
	return encode(b.t, message.Message{
		Type: message.Type(b.random.IntN(2)), Code: codes.POST, MessageID: int32(b.random.IntN(65536)), Token: b.bytes(b.random.IntN(9)),
		Options: append(message.Options{path}, options...), Payload: payload,
	})
}

func encode(t testing.TB, m message.Message) []byte {
	t.Helper()
	size, err := coder.DefaultCoder.Size(m)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, size)
	n, err := coder.DefaultCoder.Encode(m, out)
	if err != nil {
		t.Fatal(err)
	}
	return out[:n]
}

// pair is a payload by fxamacker/cbor.
func pair(t testing.TB, token any) []byte {
	t.Helper()
	return encodeCBOR(t, map[string]any{"token": token, "body": map[string]any{"celsius": 21.5}})
}

func encodeCBOR(t testing.TB, v any) []byte {
	t.Helper()
	out, err := cbor.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// with is a request with this token.
func (b *bench) with(token string) []byte {
	b.t.Helper()
	return b.post(pair(b.t, token))
}

// sign makes a token by golang-jwt.
func sign(t testing.TB, secret []byte, claims jwt.Claims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// claims are so long that the signed text has 81 bytes.
var claims = jwt.MapClaims{"sub": "sensor-17", "iat": 1700000}

// expect checks a verdict.
func (b *bench) expect(what string, message []byte, want GuardCjVerdict) {
	b.t.Helper()
	if got := b.judge(message); got != want {
		b.t.Errorf("%s: verdict %s, want %s: %x", what, verdictName(got), verdictName(want), message)
	}
}

func verdictName(v GuardCjVerdict) string {
	for _, c := range verdicts {
		if c.Verdict == v {
			return c.Name
		}
	}
	return fmt.Sprintf("%d", v)
}
