package nic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	roceclient "github.com/lambdanic/lambdanic/client/roce"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module/rdma"
	"github.com/lambdanic/lambdanic/test/packets"
)

const rdmaWorkload = 0x50007

// reverser is a lambda that answers a whole message reversed, with memory for regions.
func reverser(t testing.TB, size string, regions int) backend.Deployment {
	t.Helper()
	source, err := os.ReadFile("../../test/lambdas/mirror/mirror.c")
	if err != nil {
		t.Fatal(err)
	}
	spec := fmt.Sprintf("name: mirror\nmessage: {mode: assemble, max: %s, in_flight: 4, regions: %d}\nlimits: {memory: 200MiB, time: 1s}\n", size, regions)
	a, err := buildFiles(map[string][]byte{"mirror.c": source, api.SpecFile: []byte(spec)})
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, rdmaWorkload, 1)
}

// A wirePeer is the other end of a queue pair, which makes each packet by itself and runs the NIC program on it.
type wirePeer struct {
	t      testing.TB
	n      *NIC
	region *api.Region
	qp     *api.QueuePair
	psn    uint32
	ipv6   bool
	vlan   []uint16
}

const ownQPN = 0x123456

func newWirePeer(t testing.TB, n *NIC, workload uint32, c api.QueuePairRequest) *wirePeer {
	t.Helper()
	p := &wirePeer{t: t, n: n, psn: c.PSN}
	var err error
	if p.region, err = ModuleOf[*rdma.Module](n).AddRegion(t.Context(), workload, api.RegionRequest{}); err != nil {
		t.Fatal(err)
	}
	if !c.Peer.IsValid() {
		c.Peer, _ = netip.AddrFromSlice(packets.ClientIP4)
	}
	p.ipv6 = c.Peer.Is6()
	c.PeerQPN, c.Receive = ownQPN, p.region.RKey
	if p.qp, err = ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), workload, c); err != nil {
		t.Fatal(err)
	}
	return p
}

// write is a WRITE's packet to offset at, of a message of total bytes.
func (p *wirePeer) write(op roce.Op, at, total int, data []byte) roceclient.Packet {
	return roceclient.Packet{Op: op, VA: p.region.Address + uint64(at), RKey: p.region.RKey, DMALen: uint32(total), AckReq: true, Payload: data}
}

// frame makes a packet the queue pair's next one, and puts it into a frame.
func (p *wirePeer) frame(q roceclient.Packet) []byte {
	p.t.Helper()
	q.DestQP, q.PSN = p.qp.QPN, p.psn
	if p.qp.Transport == api.TransportUC {
		q.Service = roce.ServiceUC
	}
	return p.sealed(q.Append(nil))
}

// sealed gives a transport packet its ICRC, and the headers before it.
func (p *wirePeer) sealed(b []byte) []byte {
	p.t.Helper()
	from, to := packets.ClientIP4, packets.NICIP4
	if p.ipv6 {
		from, to = packets.ClientIP6, packets.NICIP6
	}
	f, _ := netip.AddrFromSlice(from)
	d, _ := netip.AddrFromSlice(to)
	path := roceclient.Path{From: netip.AddrPortFrom(f, 50000), To: netip.AddrPortFrom(d, roce.Port), ID: 77}
	return p.framed(path.Seal(b), from, to)
}

func (p *wirePeer) framed(datagram []byte, from, to net.IP) []byte {
	p.t.Helper()
	eth := &layers.Ethernet{SrcMAC: packets.ClientMAC, DstMAC: packets.NICMAC, EthernetType: layers.EthernetTypeIPv4}
	stack := []gopacket.SerializableLayer{eth}
	inner := layers.EthernetTypeIPv4
	if p.ipv6 {
		inner = layers.EthernetTypeIPv6
	}
	eth.EthernetType = inner
	for i, id := range p.vlan {
		if i == 0 {
			eth.EthernetType = layers.EthernetTypeDot1Q
		}
		next := inner
		if i+1 < len(p.vlan) {
			next = layers.EthernetTypeDot1Q
		}
		stack = append(stack, &layers.Dot1Q{VLANIdentifier: id, Type: next})
	}
	udp := &layers.UDP{SrcPort: 50000, DstPort: roce.Port}
	if p.ipv6 {
		ip := &layers.IPv6{Version: 6, TrafficClass: 0x61, FlowLabel: 0x12345, NextHeader: layers.IPProtocolUDP, HopLimit: 9, SrcIP: from, DstIP: to}
		_ = udp.SetNetworkLayerForChecksum(ip)
		stack = append(stack, ip)
	} else {
		ip := &layers.IPv4{Version: 4, Id: 77, Flags: layers.IPv4DontFragment, TTL: 9, TOS: 0x61, Protocol: layers.IPProtocolUDP, SrcIP: from, DstIP: to}
		_ = udp.SetNetworkLayerForChecksum(ip)
		stack = append(stack, ip)
	}
	buf := gopacket.NewSerializeBuffer()
	stack = append(stack, udp, gopacket.Payload(datagram))
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...); err != nil {
		p.t.Fatal(err)
	}
	return bytes.Clone(buf.Bytes())
}

