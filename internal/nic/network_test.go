package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// The ends of a tunnel: that of clients, and the NIC's own.
var (
	farEnd  = net.IPv4(198, 18, 7, 1).To4()
	nearEnd = net.IPv4(198, 18, 7, 2).To4()
	farMAC  = net.HardwareAddr{2, 7, 0, 0, 0, 1}
	nearMAC = net.HardwareAddr{2, 7, 0, 0, 0, 2}
)

const (
	farPort   = 50123
	vxlanPort = 4789
)

var serialize = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// A tunnel is a VXLAN, whose packets have VLAN tags.
type tunnel struct {
	vni  uint32
	vlan []uint16
}

// wrap puts a frame into the tunnel.
func (u tunnel) wrap(t testing.TB, frame []byte) []byte {
	t.Helper()
	types := append(make([]layers.EthernetType, len(u.vlan)), layers.EthernetTypeIPv4)
	for i := range u.vlan {
		types[i] = layers.EthernetTypeDot1Q
	}
	stack := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: farMAC, DstMAC: nearMAC, EthernetType: types[0]}}
	for i, id := range u.vlan {
		stack = append(stack, &layers.Dot1Q{VLANIdentifier: id, Type: types[i+1]})
	}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: farEnd, DstIP: nearEnd}
	udp := &layers.UDP{SrcPort: farPort, DstPort: vxlanPort}
	_ = udp.SetNetworkLayerForChecksum(ip)
	buf := gopacket.NewSerializeBuffer()
	stack = append(stack, ip, udp, &layers.VXLAN{ValidIDFlag: true, VNI: u.vni}, gopacket.Payload(frame))
	if err := gopacket.SerializeLayers(buf, serialize, stack...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// unwrap gives the frame in an answer, which came back by the tunnel.
func (u tunnel) unwrap(t testing.TB, answer []byte) []byte {
	t.Helper()
	p := gopacket.NewPacket(answer, layers.LayerTypeEthernet, gopacket.NoCopy)
	eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	udp, _ := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	vxlan, _ := p.Layer(layers.LayerTypeVXLAN).(*layers.VXLAN)
	if eth == nil || ip == nil || udp == nil || vxlan == nil {
		t.Fatalf("no VXLAN: %v", p)
	}
	if !bytes.Equal(eth.SrcMAC, nearMAC) || !bytes.Equal(eth.DstMAC, farMAC) || !ip.SrcIP.Equal(nearEnd) || !ip.DstIP.Equal(farEnd) ||
		udp.SrcPort != farPort || udp.DstPort != vxlanPort || vxlan.VNI != u.vni || !vxlan.ValidIDFlag || udp.Checksum != 0 {
		t.Errorf("got %v %v %v %v", eth, ip, udp, vxlan)
	}
	var tags []uint16
	for _, l := range p.Layers() {
		if tag, ok := l.(*layers.Dot1Q); ok && len(tags) < len(u.vlan) {
			tags = append(tags, tag.VLANIdentifier)
		}
	}
	if fmt.Sprint(tags) != fmt.Sprint(u.vlan) {
		t.Errorf("VLAN tags %v, want %v", tags, u.vlan)
	}
	at := 14 + 4*len(u.vlan)
	if sum16(answer[at:at+20]) != 0xffff {
		t.Errorf("the outer IP header's checksum is wrong: % x", answer[at:at+20])
	}
	if int(ip.Length) != len(answer)-at || int(udp.Length) != len(udp.Payload)+8 {
		t.Errorf("%d bytes: IP says %d, UDP %d", len(answer), ip.Length, udp.Length)
	}
	return vxlan.Payload
}

// networked gives namespaces networks.
func networked(t testing.TB, n *NIC, networks map[string]uint32) {
	t.Helper()
	l := backend.Limits{Networks: map[api.Network]uint32{}}
	for text, number := range networks {
		network, err := api.ParseNetwork(text)
		if err != nil {
			t.Fatal(err)
		}
		l.Networks[network] = number
	}
	if err := n.Limit(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// newTunnelled is a NIC at the end of tunnels, which has a lambda of each mode in the namespace tenant.
func newTunnelled(t testing.TB) *NIC {
	t.Helper()
	c := testConfig(t)
	near, _ := netip.AddrFromSlice(nearEnd)
	c.Addresses = append([]netip.Addr{near}, packetAddresses...)
	n := open(t, c)
	deploy(t, n, of(tenant, probe(t, workloads["packet"], 1, packetSpec)), of(tenant, probe(t, workloads["stream"], 1, streamSpec)),
		of(tenant, probe(t, workloads["assemble"], 1, assembleSpec)), of(tenant, bundled(t, "web_server", workloads["web"], 1)))
	return n
}

// What is asked by a tunnel is answered by it, as it is without: the cases of test/packets.
func TestPacketsInTunnel(t *testing.T) {
	n := newTunnelled(t)
	networked(t, n, map[string]uint32{"vxlan:5001": tenant})
	for i, c := range loadCases(t, "requests.yml", "foreign.yml") {
		t.Run(c.Name, func(t *testing.T) {
			u := tunnel{vni: 5001, vlan: []uint16{300, 400}[:i%3]}
			frame := build(t, &c.Frame)
			wrapped := u.wrap(t, frame)
			verdict, out := inject(t, n, wrapped)
			want := c.Want.Verdict
			if len(c.Frame.VLAN) > 0 { // RFC 7348 section 6.1
				want = "pass"
			}
			if verdict != want {
				t.Fatalf("got verdict %s, want %s", verdict, want)
			}
			if verdict == "pass" && !bytes.Equal(out, wrapped) {
				t.Error("the host gets another packet than came in")
			}
			if verdict != "reply" {
				return
			}
			h, payload, err := packets.Answer(frame, u.unwrap(t, out))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Want.Check(&h, payload); err != nil {
				t.Error(err)
			}
		})
	}
}

// callBy is call by a link, and a tunnel if it has a number. Type 0 stands for no reply.
func callBy(t testing.TB, n *NIC, u tunnel, f packets.Frame) (api.Header, []byte) {
	t.Helper()
	frame := build(t, &f)
	arrives := frame
	if u.vni != 0 {
		arrives = u.wrap(t, frame)
	}
	verdict, out := arrive(t, n, arrives)
	if verdict != "reply" {
		return api.Header{}, nil
	}
	if u.vni != 0 {
		out = u.unwrap(t, out)
	}
	h, payload, err := packets.Answer(frame, out)
	if err != nil {
		t.Fatal(err)
	}
	return h, payload
}

// Messages of many packets come by a tunnel, and replies of many packets are pulled by it, in each mode that has them.
func TestMessagesInTunnel(t *testing.T) {
	n := newTunnelled(t)
	networked(t, n, map[string]uint32{"vxlan:5001": tenant})
	u := tunnel{vni: 5001}
	message := randomBytes(5000)
	list := fragments("assemble", methodStamp, message, 1000)
	var h api.Header
	var reply []byte
	for _, f := range list {
		h, reply = callBy(t, n, u, f)
	}
	for i := uint32(1); i < h.Count; i++ {
		_, p := callBy(t, n, u, pull(list[4], h, i))
		reply = append(reply, p...)
	}
	if h.Type != api.TypeResponse || len(reply) != len(message) || !bytes.Equal(reply[8:4996], message[8:4996]) {
		t.Errorf("got %+v, %d bytes", h, len(reply))
	}
}

// A function that is asked by a tunnel calls a service from the NIC's own address, and answers by the tunnel.
func TestCallInTunnel(t *testing.T) {
	n := newTunnelled(t)
	service := netip.AddrPortFrom(n.HostAddr(), 9)
	deploy(t, n, of(tenant, kvRevision(t, 1, service, longest)))
	networked(t, n, map[string]uint32{"vxlan:5001": tenant})
	u := tunnel{vni: 5001, vlan: []uint16{7}}
	request := build(t, &packets.Frame{RPC: packets.RPC{Workload: "kv", Method: methodGet, Payload: "key", Room: 500, Request: requests.Add(1)}})
	verdict, out := arrive(t, n, u.wrap(t, request))
	p := gopacket.NewPacket(out, layers.LayerTypeEthernet, gopacket.NoCopy)
	eth, _ := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	ip, _ := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	udp, _ := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if verdict != "reply" || ip == nil || udp == nil || ip.DstIP.String() != service.Addr().String() || ip.SrcIP.String() != n.Addr().Addr().String() || len(udp.Payload) < 8 {
		t.Fatalf("got %s %v", verdict, p)
	}
	answer := frame(binary.BigEndian.Uint16(udp.Payload), 0, 1, value("key", "data"))
	eth.SrcMAC, eth.DstMAC, ip.SrcIP, ip.DstIP, udp.SrcPort, udp.DstPort = eth.DstMAC, eth.SrcMAC, ip.DstIP, ip.SrcIP, udp.DstPort, udp.SrcPort
	_ = udp.SetNetworkLayerForChecksum(ip)
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, serialize, eth, ip, udp, gopacket.Payload(answer)); err != nil {
		t.Fatal(err)
	}
	if verdict, out = arrive(t, n, buf.Bytes()); verdict != "reply" {
		t.Fatalf("the service's answer: verdict %s", verdict)
	}
	h, payload, err := packets.Answer(request, u.unwrap(t, out))
	if err != nil || h.Type != api.TypeResponse || string(payload) != "key=data" {
		t.Errorf("got %+v %q, %v", h, payload, err)
	}
}

// Functions of a namespace with networks are reached by these alone, and packets in them reach no other functions. For all others, it is as if
// there was no such function.
func TestNetworks(t *testing.T) {
	n := newTunnelled(t)
	deploy(t, n, of(4, probe(t, workloads["other"], 1, packetSpec)), probe(t, workloads["free"], 1, packetSpec))
	networked(t, n, map[string]uint32{"vxlan:5001": tenant, "vlan:100": tenant, "vxlan:5002": 4, "vlan:4094": 4})
	functions := map[string]string{"packet": "first", "other": "second", "free": ""}
	ways := []struct {
		name, owner string
		vlan        []uint16
		vni         uint32
	}{
		{"no network", "", nil, 0}, {"a VLAN of nobody", "", []uint16{101}, 0}, {"VLAN 0", "", []uint16{0}, 0},
		{"a VLAN", "first", []uint16{100}, 0}, {"another VLAN", "second", []uint16{4094}, 0},
		{"a VLAN in another", "first", []uint16{100, 4094}, 0}, {"a VLAN in one of nobody", "", []uint16{101, 100}, 0},
		{"a VXLAN", "first", nil, 5001}, {"another VXLAN", "second", nil, 5002}, {"a VXLAN in a VLAN", "first", []uint16{4094}, 5001},
	}
	wrong := uint64(0)
	for function, owner := range functions {
		for _, way := range ways {
			f := packets.Frame{RPC: packets.RPC{Workload: function, Payload: "hello", Request: requests.Add(1)}}
			if way.vni == 0 {
				f.VLAN = way.vlan
			}
			h, _ := callBy(t, n, tunnel{way.vni, way.vlan}, f)
			if way.owner == owner {
				if h.Type != api.TypeResponse {
					t.Errorf("%s by %s: got %+v", function, way.name, h)
				}
				continue
			}
			wrong++
			wantCode(t, function+" by "+way.name, h, api.CodeUnknownWorkload)
		}
	}
	if got := counted(t, n, "network"); got != wrong {
		t.Errorf("%d packets are counted, want %d", got, wrong)
	}
	for function := range functions { // the gateway's requests
		if h, _, ok, err := n.Ask(api.Header{Workload: workloads[function], Request: requests.Add(1)}, []byte("hello"), nil); err != nil || !ok || h.Type != api.TypeResponse {
			t.Errorf("the host asks %s: got %+v, %t, %v", function, h, ok, err)
		}
	}
}

// A network that a namespace loses, or gets, changes who is reached at once; what stays is reached throughout.
func TestNetworksChange(t *testing.T) {
	n := newTunnelled(t)
	reached := func(u tunnel) bool {
		t.Helper()
		h, _ := callBy(t, n, u, packets.Frame{RPC: packets.RPC{Workload: "packet", Payload: "hello", Request: requests.Add(1)}})
		return h.Type == api.TypeResponse
	}
	first, second := tunnel{vni: 1}, tunnel{vni: 1<<24 - 1}
	for _, step := range []struct {
		networks      map[string]uint32
		first, second bool
	}{
		{nil, false, false},
		{map[string]uint32{"vxlan:1": tenant}, true, false},
		{map[string]uint32{"vxlan:1": tenant, "vxlan:16777215": tenant}, true, true},
		{map[string]uint32{"vxlan:1": 9, "vxlan:16777215": tenant}, false, true},
		{nil, false, false},
	} {
		networked(t, n, step.networks)
		if a, b := reached(first), reached(second); a != step.first || b != step.second {
			t.Errorf("with %v: %t and %t, want %t and %t", step.networks, a, b, step.first, step.second)
		}
	}
	// A network that stays is never without its function.
	networked(t, n, map[string]uint32{"vxlan:1": tenant})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			networked(t, n, map[string]uint32{"vxlan:1": tenant, "vxlan:16777215": []uint32{tenant, 9}[i%2], fmt.Sprint("vlan:", i+1): tenant})
		}
	}()
	for changing := true; changing; {
		select {
		case <-done:
			changing = false
		default:
		}
		if !reached(first) {
			t.Fatal("a network that stays does not lead to its function")
		}
	}
	networked(t, n, nil)
	h, _ := callBy(t, n, tunnel{}, packets.Frame{RPC: packets.RPC{Workload: "packet", Payload: "hello", Request: requests.Add(1)}})
	if h.Type != api.TypeResponse {
		t.Errorf("without networks: got %+v", h)
	}
}

