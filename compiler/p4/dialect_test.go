package p4_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// dialectHead is common to all programs here. Its packets: an optional VLAN tag, IPv4, UDP to job's port.
const dialectHead = `
#define VLAN 0x8100
header_type eth_t { fields { dst : 48; src : 48; type_ : 16; } }
header_type vlan_t { fields { pcp : 3; dei : 1; vid : 12; type_ : 16; } }
header_type ipv4_t { fields {
	version : 4; ihl : 4; tos : 8; total : 16; id : 16; fragment : 16; ttl : 8; protocol : 8; sum : 16; src : 32; dst : 32;
} }
header_type udp_t { fields { src : 16; dst : 16; length_ : 16; sum : 16; } }
header_type job_t { fields { number : 32; data : 128; } }
header_type m_t { fields { a : 16; b : 16; } }
header eth_t eth;
header vlan_t vlan;
header ipv4_t ipv4;
header udp_t udp;
header job_t job;
metadata m_t m;
primitive_action work();
parser start { return parse_eth; }
parser parse_eth { extract(eth); return select (eth.type_) { VLAN : parse_vlan; 0x0800 : parse_ip; default : ingress; } }
parser parse_vlan { extract(vlan); return select (vlan.type_) { 16'0x0800 : parse_ip; default : ingress; } }
parser parse_ip { extract(ipv4); set_metadata(m.b, ipv4.id + 1); return select (ipv4.protocol) { 17 : parse_udp; default : ingress; } }
parser parse_udp { extract(udp); return select (udp.dst) { 4369 : parse_job; default : ingress; } }
parser parse_job { extract(job); return ingress; }
action tell(n, port) { modify_field(job.number, n); modify_field(udp.sum, 16'0); modify_field(standard_metadata.egress_spec, port); }
`

// dialectLambda answers work() with the first word of the job's data.
const dialectLambda = `#include <pif_plugin_metadata.h>
#include <pif_common.h>
#include <memory.h>
#include <stdlib.h>
#include <string.h>
int pif_plugin_work(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_job_T *job = pif_plugin_hdr_get_job(headers);

	job->__data_0 = 0x01020304;
	return job->number == 9 ? PIF_PLUGIN_RETURN_DROP : PIF_PLUGIN_RETURN_FORWARD;
}
`

// tellRules are rules of a table t: the action tell with data, by match; the last is the default.
func tellRules(rules ...[3]string) string {
	var list []string
	for _, r := range rules[:len(rules)-1] {
		list = append(list, `{"name": "r", "match": {`+r[0]+`}, "action": `+tellAction(r)+`}`)
	}
	return `{"tables": {"t": {"rules": [` + strings.Join(list, ", ") + `], "default_rule": {"name": "d", "action": ` + tellAction(rules[len(rules)-1]) + `}}}}`
}

func tellAction(r [3]string) string {
	return `{"type": "tell", "data": {"n": {"value": "` + r[1] + `"}, "port": {"value": "` + r[2] + `"}}}`
}

// dialectFrame is a job of that number, behind a VLAN tag where one is given.
func dialectFrame(t testing.TB, number byte, vid uint16) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 61, Id: 99, Protocol: layers.IPProtocolUDP, SrcIP: clientIP, DstIP: nicIP}
	udp := &layers.UDP{SrcPort: 5000, DstPort: jobPort}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	eth := &layers.Ethernet{SrcMAC: clientMAC, DstMAC: nicMAC, EthernetType: layers.EthernetTypeIPv4}
	list := []gopacket.SerializableLayer{eth}
	if vid != 0 {
		eth.EthernetType = layers.EthernetTypeDot1Q
		list = append(list, &layers.Dot1Q{VLANIdentifier: vid, Type: layers.EthernetTypeIPv4})
	}
	return serialize(t, append(list, ip, udp, gopacket.Payload(job(number, "")))...)
}