// put runs the NIC program on a frame, and returns the result: "drop", "pass", or an acknowledgement's syndrome and PSN.
func (p *wirePeer) put(frame []byte) string {
	p.t.Helper()
	verdict, out := inject(p.t, p.n, frame)
	if verdict == "pass" && !bytes.Equal(out, frame) {
		p.t.Fatal("the host gets another packet than came")
	}
	if verdict != "reply" {
		return verdict
	}
	ack := p.acknowledgement(out)
	return fmt.Sprintf("%#02x %#x", uint8(ack.Syndrome), ack.PSN)
}

// acknowledgement reads a frame that the NIC made, with gopacket and package roce.
func (p *wirePeer) acknowledgement(frame []byte) roceclient.Packet {
	p.t.Helper()
	g := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	eth, _ := g.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	udp, _ := g.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if g.ErrorLayer() != nil || udp == nil || udp.DstPort != roce.Port || udp.SrcPort < 0xc000 || !bytes.Equal(eth.DstMAC, packets.ClientMAC) {
		p.t.Fatalf("no RoCEv2 packet to the peer: %v", g)
	}
	path := roceclient.Path{}
	from, to := g.NetworkLayer().NetworkFlow().Endpoints()
	f, _ := netip.AddrFromSlice(from.Raw())
	d, _ := netip.AddrFromSlice(to.Raw())
	path.From, path.To = netip.AddrPortFrom(f, uint16(udp.SrcPort)), netip.AddrPortFrom(d, roce.Port)
	wantFrom, wantTo := packets.NICIP4, packets.ClientIP4
	if p.ipv6 {
		wantFrom, wantTo = packets.NICIP6, packets.ClientIP6
	}
	if !net.IP(from.Raw()).Equal(wantFrom) || !net.IP(to.Raw()).Equal(wantTo) {
		p.t.Fatalf("from %v to %v", from, to)
	}
	_ = udp.SetNetworkLayerForChecksum(g.NetworkLayer())
	if err, mismatches := g.VerifyChecksums(); err != nil || len(mismatches) > 0 {
		p.t.Fatalf("checksums: %v, %v", err, mismatches)
	}
	if !path.Check(udp.Payload) {
		p.t.Fatalf("wrong ICRC in %x", frame)
	}
	ack, err := roceclient.Parse(udp.Payload)
	if err != nil || ack.Op != roce.OpAck || ack.DestQP != ownQPN || ack.PKey != roce.PKey || len(ack.Payload) != 0 {
		p.t.Fatalf("%+v, %v", ack, err)
	}
	return ack
}

// next puts the queue pair's next packet, and advances the PSN.
func (p *wirePeer) next(q roceclient.Packet) string {
	p.t.Helper()
	got := p.put(p.frame(q))
	p.psn = (p.psn + 1) & roce.NumMask
	return got
}

// want fails the test unless the result is this. PSNs count from the first packet's; "" stands for the packet's acknowledgement.
func (p *wirePeer) want(what, got string, syndrome roce.Syndrome, psn uint32) {
	p.t.Helper()
	if want := fmt.Sprintf("%#02x %#x", uint8(syndrome), psn&roce.NumMask); got != want {
		p.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// ask sends a λ-RPC that names the region, and returns the answer.
func (p *wirePeer) ask(typ api.Type, request uint64, method uint32, length, window, index int) (api.Header, []byte) {
	p.t.Helper()
	reth := binary.BigEndian.AppendUint64(nil, p.region.Address)
	reth = binary.BigEndian.AppendUint32(reth, p.region.RKey)
	reth = binary.BigEndian.AppendUint32(reth, uint32(length))
	r := packets.RPC{Type: &typ, Flags: api.FlagRegion, Workload: "it", Request: request, Method: method, Payload: string(reth), Room: 1376}
	if typ == api.TypePull {
		count, size := uint32(index+1), uint32(window)
		r.Count, r.MessageLen, r.Index = &count, &size, uint32(index)
	}
	f := packets.Frame{RPC: r}
	frame, err := f.Build(map[string]uint32{"it": rdmaWorkload})
	if err != nil {
		p.t.Fatal(err)
	}
	verdict, out := inject(p.t, p.n, frame)
	if verdict != "reply" {
		p.t.Fatalf("verdict %s", verdict)
	}
	h, payload, err := packets.Answer(frame, out)
	if err != nil {
		p.t.Fatal(err)
	}
	return h, payload
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[len(b)-1-i] = b[i]
	}
	return out
}

// reply pulls the region's whole reply.
func (p *wirePeer) reply() []byte {
	p.t.Helper()
	var all []byte
	for i := 0; ; i++ {
		h, part := p.ask(api.TypePull, 1, 0, 0, 1376, i)
		if h.Type != api.TypeResponse {
			p.t.Fatalf("answer %+v", h)
		}
		if all = append(all, part...); len(all) >= int(h.MessageLen) {
			return all
		}
	}
}

func TestRDMAWrite(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "64KiB", 4))
	peer6, _ := netip.AddrFromSlice(packets.ClientIP6)
	for name, c := range map[string]api.QueuePairRequest{
		"RC": {PSN: roce.NumMask - 3}, "UC": {Transport: api.TransportUC}, "IPv6": {Peer: peer6}, "trust": {ICRC: api.ICRCTrust},
	} {
		t.Run(name, func(t *testing.T) {
			c.MTU = 256
			p := newWirePeer(t, n, rdmaWorkload, c)
			if name == "trust" {
				p.vlan = []uint16{5, 6}
			}
			defer func() {
				if err := ModuleOf[*rdma.Module](n).RemoveRegion(t.Context(), rdmaWorkload, p.region.RKey); err != nil {
					t.Error(err)
				}
			}()
			for _, size := range []int{1, 2, 3, 4, 255, 256, 257, 512, 1000, 5000} {
				data := randomBytes(size)
				packets := max(1, (size+255)/256)
				for i := range packets {
					op := roce.OpWriteMiddle
					switch {
					case packets == 1:
						op = roce.OpWriteOnlyImm
					case i == 0:
						op = roce.OpWriteFirst
					case i == packets-1:
						op = roce.OpWriteLastImm
					}
					psn := p.psn
					q := p.write(op, 0, size, data[i*256:min(size, i*256+256)])
					got := p.next(q)
					if name == "UC" {
						if got != "drop" {
							t.Fatalf("packet %d of %d bytes: %s", i, size, got)
						}
					} else {
						p.want(fmt.Sprintf("packet %d of %d bytes", i, size), got, roce.SyndromeAck, psn)
					}
				}
				if got := p.reply(); !bytes.Equal(got, reversed(data)) {
					t.Fatalf("%d bytes: the lambda answers %d others", size, len(got))
				}
			}
		})
	}
}