// What is no whole request in a tunnel of ours goes to the host as it came: the host has the tunnel's other packets, too.
func TestStrangeTunnels(t *testing.T) {
	n := newTunnelled(t)
	networked(t, n, map[string]uint32{"vxlan:5001": tenant})
	u := tunnel{vni: 5001}
	frame := build(t, &packets.Frame{RPC: packets.RPC{Workload: "packet", Payload: "hello"}})
	whole := u.wrap(t, frame)
	const ip, udp, vxlan, inner = 14, 34, 42, 50
	wantPass := func(what string, b []byte) {
		t.Helper()
		if verdict, out := inject(t, n, b); verdict != "pass" || !bytes.Equal(out, b) {
			t.Errorf("%s: verdict %s", what, verdict)
		}
	}
	for size := 14; size < len(whole); size++ {
		wantPass(fmt.Sprintf("%d of %d bytes", size, len(whole)), whole[:size])
	}
	patched := func(at int, b ...byte) []byte {
		p := bytes.Clone(whole)
		copy(p[at:], b)
		return p
	}
	for bit := range 32 { // the flags
		p := bytes.Clone(whole)
		p[vxlan+bit/8] ^= 1 << (bit % 8)
		wantPass(fmt.Sprintf("flag %d", bit), p)
	}
	for what, p := range map[string][]byte{
		"another network":                tunnel{vni: 5002}.wrap(t, frame),
		"VNI 0":                          tunnel{vni: 0}.wrap(t, frame),
		"the VNI's last byte":            patched(vxlan+7, 1),
		"another host's tunnel":          patched(ip+16, 198, 18, 7, 9),
		"a tunnel from nobody":           patched(ip+12, 0, 0, 0, 0),
		"a tunnel from a loopback":       patched(ip+12, 127, 0, 0, 1),
		"a tunnel from a multicast":      patched(ip+12, 224, 0, 0, 1),
		"a tunnel from here":             patched(ip+12, 198, 18, 7, 2),
		"a fragment":                     patched(ip+6, 0x20, 0),
		"no source port":                 patched(udp, 0, 0),
		"a multicast sender":             patched(inner+6, 3),
		"a broadcast":                    patched(inner, 255, 255, 255, 255, 255, 255),
		"ARP":                            patched(inner+12, 8, 6),
		"an inner fragment":              patched(inner+14+6, 0x20, 0),
		"another inner port":             patched(inner+34+2, 0x12, 0xb5+1),
		"a tunnel in a tunnel":           u.wrap(t, whole),
		"an inner packet for others":     patched(inner+14+16, 198, 18, 7, 2+1),
		"an outer datagram that is less": patched(udp+4, 0, byte(len(whole)-udp-1)),
		"outer IPv4 options":             withOption(whole),
	} {
		wantPass(what, p)
	}
	for _, random := range [][]byte{randomBytes(40), randomBytes(100), randomBytes(1000)} {
		wantPass("noise", u.wrap(t, random))
	}
}

