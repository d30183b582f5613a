package p4_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// source loads a program of a test's own.
func source(t testing.TB, program, rules, c string) *ebpf.Collection {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"lambda.yml": "name: a\np4: a.p4\nrules: a.p4cfg\n", "a.p4": program, "a.p4cfg": rules}
	if c != "" {
		files["a.c"] = "#include <pif_plugin.h>\n" + c
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return load(t, dir)
}

const vlanProgram = `
header_type ethernet_t { fields { dst : 48; src : 48; type_ : 16; } }
header_type vlan_t { fields { pcp : 3; dei : 1; vid : 12; type_ : 16; } }
header_type ipv4_t { fields { front : 64; ttl : 8; protocol : 8; sum : 16; src : 32; dst : 32; } }
header ethernet_t eth;
header vlan_t vlan;
header ipv4_t ipv4;

parser start {
	extract(eth);
	return select (latest.type_) { 0x8100 : tagged; 0x0800 : ip; default : ingress; }
}
parser tagged {
	extract(vlan);
	return select (vlan.type_) { 0x0800 : ip; default : ingress; }
}
parser ip { extract(ipv4); return ingress; }

action pop() {
	modify_field(eth.type_, vlan.type_);
	remove_header(vlan);
	modify_field(standard_metadata.egress_spec, 0);
}
action push(vid) {
	add_header(vlan);
	modify_field(vlan.type_, eth.type_);
	modify_field(vlan.vid, vid);
	modify_field(vlan.pcp, 5);
	modify_field(eth.type_, 0x8100);
	modify_field(standard_metadata.egress_spec, 0);
}
table tags { reads { vlan : valid; } actions { pop; push; } }
control ingress { apply(tags); }
`

// A header between others is added and removed, and all others stay unchanged.
func TestAddAndRemoveHeaders(t *testing.T) {
	c := source(t, vlanProgram, `{"tables": {"tags": {"rules": [
		{"match": {"vlan": {"value": "true"}}, "action": {"type": "pop"}},
		{"match": {"vlan": {"value": "false"}}, "action": {"type": "push", "data": {"vid": {"value": "291"}}}}]}}}`, "")
	eth := func(kind layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: clientMAC, DstMAC: nicMAC, EthernetType: kind}
	}
	ip := &layers.IPv4{Version: 4, TTL: 61, Id: 7, Protocol: layers.IPProtocolUDP, SrcIP: clientIP, DstIP: nicIP}
	udp := &layers.UDP{SrcPort: 1, DstPort: 2}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	payload := gopacket.Payload("what comes behind, and more than fills up a packet")
	plain := serialize(t, eth(layers.EthernetTypeIPv4), ip, udp, payload)
	tagged := serialize(t, eth(layers.EthernetTypeDot1Q), &layers.Dot1Q{Priority: 5, VLANIdentifier: 291, Type: layers.EthernetTypeIPv4}, ip, udp, payload)
	for _, test := range []struct{ in, want []byte }{{plain, tagged}, {tagged, plain}} {
		verdict, out := run(t, c, "lambda", test.in)
		wantVerdict(t, verdict, xdpTX)
		if !bytes.Equal(out, test.want) {
			t.Errorf("got  %x\nwant %x", out, test.want)
		}
	}
}

const tableProgram = `
header_type h_t { fields { e : 16; n : 8; l : 32; v : 8; out : 16; } }
header_type more_t { fields { x : 8; } }
header_type eth_t { fields { dst : 48; src : 48; type_ : 16; } }
header eth_t eth;
header h_t h;
header more_t more;
parser start { extract(eth); extract(h); return select (h.v) { 1 : more_of_it; default : ingress; } }
parser more_of_it { extract(more); return ingress; }
action hit(n) { modify_field(h.out, n); modify_field(standard_metadata.egress_spec, 0); }
table t { reads { h.e : exact; h.n : ternary; h.l : lpm; more : valid; } actions { hit; } }
control ingress { apply(t); }
`

// tableRule is a rule as the test knows it.
type tableRule struct {
	e       uint16
	n, mask uint8
	l       uint32
	prefix  int
	v       bool
}