// memory is what the lambda finds in the region: its mirror image, mirrored.
func (p *wirePeer) memory(n int, request uint64) []byte {
	p.t.Helper()
	h, payload := p.ask(api.TypeRequest, request, 0, n, 0, 0)
	if h.Type != api.TypeResponse || int(h.MessageLen) != n {
		p.t.Fatalf("answer %+v", h)
	}
	return reversed(payload)
}

// A peer's errors change nothing in memory, are answered as the specification says, and break at most its own queue pair.
func TestRDMARefusals(t *testing.T) {
	n := newTestNIC(t)
	d := reverser(t, "4KiB", 4)
	deploy(t, n, d)
	const first = 100
	data := bytes.Repeat([]byte{0xee}, 256)
	type step struct {
		q    roceclient.Packet
		skip uint32 // PSNs to leave out before
		want string // "" for an acknowledgement
	}
	nak := func(s roce.Syndrome, psn uint32) string { return fmt.Sprintf("%#02x %#x", uint8(s), psn) }
	var p *wirePeer
	write := func(op roce.Op, at, total, length int) roceclient.Packet {
		return p.write(op, at, total, data[:length])
	}
	for what, c := range map[string]struct {
		uc     bool
		steps  func() []step
		broken bool
	}{
		"another key": {steps: func() []step {
			q := write(roce.OpWriteOnly, 0, 4, 4)
			q.RKey ^= 1 << 20
			return []step{{q: q, want: nak(roce.SyndromeAccess, first)}, {q: write(roce.OpWriteOnly, 0, 4, 4), want: "drop"}}
		}, broken: true},
		"another region's index": {steps: func() []step {
			q := write(roce.OpWriteOnly, 0, 4, 4)
			q.RKey ^= 1
			return []step{{q: q, want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"key 0": {steps: func() []step {
			q := write(roce.OpWriteOnly, 0, 4, 4)
			q.RKey = 0
			return []step{{q: q, want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"below the region": {steps: func() []step {
			return []step{{q: write(roce.OpWriteOnly, -1, 4, 4), want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"past its end": {steps: func() []step {
			return []step{{q: write(roce.OpWriteOnly, 4093, 4, 4), want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"up to its end": {steps: func() []step { return []step{{q: write(roce.OpWriteOnly, 4092, 4, 4)}} }},
		"past its end, later": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 3000, 4096, 256), want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"around the end of addresses": {steps: func() []step {
			q := write(roce.OpWriteOnly, 0, 1<<32-1, 4)
			q.VA = 1<<64 - 2
			return []step{{q: q, want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"4 GiB - 1": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 1, 1<<32-1, 256), want: nak(roce.SyndromeAccess, first)}}
		}, broken: true},
		"no bytes, any key": {steps: func() []step {
			q := write(roce.OpWriteOnly, 0, 0, 0)
			q.RKey, q.VA = 7, 0
			return []step{{q: q}}
		}},
		"less than it said": {steps: func() []step {
			return []step{{q: write(roce.OpWriteOnly, 0, 8, 4), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"more than it said": {steps: func() []step {
			return []step{{q: write(roce.OpWriteOnly, 0, 4, 8), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"a short first": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 600, 252), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"middle without one": {steps: func() []step {
			return []step{{q: write(roce.OpWriteMiddle, 0, 0, 256), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"last without one": {steps: func() []step {
			return []step{{q: write(roce.OpWriteLast, 0, 0, 4), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"SEND within a WRITE": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 600, 256)}, {q: write(roce.OpSendMiddle, 0, 0, 256), want: nak(roce.SyndromeInvalidRequest, first+1)}}
		}, broken: true},
		"WRITE within a WRITE": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 600, 256)}, {q: write(roce.OpWriteOnly, 0, 4, 4), want: nak(roce.SyndromeInvalidRequest, first+1)}}
		}, broken: true},
		"an empty last": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 256, 256), want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"more in the end": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 260, 256)}, {q: write(roce.OpWriteLast, 0, 0, 8), want: nak(roce.SyndromeInvalidRequest, first+1)}}
		}, broken: true},
		"less in the end": {steps: func() []step {
			return []step{{q: write(roce.OpWriteFirst, 0, 264, 256)}, {q: write(roce.OpWriteLast, 0, 0, 4), want: nak(roce.SyndromeInvalidRequest, first+1)}}
		}, broken: true},
		"READ": {steps: func() []step {
			q := write(roce.OpReadRequest, 0, 4, 0)
			return []step{{q: q, want: nak(roce.SyndromeInvalidRequest, first)}}
		}, broken: true},
		"an operation that there is not": {steps: func() []step { return []step{{q: write(0x1f, 0, 4, 0), want: nak(roce.SyndromeInvalidRequest, first)}} }, broken: true},
		"an acknowledgement":             {steps: func() []step { return []step{{q: roceclient.Packet{Op: roce.OpAck}, want: "drop"}} }},
		"a gap": {steps: func() []step {
			return []step{
				{q: write(roce.OpWriteOnly, 0, 4, 4), skip: 1, want: nak(roce.SyndromeSequence, first)},
				{q: write(roce.OpWriteOnly, 0, 4, 4), want: "drop"}, {q: write(roce.OpWriteOnly, 0, 4, 4), skip: 0x7ffff0, want: "drop"},
			}
		}},
		"SEND of more than there is room for": {steps: func() []step {
			var list []step
			for i := range uint32(16) {
				op := roce.OpSendMiddle
				if i == 0 {
					op = roce.OpSendFirst
				}
				list = append(list, step{q: write(op, 0, 0, 256)})
			}
			return append(list, step{q: write(roce.OpSendLast, 0, 0, 1), want: nak(roce.SyndromeInvalidRequest, first+16)})
		}, broken: true},
		"UC: a gap": {uc: true, steps: func() []step {
			return []step{
				{q: write(roce.OpWriteFirst, 0, 768, 256), want: "drop"}, {q: write(roce.OpWriteLastImm, 0, 0, 256), skip: 1, want: "drop"},
				{q: write(roce.OpWriteOnly, 4000, 4, 4), skip: 9, want: "drop"},
			}
		}},
		"UC: another key": {uc: true, steps: func() []step {
			q := write(roce.OpWriteOnlyImm, 0, 4, 4)
			q.RKey++
			return []step{{q: q, want: "drop"}, {q: write(roce.OpWriteOnly, 4000, 4, 4), want: "drop"}}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			r := api.QueuePairRequest{PSN: first, MTU: 256}
			if c.uc {
				r.Transport = api.TransportUC
			}
			p = newWirePeer(t, n, rdmaWorkload, r)
			for i, s := range c.steps() {
				p.psn += s.skip
				want := s.want
				if want == "" {
					want = nak(roce.SyndromeAck, p.psn)
				}
				if got := p.next(s.q); got != want {
					t.Errorf("packet %d: %s, want %s", i, got, want)
				}
			}
			list, err := ModuleOf[*rdma.Module](n).QueuePairs(t.Context(), rdmaWorkload)
			if err != nil || len(list) != 1 || list[0].Broken != c.broken {
				t.Errorf("queue pairs %+v, %v: want one, broken: %t", list, err, c.broken)
			}
			if regions, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), rdmaWorkload); err != nil || len(regions) != 1 || regions[0].Runs != 0 {
				t.Errorf("regions %+v, %v: the lambda ran", regions, err)
			}
			if err := errors.Join(ModuleOf[*rdma.Module](n).RemoveRegion(t.Context(), rdmaWorkload, p.region.RKey), ModuleOf[*rdma.Module](n).RemoveQueuePair(t.Context(), rdmaWorkload, p.qp.QPN)); err != nil {
				t.Error(err)
			}
			if got := p.next(write(roce.OpWriteOnly, 0, 4, 4)); got != "pass" {
				t.Errorf("after its end: %s", got)
			}
		})
	}
}

// Packets that are corrupt, or not the peer's, change nothing and are not answered.
func TestRDMABadPackets(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "4KiB", 1))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	data := []byte("abcdef")
	good := p.write(roce.OpWriteOnlyImm, 0, len(data), data)
	packet := func(change func([]byte) []byte) []byte {
		q := good
		q.DestQP, q.PSN = p.qp.QPN, p.psn
		return p.sealed(change(q.Append(nil)))
	}
	frame := p.frame(good)
	for bit := range 8 * len(frame) {
		b := bytes.Clone(frame)
		b[bit/8] ^= 1 << (bit % 8)
		at := bit/8 - 14 // in the IP packet
		switch {
		case at < 0, at == 1, at == 8, at == 10, at == 11, at == 26, at == 27, at == 32:
			continue // fields that a router may change, and the link header, which says where to answer
		}
		if got := p.put(b); got != "drop" && got != "pass" {
			t.Errorf("byte %d of the IP packet with bit %d flipped: %s", at, bit%8, got)
		}
	}
	for length := range frame {
		if got := p.put(append([]byte{}, frame[:max(14, length)]...)); got != "drop" && got != "pass" {
			t.Errorf("the first %d bytes: %s", length, got)
		}
	}
	for what, b := range map[string][]byte{
		"no padding":     packet(func(b []byte) []byte { return b[:len(b)-2] }),
		"no immediate":   packet(func(b []byte) []byte { return b[:28] }),
		"no RETH":        packet(func(b []byte) []byte { return b[:12] }),
		"version":        packet(func(b []byte) []byte { b[1] |= 1; return b }),
		"partition":      packet(func(b []byte) []byte { b[3] = 0xfe; return b }),
		"service":        packet(func(b []byte) []byte { b[0] |= 0x20; return b }),
		"datagrams":      packet(func(b []byte) []byte { b[0] |= 0x60; return b }),
		"congestion":     packet(func(b []byte) []byte { b[0] = 0x81; return b }),
		"three too many": packet(func(b []byte) []byte { return append(b, 0, 0, 0) }),
	} {
		if got := p.put(b); got != "drop" {
			t.Errorf("%s: %s", what, got)
		}
	}
	other := *p
	client := packets.ClientIP4
	defer func() { packets.ClientIP4 = client }()
	packets.ClientIP4 = net.IPv4(192, 0, 2, 3).To4()
	if got := other.put(other.frame(good)); got != "drop" {
		t.Errorf("another's address: %s", got)
	}
	packets.ClientIP4 = client
	if regions, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), rdmaWorkload); err != nil || regions[0].Runs != 0 {
		t.Errorf("the lambda ran: %+v, %v", regions, err)
	}
	p.want("in the end", p.next(good), roce.SyndromeAck, 0)
	if got := p.reply(); !bytes.Equal(got, reversed(data)) {
		t.Errorf("then %q", got)
	}
}

// A repeated packet is acknowledged, not taken in again, and does not run the lambda again. Missing packets are reported once.
func TestRDMAOrder(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "4KiB", 1))
	const first = roce.NumMask // the second one's is 0
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256, PSN: first})
	data := randomBytes(600)
	one := p.frame(p.write(roce.OpWriteFirst, 0, 600, data[:256]))
	p.psn = 0
	quiet := p.write(roce.OpWriteMiddle, 0, 0, data[256:512])
	quiet.AckReq = false
	two := p.frame(quiet)
	p.psn = 1
	three := p.frame(p.write(roce.OpWriteLastImm, 0, 0, data[512:]))
	for i, s := range []struct {
		frame    []byte
		syndrome roce.Syndrome // 0: no answer
		psn      uint32
	}{
		{two, roce.SyndromeSequence, first}, {three, 0, 0}, {one, roce.SyndromeAck, first}, {one, roce.SyndromeAck, first},
		{three, roce.SyndromeSequence, 0}, {three, 0, 0}, {two, 0, 0}, {two, 0, 0}, {one, roce.SyndromeAck, 0},
		{three, roce.SyndromeAck, 1}, {three, roce.SyndromeAck, 1}, {one, roce.SyndromeAck, 1},
	} {
		got := p.put(s.frame)
		if s.syndrome == 0 && got != "drop" {
			t.Errorf("packet %d: %s", i, got)
		} else if s.syndrome != 0 {
			p.want(fmt.Sprint("packet ", i), got, s.syndrome, s.psn)
		}
	}
	if got := p.reply(); !bytes.Equal(got, reversed(data)) {
		t.Error("the lambda answers something else")
	}
	if regions, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), rdmaWorkload); err != nil || regions[0].Runs != 1 {
		t.Errorf("%+v, %v: the lambda is to have run once", regions, err)
	}
}

// A SEND and each other kind of event runs the lambda on what came since the last event; a repeated λ-RPC does not.
func TestRDMAEvents(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "16KiB", 1))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 4096})
	says := func(what string, got []byte, method, length, runs uint32) {
		t.Helper()
		want := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, method), length), runs)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the lambda says %x, want %x", what, got, want)
		}
	}
	data := randomBytes(6000)
	send := func(op roce.Op, imm uint32, data []byte) {
		t.Helper()
		psn := p.psn
		p.want("packet", p.next(roceclient.Packet{Op: op, Imm: imm, AckReq: true, Payload: data}), roce.SyndromeAck, psn)
	}
	write := func(op roce.Op, imm uint32, at, total int, data []byte) {
		t.Helper()
		psn, q := p.psn, p.write(op, at, total, data)
		q.Imm = imm
		p.want("packet", p.next(q), roce.SyndromeAck, psn)
	}
	failed := func(what string, h api.Header) {
		t.Helper()
		if h.Type != api.TypeError || api.Code(h.Code) != api.CodeLambdaFault || api.Fault(h.MessageLen) != api.FaultBounds {
			t.Errorf("%s: %+v, want a fault by its bounds", what, h)
		}
	}
	if h, _ := p.ask(api.TypePull, 1, 0, 0, 1376, 0); h.Type != api.TypeError || api.Code(h.Code) != api.CodeStale {
		t.Errorf("before any: %+v", h)
	}
	send(roce.OpSendOnlyImm, 5, data[:7])
	says("SEND with a number", p.reply(), 5, 7, 1)
	send(roce.OpSendFirst, 0, data[:4096])
	send(roce.OpSendLast, 0, data[4096:])
	if !bytes.Equal(p.reply(), reversed(data)) {
		t.Error("SEND of two packets: the lambda answers something else")
	}
	write(roce.OpWriteOnly, 0, 1000, 500, data[:500])
	write(roce.OpWriteFirst, 0, 5000, 6000, data[:4096])
	write(roce.OpWriteLast, 0, 0, 0, data[4096:])
	write(roce.OpWriteOnlyImm, 9, 0, 0, nil)
	says("WRITEs and a number", p.reply(), 9, 11000, 3)
	write(roce.OpWriteOnlyImm, 8, 0, 100, data[:100])
	says("WRITE with a number", p.reply(), 8, 100, 4)
	write(roce.OpWriteOnly, 0, 0, 100, data[:100])
	for range 3 {
		if h, got := p.ask(api.TypeRequest, 77, 0, 100, 0, 0); h.Type != api.TypeResponse || !bytes.Equal(got, reversed(data[:100])) {
			t.Errorf("λ-RPC: %+v", h)
		}
	}
	_, got := p.ask(api.TypeRequest, 78, 6, 50, 0, 0)
	says("λ-RPC", got, 6, 50, 6)
	const outside = 1000
	write(roce.OpWriteOnlyImm, outside, 0, 100, data[:100])
	for i := range 2 {
		h, _ := p.ask(api.TypePull, 1, 0, 0, 1376, i)
		failed("what a number brought about", h)
	}
	h, _ := p.ask(api.TypeRequest, 80, outside, 50, 0, 0)
	failed("λ-RPC", h)
	h, _ = p.ask(api.TypePull, 80, 0, 0, 1376, 0)
	failed("a pull of its reply", h)
	p.region.Address++
	if h, _ := p.ask(api.TypeRequest, 79, 6, 50, 0, 0); h.Type != api.TypeError || api.Code(h.Code) != api.CodeStale {
		t.Errorf("λ-RPC with another address: %+v", h)
	}
	p.region.Address--
	if h, _ := p.ask(api.TypeRequest, 79, 6, 16<<10+1, 0, 0); h.Type != api.TypeError || api.Code(h.Code) != api.CodeStale {
		t.Errorf("λ-RPC with too much: %+v", h)
	}
}