// withOption adds four bytes of options to a frame's IPv4 header.
func withOption(frame []byte) []byte {
	b := append(bytes.Clone(frame[:34]), 1, 1, 1, 1)
	b = append(b, frame[34:]...)
	b[14]++
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-14))
	return b
}

// BenchmarkNetwork tells what the NIC program takes for a request by each kind of network, without its answer's way through the kernel.
func BenchmarkNetwork(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	n := newTunnelled(b)
	plain := packets.Frame{Checksum: "none", RPC: packets.RPC{Workload: "packet", Method: methodEcho, Payload: "8 bytes."}}
	tagged := plain
	tagged.VLAN = []uint16{100}
	for _, c := range []struct {
		name     string
		networks map[string]uint32
		frame    []byte
	}{
		{"none", nil, build(b, &plain)},
		{"vlan", map[string]uint32{"vlan:100": tenant}, build(b, &tagged)},
		{"vxlan", map[string]uint32{"vxlan:5001": tenant}, tunnel{vni: 5001}.wrap(b, build(b, &plain))},
	} {
		b.Run(c.name, func(b *testing.B) {
			networked(b, n, c.networks)
			before := runTime(b, n)
			for b.Loop() {
				if verdict, _ := inject(b, n, c.frame); verdict != "reply" {
					b.Fatal(verdict)
				}
			}
			after := runTime(b, n)
			b.ReportMetric(float64(after.Runtime-before.Runtime)/float64(after.RunCount-before.RunCount), "ns/packet")
		})
	}
}
