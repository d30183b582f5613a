package p4_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/seed"
)

// payloadProgram has headers in the payload of a UDP checksum: one of three bytes that only some packets have, one that all have, and one that
// is added and removed. The job's number says what happens to a packet.
const payloadProgram = `
header_type eth_t { fields { dst : 48; src : 48; type_ : 16; } }
header_type ipv4_t { fields {
	version : 4; ihl : 4; tos : 8; total : 16; id : 16; fragment : 16; ttl : 8; protocol : 8; sum : 16; src : 32; dst : 32;
} }
header_type udp_t { fields { src : 16; dst : 16; length_ : 16; sum : 16; } }
header_type opt_t { fields { kind : 8; v : 16; } }
header_type job_t { fields { number : 8; extra : 8; a : 32; b : 12; c : 20; } }
header_type extra_t { fields { a : 48; } }
header eth_t eth;
header ipv4_t ipv4;
header udp_t udp;
header opt_t opt;
header job_t job;
header extra_t extra;
parser start { extract(eth); extract(ipv4); extract(udp); return select (udp.dst) { 2 : parse_opt; default : parse_job; } }
parser parse_opt { extract(opt); return parse_job; }
parser parse_job { extract(job); return select (job.extra) { 1 : parse_extra; default : ingress; } }
parser parse_extra { extract(extra); return ingress; }
field_list ipv4_list { ipv4.version; ipv4.ihl; ipv4.tos; ipv4.total; ipv4.id; ipv4.fragment; ipv4.ttl; ipv4.protocol; ipv4.src; ipv4.dst; }
field_list_calculation ipv4_sum { input { ipv4_list; } algorithm : csum16; output_width : 16; }
calculated_field ipv4.sum { update ipv4_sum; }
field_list udp_list { ipv4.src; ipv4.dst; 8'0; ipv4.protocol; udp.length_; udp.src; udp.dst; udp.length_; payload; }
field_list_calculation udp_sum { input { udp_list; } algorithm : csum16; output_width : 16; }
calculated_field udp.sum { update udp_sum; }
action out() { modify_field(standard_metadata.egress_spec, 0); }
action before() { modify_field(ipv4.src, 0x0a010203); modify_field(udp.dst, 77); out(); }
action behind() { modify_field(job.a, 0xfedcba98); add_to_field(job.c, 3); out(); }
action odd() { modify_field(opt.v, 0x1234); modify_field(job.b, 5); out(); }
action remove() { remove_header(extra); subtract_from_field(udp.length_, 6); subtract_from_field(ipv4.total, 6); out(); }
action add() { add_header(extra); modify_field(extra.a, 0x010203040506); add_to_field(udp.length_, 6); add_to_field(ipv4.total, 6); out(); }
action without() { modify_field(job.a, 1); modify_field(udp.sum, 0); out(); }
table t {
	reads { job.number : exact; }
	actions { before; behind; odd; remove; add; without; }
}
control ingress { apply(t); }
`

const payloadRules = `{"tables": {"t": {"rules": [
	{"match": {"job.number": {"value": "0"}}, "action": {"type": "before"}},
	{"match": {"job.number": {"value": "1"}}, "action": {"type": "behind"}},
	{"match": {"job.number": {"value": "2"}}, "action": {"type": "odd"}},
	{"match": {"job.number": {"value": "3"}}, "action": {"type": "remove"}},
	{"match": {"job.number": {"value": "4"}}, "action": {"type": "add"}},
	{"match": {"job.number": {"value": "5"}}, "action": {"type": "without"}}
]}}}`

// A checksum over the payload covers the headers in it: whatever happens to these, it equals what gopacket computes. A datagram without a
// checksum, or whose checksum the program removes, leaves without one. The same holds for packets to the host.
func TestPayloadChecksum(t *testing.T) {
	for name, c := range map[string]struct {
		port    string
		verdict uint32
	}{"to the wire": {"0", xdpTX}, "to the host": {"0x300", xdpPass}} {
		t.Run(name, func(t *testing.T) {
			testPayloadChecksum(t, strings.Replace(payloadProgram, "egress_spec, 0)", "egress_spec, "+c.port+")", 1), c.verdict)
		})
	}
}

func testPayloadChecksum(t *testing.T, program string, want uint32) {
	t.Helper()
	c := source(t, program, payloadRules, "")
	r := seed.Rand(t)
	for round := range 300 {
		number, port, extra := byte(round%6), layers.UDPPort(1+round/6%2), round%6 == 3
		var payload []byte
		if port == 2 {
			payload = append(payload, byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()))
		}
		payload = append(payload, number, 0)
		if extra {
			payload[len(payload)-1] = 1
		}
		payload = binary.BigEndian.AppendUint64(payload, r.Uint64())
		for range r.IntN(40) {
			payload = append(payload, byte(r.Uint32()))
		}
		if extra && len(payload) < 30 {
			payload = append(payload, make([]byte, 30)...)
		}
		none := r.IntN(8) == 0
		ip := &layers.IPv4{Version: 4, TTL: 61, Id: uint16(round), Protocol: layers.IPProtocolUDP, SrcIP: clientIP, DstIP: nicIP}
		udp := &layers.UDP{SrcPort: 5000, DstPort: port}
		if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		eth := &layers.Ethernet{SrcMAC: clientMAC, DstMAC: nicMAC, EthernetType: layers.EthernetTypeIPv4}
		frame := serialize(t, eth, ip, udp, gopacket.Payload(payload))
		if none {
			frame[40], frame[41] = 0, 0
		}
		verdict, out := run(t, c, "lambda", frame)
		wantVerdict(t, verdict, want)
		if p := dissect(t, out); (p.udp.Checksum == 0) != (none || number == 5) {
			t.Errorf("UDP checksum %#x, none came: %t", p.udp.Checksum, none)
		}
		if t.Failed() {
			t.Fatalf("round %d, of\n%x\ncame\n%x", round, frame, out)
		}
	}
}

// A header that is added or removed before a payload has an even number of bytes, or the compiler says what to do.
func TestUnevenPayload(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"lambda.yml": "name: a\np4: a.p4\nrules: a.p4cfg\n", "a.p4cfg": payloadRules,
		"a.p4": strings.Replace(payloadProgram, "extra_t { fields { a : 48; } }", "extra_t { fields { a : 40; } }", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := compiler.PackSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "lambda a: header extra of 5 bytes is added or removed in the payload of the checksum udp.sum: give it an even number of bytes"
	if _, err := compiler.StageOf(source); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