// In mode stream a region's reply is not kept, so that a repeated request runs the lambda again, and there is nothing to pull.
func TestRDMAStream(t *testing.T) {
	n := newTestNIC(t)
	const spec = "message: {mode: stream, max: 4KiB, in_flight: 4, regions: 2, timeout: 1m}"
	deploy(t, n, probe(t, rdmaWorkload, 1, spec))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	var err error
	if p.region, err = ModuleOf[*rdma.Module](n).AddRegion(t.Context(), rdmaWorkload, api.RegionRequest{Method: methodTake}); err != nil {
		t.Fatal(err)
	}
	stale := func(what string) {
		t.Helper()
		for i := range 2 {
			if h, _ := p.ask(api.TypePull, 7, methodTake, 0, 1376, i); h.Type != api.TypeError || api.Code(h.Code) != api.CodeStale {
				t.Errorf("a pull after %s: %+v", what, h)
			}
		}
	}
	stale("nothing")
	for i := range uint32(2) {
		h, got := p.ask(api.TypeRequest, 7, methodTake, 8, 0, 0)
		if h.Type != api.TypeResponse || len(got) != 8 || binary.LittleEndian.Uint32(got[4:]) != i+1 {
			t.Errorf("λ-RPC, time %d: %+v %x", i+1, h, got)
		}
		stale("a λ-RPC")
	}
	p.want("WRITE", p.next(p.write(roce.OpWriteOnlyImm, 0, 8, make([]byte, 8))), roce.SyndromeAck, 0)
	stale("a WRITE")
	if h, got := p.ask(api.TypeRequest, 7, methodTake, 8, 0, 0); h.Type != api.TypeResponse || binary.LittleEndian.Uint32(got[4:]) != 4 {
		t.Errorf("λ-RPC after a WRITE: %+v %x", h, got)
	}
}