func (r tableRule) matches(e uint16, n uint8, l uint32, v bool) bool {
	return r.e == e && r.n&r.mask == n&r.mask && uint64(r.l^l)>>(32-r.prefix) == 0 && r.v == v
}

// The rule with the longest prefix matches; of equally long ones, the first in the file.
func (r tableRule) before(other tableRule) bool { return r.prefix > other.prefix }

func TestTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rules []tableRule
	var text []string
	seen := map[tableRule]bool{}
	for len(rules) < 40 {
		r := tableRule{
			e: uint16(rng.IntN(3)), n: uint8(rng.IntN(4)), mask: uint8(rng.IntN(4)), l: uint32(rng.IntN(4)) << 30, prefix: rng.IntN(3), v: rng.IntN(2) == 0,
		}
		if seen[r] {
			continue
		}
		seen[r] = true
		text = append(text, fmt.Sprintf(`{"match": {"h.e": {"value": "%d"}, "h.n": {"value": "%#x", "mask": "%#x"}, "h.l": {"value": "%d.0.0.0/%d"}, "more": {"value": "%t"}},
			"action": {"type": "hit", "data": {"n": {"value": "%d"}}}}`, r.e, r.n, r.mask, r.l>>24, r.prefix, r.v, len(rules)+1))
		rules = append(rules, r)
	}
	c := source(t, tableProgram, `{"tables": {"t": {"rules": [`+strings.Join(text, ",\n")+`]}}}`, "")
	for range 500 {
		e, n, l, v := uint16(rng.IntN(4)), uint8(rng.IntN(8)), uint32(rng.IntN(5))<<30|uint32(rng.IntN(2)), rng.IntN(2) == 0
		frame := make([]byte, 14, 64)
		frame = binary.BigEndian.AppendUint16(frame, e)
		frame = append(frame, n)
		frame = binary.BigEndian.AppendUint32(frame, l)
		frame = append(frame, map[bool]byte{true: 1}[v], 0, 0)
		frame = append(frame, make([]byte, 20)...)
		best := -1
		for i, r := range rules {
			if r.matches(e, n, l, v) && (best < 0 || r.before(rules[best])) {
				best = i
			}
		}
		verdict, out := run(t, c, "lambda", frame)
		if best < 0 {
			wantVerdict(t, verdict, xdpDrop)
			continue
		}
		wantVerdict(t, verdict, xdpTX)
		if got := binary.BigEndian.Uint16(out[22:]); int(got) != best+1 {
			t.Fatalf("e %d, n %d, l %#x, v %t: rule %d was taken, want %d: %+v", e, n, l, v, got, best+1, rules[best])
		}
	}
}

// A table may have many rules.
func TestLargeTable(t *testing.T) {
	const rules = 1000
	var text []string
	for i := range rules {
		text = append(text, fmt.Sprintf(`{"match": {"h.e": {"value": "%d"}}, "action": {"type": "hit", "data": {"n": {"value": "%d"}}}}`, 7*i, i))
	}
	program := strings.Replace(tableProgram, "h.e : exact; h.n : ternary; h.l : lpm; more : valid;", "h.e : exact;", 1)
	c := source(t, program, `{"tables": {"t": {"rules": [`+strings.Join(text, ",\n")+`]}}}`, "")
	for e := range uint16(7 * rules) {
		if e%7 > 1 {
			continue
		}
		frame := make([]byte, 64)
		binary.BigEndian.PutUint16(frame[14:], e)
		verdict, out := run(t, c, "lambda", frame)
		if e%7 != 0 {
			wantVerdict(t, verdict, xdpDrop)
			continue
		}
		wantVerdict(t, verdict, xdpTX)
		if got := binary.BigEndian.Uint16(out[22:]); got != e/7 {
			t.Fatalf("rule %d was taken, want %d", got, e/7)
		}
	}
}

// layout is a header of random fields.
type layout struct {
	widths  []int
	offsets []int
	bits    int
}

func randomLayout(rng *rand.Rand) layout {
	var l layout
	add := func(w int) {
		l.widths, l.offsets, l.bits = append(l.widths, w), append(l.offsets, l.bits), l.bits+w
	}
	for range 2 + rng.IntN(10) {
		switch rng.IntN(3) {
		case 0:
			add(8 * (1 + rng.IntN(8)))
		case 1:
			add(1 + rng.IntN(20))
		case 2:
			add(1 + rng.IntN(100))
		}
	}
	if rest := l.bits % 8; rest != 0 {
		add(8 - rest)
	}
	return l
}

