package roce

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"testing"

	"github.com/lambdanic/lambdanic/api/roce"
)

// A peer is a packet made by another implementation.
type peer struct {
	Op       roce.Op
	Service  roce.Service
	PSN      uint32
	Syndrome roce.Syndrome
	MSN      uint32
	Payload  string
	Packet   string
}

// scapy's packets, which testdata/generate.py makes.
func scapys(t testing.TB) (list []peer) {
	t.Helper()
	b, err := os.ReadFile("testdata/scapy.json")
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// packet is a packet as the script describes it.
func (p peer) packet(t testing.TB) Packet {
	q := Packet{Service: p.Service, Op: p.Op, DestQP: 0xabcdef, PSN: p.PSN, AckReq: p.PSN&1 == 1, Syndrome: p.Syndrome, MSN: p.MSN, Payload: unhex(t, p.Payload)}
	if p.Op == roce.OpAck {
		q.DestQP, q.AckReq = 0x11, false
	}
	if p.Op.HasRETH() {
		q.VA, q.RKey, q.DMALen = 0x123456789abcdef0, 0xc0ffee01, uint32(4*len(q.Payload)+1)
	}
	if p.Op.HasImm() {
		q.Imm = 0xdeadbeef
	}
	return q
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pathOf reads an IP packet's addresses, ports and payload.
func pathOf(t testing.TB, packet []byte) (Path, []byte) {
	t.Helper()
	var p Path
	var from, to netip.Addr
	udp := packet[40:]
	if packet[0]>>4 == 4 {
		from, to, udp = netip.AddrFrom4([4]byte(packet[12:])), netip.AddrFrom4([4]byte(packet[16:])), packet[20:]
		p.ID, p.MayCut = be.Uint16(packet[4:]), packet[6]&0x40 == 0
	} else {
		from, to = netip.AddrFrom16([16]byte(packet[8:])), netip.AddrFrom16([16]byte(packet[24:]))
	}
	p.From, p.To = netip.AddrPortFrom(from, be.Uint16(udp)), netip.AddrPortFrom(to, be.Uint16(udp[2:]))
	return p, udp[8:be.Uint16(udp[4:])]
}

func TestScapysPackets(t *testing.T) {
	for i, s := range scapys(t) {
		want := s.packet(t)
		path, payload := pathOf(t, unhex(t, s.Packet))
		if got := path.Seal(want.Append(nil)); !bytes.Equal(got, payload) {
			t.Errorf("packet %d, operation %#x: made\n%x, want\n%x", i, s.Op, got, payload)
		}
		got, err := Parse(payload)
		want.PKey = roce.PKey
		if err != nil || !path.Check(payload) || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("packet %d, operation %#x: %v, checked %t, payload %x", i, s.Op, err, path.Check(payload), got.Payload)
		}
		got.Payload, want.Payload = nil, nil
		if g, w := mustJSON(t, got), mustJSON(t, want); g != w {
			t.Errorf("packet %d: read as\n%s, want\n%s", i, g, w)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Packets that others published: what a ConnectX-4 Lx sent, and the example of scapy's tests (test/contrib/roce.uts there).
func TestPublishedICRCs(t *testing.T) {
	for name, packet := range map[string]string{
		"congestion notification of a ConnectX-4 Lx": "45c2003c718c400040119161" + "0a0011010a001201" + "000012b700280000" +
			"8100ffff400001180000000000000000000000000000000000000000" + "82fd002a",
		"UC SEND ONLY": "450100400478400040" + "11b4d5" + "c0a80007c0a80007" + "c00012b7002caca2" +
			"2460ffff000000d300cf1710" + "4630818be28935d90e9a95505401be885e500000" + "78f353f3",
	} {
		path, payload := pathOf(t, unhex(t, packet))
		if !path.Check(payload) {
			t.Errorf("%s: ICRC %08x does not match", name, path.ICRC(payload[:len(payload)-roce.ICRCLen]))
		}
	}
}

// The CRC covers every bit of a datagram except those that routers change.
func TestCoverage(t *testing.T) {
	for _, s := range scapys(t) {
		whole := unhex(t, s.Packet)
		v4 := whole[0]>>4 == 4
		for bit := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[bit/8] ^= 0x80 >> (bit % 8)
			if skipped(bit/8, v4) {
				continue
			}
			path, payload := pathOf(t, b)
			if path.Check(payload) != variant(bit/8, v4) {
				t.Fatalf("operation %#x, IPv4 %t: bit %d of byte %d: checked %t", s.Op, v4, bit%8, bit/8, path.Check(payload))
			}
		}
	}
}

// skipped are bytes that say what a packet is, which Path does not hold: versions, lengths, protocol and other fragment bits.
func skipped(at int, v4 bool) bool {
	if v4 {
		return at == 0 || at == 2 || at == 3 || at == 6 || at == 7 || at == 9 || at == 24 || at == 25
	}
	return at == 0 || at == 4 || at == 5 || at == 6 || at == 44 || at == 45
}

// variant are those that routers may change.
func variant(at int, v4 bool) bool {
	if v4 {
		return at == 1 || at == 8 || at == 10 || at == 11 || at == 26 || at == 27 || at == 32
	}
	return at < 4 || at == 7 || at == 46 || at == 47 || at == 52
}

func FuzzParse(f *testing.F) {
	for _, s := range scapys(f) {
		_, payload := pathOf(f, unhex(f, s.Packet))
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(append(p.Append(nil), 0, 0, 0, 0))
		if err != nil || mustJSON(t, again) != mustJSON(t, p) && p.PKey != 0 {
			t.Errorf("%x: read as %+v, then as %+v, %v", b, p, again, err)
		}
	})
}