// An event gives the lambda what was written to the region since its last run there, whatever caused that, and whichever queue pairs
// wrote. A SEND gives its own bytes.
func TestRDMAExtent(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "16KiB", 2))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 4096})
	q := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 4096})
	first, second := p.region, q.region
	data := randomBytes(3000)
	write := func(by *wirePeer, region *api.Region, op roce.Op, at, length int) {
		t.Helper()
		by.region = region
		psn := by.psn
		packet := by.write(op, at, length, data[:length])
		packet.Imm = 9 // a method that says the message's length
		by.want("WRITE", by.next(packet), roce.SyndromeAck, psn)
	}
	extent := func(what string, want int) {
		t.Helper()
		write(p, first, roce.OpWriteOnlyImm, 0, 1)
		if got := p.reply(); len(got) != 12 || binary.LittleEndian.Uint32(got[4:]) != uint32(want) {
			t.Errorf("%s: the lambda says %x, want a length of %d", what, got, want)
		}
	}
	write(p, first, roce.OpWriteOnly, 0, 3000)
	if h, _ := p.ask(api.TypeRequest, 77, 0, 100, 0, 0); h.Type != api.TypeResponse {
		t.Errorf("λ-RPC: %+v", h)
	}
	extent("after a λ-RPC", 1)
	write(q, first, roce.OpWriteOnly, 500, 2000)
	extent("by another queue pair", 2500)
	write(p, first, roce.OpWriteOnly, 0, 700)
	write(p, second, roce.OpWriteOnly, 0, 900)
	extent("around a WRITE to another region", 700)
	write(p, first, roce.OpWriteOnly, 0, 800)
	psn := p.psn // a SEND goes to the first region, at --receive
	p.want("SEND", p.next(roceclient.Packet{Op: roce.OpSendOnlyImm, Imm: 5, AckReq: true, Payload: data[:7]}), roce.SyndromeAck, psn)
	if got := p.reply(); len(got) != 12 || binary.LittleEndian.Uint32(got[4:]) != 7 {
		t.Errorf("SEND: the lambda says %x, want a length of 7", got)
	}
	extent("after a SEND", 1)
}