// Each case is a line of the dialect, with packets and what becomes of them: the verdict, and the job's number where they leave by
// the wire. Checksums are in TestChecksumLines, clones in TestKeyValueClient, sleep() in TestWaits, split fields and
// the memories' words in TestLambdaAccess, ternary and lpm in TestTables, adding and removing in TestAddAndRemoveHeaders.
func TestDialect(t *testing.T) {
	type packet struct {
		number  byte
		vid     uint16
		verdict uint32
		answer  uint32
	}
	const table = "table t { actions { tell; } }\n"
	say := func(condition string) string {
		return "table u { actions { no; } default_action : no; } action no() { modify_field(job.number, 1000); modify_field(udp.sum, 0); " +
			"modify_field(standard_metadata.egress_spec, 0); }\n" + table + "control ingress { if (" + condition + ") { apply(t); } else { apply(u); } }"
	}
	behind := func(port string) string {
		return "table u { actions { go; } default_action : go; } action go() { modify_field(standard_metadata.egress_spec, " + port + "); }\n" +
			"control ingress { apply(t); apply(u); }"
	}
	yes := tellRules([3]string{"", "7", "p0"})
	for name, test := range map[string]struct {
		program, rules string
		packets        []packet
	}{
		"else if, else": {
			table + "table u { actions { tell; } default_action : tell(50, 0); }\ncontrol ingress { if (job.number == 1) { apply(t); } " +
				"else if (job.number == 2) { apply(u); } else { } }\ncontrol egress { }",
			yes, []packet{{1, 0, xdpTX, 7}, {2, 0, xdpTX, 50}, {3, 0, xdpDrop, 0}},
		},
		"valid(h)":                 {say("valid(vlan)"), yes, []packet{{1, 5, xdpTX, 7}, {1, 0, xdpTX, 1000}}},
		"and, or, not":             {say("not valid(vlan) and (job.number == 1 or job.number == 2)"), yes, []packet{{1, 0, xdpTX, 7}, {2, 0, xdpTX, 7}, {3, 0, xdpTX, 1000}, {1, 5, xdpTX, 1000}}},
		"==":                       {say("job.number == 32'2"), yes, []packet{{2, 0, xdpTX, 7}, {1, 0, xdpTX, 1000}}},
		"!=":                       {say("job.number != 0x2"), yes, []packet{{2, 0, xdpTX, 1000}, {1, 0, xdpTX, 7}}},
		"<":                        {say("job.number < 2"), yes, []packet{{1, 0, xdpTX, 7}, {2, 0, xdpTX, 1000}}},
		">":                        {say("job.number > 2"), yes, []packet{{3, 0, xdpTX, 7}, {2, 0, xdpTX, 1000}}},
		"<=":                       {say("job.number <= 2"), yes, []packet{{2, 0, xdpTX, 7}, {3, 0, xdpTX, 1000}}},
		">=":                       {say("job.number >= 2"), yes, []packet{{2, 0, xdpTX, 7}, {1, 0, xdpTX, 1000}}},
		"set_metadata":             {say("m.b == 100"), yes, []packet{{1, 0, xdpTX, 7}}},
		"ingress_port":             {say("standard_metadata.ingress_port == 0"), yes, []packet{{1, 0, xdpTX, 7}}},
		"v0.0 is the host":         {table + "control ingress { apply(t); }", tellRules([3]string{"", "7", "v0.0"}), []packet{{1, 0, xdpPass, 7}}},
		"v0.3 is the host":         {table + "control ingress { apply(t); }", tellRules([3]string{"", "7", "v0.3"}), []packet{{1, 0, xdpPass, 7}}},
		"v3.63 is the host":        {table + "control ingress { apply(t); }", tellRules([3]string{"", "7", "v3.63"}), []packet{{1, 0, xdpPass, 7}}},
		"no such port":             {table + behind("77"), yes, []packet{{1, 0, xdpDrop, 0}}},
		"a port behind the host's": {table + behind("0x400"), yes, []packet{{1, 0, xdpDrop, 0}}},
		"the last of the host's":   {table + behind("0x3ff"), yes, []packet{{1, 0, xdpPass, 7}}},
		"keys exact and valid": {
			"table t { reads { job.number : exact; vlan : valid; } actions { tell; } }\ncontrol ingress { apply(t); }",
			tellRules([3]string{`"job.number": {"value": "1"}, "vlan": {"value": "true"}`, "11", "p0"},
				[3]string{`"job.number": {"value": "0x1"}, "vlan": {"value": "0"}`, "12", "p0"}, [3]string{"", "13", "p0"}),
			[]packet{{1, 5, xdpTX, 11}, {1, 0, xdpTX, 12}, {2, 5, xdpTX, 13}},
		},
		"a port as a key": {
			"table t { reads { standard_metadata.ingress_port : exact; } actions { tell; } }\ncontrol ingress { apply(t); }",
			tellRules([3]string{`"standard_metadata.ingress_port": {"value": "v0.1"}`, "11", "p0"},
				[3]string{`"standard_metadata.ingress_port": {"value": "p0"}`, "12", "p0"}, [3]string{"", "13", "p0"}),
			[]packet{{1, 0, xdpTX, 12}},
		},
		"primitive actions forward and drop": {
			"table t { actions { tell; } }\ntable w { actions { run; } default_action : run; }\naction run() { work(); }\ncontrol ingress { apply(w); apply(t); }",
			yes, []packet{{1, 0, xdpTX, 7}, {9, 0, xdpDrop, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := source(t, dialectHead+test.program, test.rules, dialectLambda)
			for _, p := range test.packets {
				verdict, out := run(t, c, "lambda", dialectFrame(t, p.number, p.vid))
				wantVerdict(t, verdict, p.verdict)
				if p.verdict == xdpDrop {
					continue
				}
				at := 42
				if p.vid != 0 {
					at += 4
				}
				if got := binary.BigEndian.Uint32(out[at:]); got != p.answer {
					t.Errorf("job %d, VLAN %d: answered %d, want %d", p.number, p.vid, got, p.answer)
				}
			}
		})
	}
}

// verify alone drops wrong checksums, and update alone sets those of packets that leave.
func TestChecksumLines(t *testing.T) {
	const list = `field_list sums { ipv4.version; ipv4.ihl; ipv4.tos; ipv4.total; ipv4.id; ipv4.fragment; ipv4.ttl; ipv4.protocol; ipv4.src; ipv4.dst; }
		field_list_calculation c { input { sums; } algorithm : csum16; output_width : 16; }
		action lower() { subtract_from_field(ipv4.ttl, 1); modify_field(standard_metadata.egress_spec, 0); }
		table t { actions { lower; } default_action : lower; }
		control ingress { apply(t); }`
	right, wrong := dialectFrame(t, 1, 0), dialectFrame(t, 1, 0)
	wrong[24] ^= 0x40
	for name, test := range map[string]struct {
		field   string
		frame   []byte
		verdict uint32
		summed  bool
	}{
		"verify, right": {"calculated_field ipv4.sum { verify c; }", right, xdpTX, false},
		"verify, wrong": {"calculated_field ipv4.sum { verify c; }", wrong, xdpDrop, false},
		"update":        {"calculated_field ipv4.sum { update c; }", right, xdpTX, true},
		"both, right":   {"calculated_field ipv4.sum { verify c; update c; }", right, xdpTX, true},
		"both, wrong":   {"calculated_field ipv4.sum { verify c; update c; }", wrong, xdpDrop, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := source(t, dialectHead+list+test.field, `{}`, dialectLambda)
			verdict, out := run(t, c, "lambda", test.frame)
			wantVerdict(t, verdict, test.verdict)
			if test.summed {
				dissect(t, out)
			} else if verdict == xdpTX && (out[24] != right[24] || out[25] != right[25]) {
				t.Error("the checksum changed, though nobody asked")
			}
		})
	}
}