func (l layout) get(packet *big.Int, i int) *big.Int {
	v := new(big.Int).Rsh(packet, uint(l.bits-l.offsets[i]-l.widths[i]))
	return v.And(v, ones(l.widths[i]))
}

func (l layout) set(packet *big.Int, i int, v *big.Int) {
	shift := uint(l.bits - l.offsets[i] - l.widths[i])
	packet.AndNot(packet, new(big.Int).Lsh(ones(l.widths[i]), shift))
	packet.Or(packet, new(big.Int).Lsh(new(big.Int).And(v, ones(l.widths[i])), shift))
}

func ones(n int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(n))
	return v.Sub(v, big.NewInt(1))
}

func randomBits(rng *rand.Rand, n int) *big.Int {
	v := new(big.Int)
	for range (n + 63) / 64 {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(rng.Uint64()))
	}
	return v.And(v, ones(n))
}

// Fields of any width at any bit are read and written as big integers would be.
func TestRandomHeaders(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			l := randomLayout(rng)
			var fields, body strings.Builder
			for i, w := range l.widths {
				fmt.Fprintf(&fields, "f%d : %d; ", i, w)
			}
			var steps []func(*big.Int)
			for range 1 + rng.IntN(5) {
				steps = append(steps, randomStep(rng, l, &body))
			}
			c := source(t, fmt.Sprintf(`
				header_type eth_t { fields { all : 112; } }
				header_type h_t { fields { %s } }
				header eth_t eth;
				header h_t h;
				parser start { extract(eth); extract(h); return ingress; }
				action change() { %s modify_field(standard_metadata.egress_spec, 0); }
				table t { actions { change; } default_action : change(); }
				control ingress { apply(t); }`, fields.String(), body.String()), `{}`, "")
			for range 20 {
				packet := randomBits(rng, l.bits)
				frame := make([]byte, 14+l.bits/8+20)
				packet.FillBytes(frame[14 : 14+l.bits/8])
				for _, step := range steps {
					step(packet)
				}
				want := bytes.Clone(frame)
				packet.FillBytes(want[14 : 14+l.bits/8])
				verdict, out := run(t, c, "lambda", frame)
				wantVerdict(t, verdict, xdpTX)
				if !bytes.Equal(out, want) {
					t.Fatalf("%s\n%s\nin   %x\ngot  %x\nwant %x", fields.String(), body.String(), frame[14:], out[14:], want[14:])
				}
			}
		})
	}
}

// randomStep writes one statement, and returns its effect.
func randomStep(rng *rand.Rand, l layout, body *strings.Builder) func(*big.Int) {
	i, j := rng.IntN(len(l.widths)), rng.IntN(len(l.widths))
	v := randomBits(rng, min(l.widths[i], 64))
	switch kind := rng.IntN(4); {
	case kind == 0:
		fmt.Fprintf(body, "modify_field(h.f%d, %#x); ", i, v)
		return func(p *big.Int) { l.set(p, i, v) }
	case kind == 1 && (l.widths[j] <= 64 || l.widths[j] == l.widths[i]):
		fmt.Fprintf(body, "modify_field(h.f%d, h.f%d); ", i, j)
		return func(p *big.Int) { l.set(p, i, l.get(p, j)) }
	case kind == 2 && l.widths[i] <= 64:
		fmt.Fprintf(body, "add_to_field(h.f%d, %#x); ", i, v)
		return func(p *big.Int) { l.set(p, i, new(big.Int).Add(l.get(p, i), v)) }
	case kind == 3 && l.widths[i] <= 64 && l.widths[j] <= 64:
		n := rng.IntN(l.widths[i])
		fmt.Fprintf(body, "shift_right(h.f%d, h.f%d, %d); ", i, j, n)
		return func(p *big.Int) { l.set(p, i, new(big.Int).Rsh(l.get(p, j), uint(n))) }
	}
	fmt.Fprintf(body, "modify_field(h.f%d, 1); ", i)
	return func(p *big.Int) { l.set(p, i, big.NewInt(1)) }
}