// A region is its revision's memory: it goes when another revision serves, even in the middle of a message. Queue pairs go with the
// lambda. The next daemon finds both as they were.
func TestRDMALife(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	d := reverser(t, "4KiB", 2)
	deploy(t, n, d)
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	q := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	if _, err := ModuleOf[*rdma.Module](n).AddRegion(t.Context(), rdmaWorkload, api.RegionRequest{}); !errors.Is(err, backend.ErrResource) {
		t.Errorf("a third region: %v", err)
	}
	data := randomBytes(256)
	p.want("first", p.next(p.write(roce.OpWriteFirst, 0, 512, data)), roce.SyndromeAck, 0)
	q.want("first", q.next(q.write(roce.OpWriteFirst, 0, 512, data)), roce.SyndromeAck, 0)
	shut(t, n)
	n = open(t, c)
	if !n.Adopted() {
		t.Fatal("not adopted")
	}
	p.n, q.n = n, n
	p.want("the rest, by the next daemon", p.next(p.write(roce.OpWriteLast, 0, 512, data)), roce.SyndromeAck, 1)
	if got := p.memory(512, 1); !bytes.Equal(got, bytes.Repeat(data, 2)) {
		t.Error("its bytes are others")
	}
	next := d
	next.Revision = 2
	deploy(t, n, next)
	q.want("the rest, after a deployment", q.next(q.write(roce.OpWriteLast, 0, 512, data)), roce.SyndromeAccess, 1)
	if regions, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), rdmaWorkload); err != nil || len(regions) != 0 {
		t.Errorf("regions of the revision before: %v, %v", regions, err)
	}
	if list, err := ModuleOf[*rdma.Module](n).QueuePairs(t.Context(), rdmaWorkload); err != nil || len(list) != 2 {
		t.Errorf("queue pairs: %+v, %v", list, err)
	}
	if err := n.Remove(t.Context(), rdmaWorkload); err != nil {
		t.Fatal(err)
	}
	if got := p.next(p.write(roce.OpWriteOnly, 0, 4, data[:4])); got != "pass" {
		t.Errorf("after the lambda's end: %s", got)
	}
	if _, err := ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), rdmaWorkload, api.QueuePairRequest{}); !errors.Is(err, backend.ErrNoResource) {
		t.Errorf("a queue pair of no lambda: %v", err)
	}
}

func TestRDMARequests(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "4KiB", 1))
	peer := netip.MustParseAddr("192.0.2.1")
	for what, c := range map[string]api.QueuePairRequest{
		"transport": {Peer: peer, Transport: "ud"}, "icrc": {Peer: peer, ICRC: "hope"}, "mtu": {Peer: peer, MTU: 1500}, "small mtu": {Peer: peer, MTU: 128},
		"no peer": {}, "group": {Peer: netip.MustParseAddr("224.0.0.1")}, "zone": {Peer: netip.MustParseAddr("fe80::1%lo")},
		"qpn": {Peer: peer, PeerQPN: 1 << 24}, "psn": {Peer: peer, PSN: 1 << 24}, "receive": {Peer: peer, Receive: 5},
	} {
		if _, err := ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), rdmaWorkload, c); !errors.Is(err, backend.ErrResource) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ModuleOf[*rdma.Module](n).AddRegion(t.Context(), rdmaWorkload, api.RegionRequest{Length: 4097}); !errors.Is(err, backend.ErrResource) {
		t.Errorf("too long a region: %v", err)
	}
	numbers := map[uint32]bool{}
	for i := range rdma.MaxQueuePairs + 1 {
		q, err := ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), rdmaWorkload, api.QueuePairRequest{Peer: peer})
		if full := i == rdma.MaxQueuePairs; (err != nil) != full {
			t.Fatalf("queue pair %d: %v", i, err)
		} else if !full {
			numbers[q.QPN] = true
		}
	}
	for qpn := range numbers {
		if err := ModuleOf[*rdma.Module](n).RemoveQueuePair(t.Context(), rdmaWorkload, qpn); err != nil {
			t.Error(err)
		}
	}
	if q, err := ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), rdmaWorkload, api.QueuePairRequest{Peer: peer}); err != nil || numbers[q.QPN] {
		t.Errorf("a number comes again: %+v, %v", q, err)
	}
}

// A peer of one lambda does not reach another's region, even if everything else is right: neither by its queue pair nor by a λ-RPC.
func TestRDMAOtherLambda(t *testing.T) {
	n := newTestNIC(t)
	d := reverser(t, "4KiB", 1)
	other := d
	other.Workload = rdmaWorkload + 1
	deploy(t, n, d, other)
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	q := newWirePeer(t, n, other.Workload, api.QueuePairRequest{MTU: 256})
	own := p.region
	p.region = q.region
	p.want("WRITE", p.next(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("abcd"))), roce.SyndromeAccess, 0)
	if h, _ := p.ask(api.TypeRequest, 1, 0, 4, 0, 0); h.Type != api.TypeError || api.Code(h.Code) != api.CodeStale {
		t.Errorf("λ-RPC: %+v", h)
	}
	if err := ModuleOf[*rdma.Module](n).RemoveRegion(t.Context(), rdmaWorkload, q.region.RKey); !errors.Is(err, backend.ErrNoResource) {
		t.Errorf("revoked another's region: %v", err)
	}
	if regions, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), other.Workload); err != nil || len(regions) != 1 || regions[0].Runs != 0 || own.RKey == regions[0].RKey {
		t.Errorf("%+v, %v", regions, err)
	}
	q.want("its own peer's WRITE", q.next(q.write(roce.OpWriteOnly, 0, 4, []byte("abcd"))), roce.SyndromeAck, 0)
}

// Of a NIC that was closed, such as one that got lost while somebody asked for it, resources are refused.
func TestRDMAOfAClosedNIC(t *testing.T) {
	n, err := Up(t.Context(), testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	shut(t, n)
	for _, r := range n.Resources() {
		_, add := r.Add(t.Context(), workloads["packet"], func(any) error { return nil })
		_, list := r.List(t.Context(), workloads["packet"])
		for what, err := range map[string]error{"add": add, "list": list, "remove": r.Remove(t.Context(), workloads["packet"], 0x401)} {
			if !errors.Is(err, backend.ErrNoResource) {
				t.Errorf("%s %s: %v", what, r.Path, err)
			}
		}
	}
}

// RoCEv2 has no tags: where these are required, nobody writes to a lambda's memory, and none runs for that.
func TestRDMAWithoutTags(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, reverser(t, "4KiB", 1)))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	keyed(t, n, false, 1)
	p.want("WRITE while tags are optional", p.next(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("abcd"))), roce.SyndromeAck, 0)
	runs := accounted(t, n, tenant).Requests
	keyed(t, n, true, 1)
	p.want("WRITE", p.next(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("efgh"))), roce.SyndromeAccess, 1)
	if got := accounted(t, n, tenant).Requests; got != runs {
		t.Errorf("the lambda ran %d times, want %d", got, runs)
	}
}

// RDMA comes by no network of a namespace, and reaches no functions of one that has networks.
func TestRDMAInNetworks(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, reverser(t, "4KiB", 1)))
	p := newWirePeer(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256})
	p.vlan = []uint16{100}
	networked(t, n, map[string]uint32{"vlan:101": 4})
	p.want("WRITE in a VLAN of nobody", p.next(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("abcd"))), roce.SyndromeAck, 0)
	runs := accounted(t, n, tenant).Requests
	networked(t, n, map[string]uint32{"vlan:100": 4})
	if got := p.put(p.frame(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("efgh")))); got != "drop" || counted(t, n, "network") != 1 {
		t.Errorf("WRITE in another's VLAN: %s", got)
	}
	networked(t, n, map[string]uint32{"vlan:101": tenant})
	p.want("WRITE to a namespace with networks", p.next(p.write(roce.OpWriteOnlyImm, 0, 4, []byte("efgh"))), roce.SyndromeAccess, 1)
	if got := accounted(t, n, tenant).Requests; got != runs {
		t.Errorf("the lambda ran %d times, want %d", got, runs)
	}
}
