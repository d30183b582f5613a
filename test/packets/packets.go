// Package packets describes packets as text, builds them, and reads the replies, with gopacket's implementation of the
// standard protocols: a judge that shares no code with the NIC program.
package packets

import (
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/dchest/siphash"
	"github.com/goccy/go-yaml"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/api"
)

//go:embed *.yml
var files embed.FS

// Case is one packet and its expected outcome.
type Case struct {
	Name  string `yaml:"name"`
	Frame Frame  `yaml:"frame"`
	Want  Want   `yaml:"want"`
}

// Frame describes an Ethernet frame that carries a λ-RPC packet. The zero value is a plain one over IPv4.
type Frame struct {
	VLAN     []uint16          `yaml:"vlan"`    // tags, outer first
	IPv6     bool              `yaml:"ipv6"`    // rather than IPv4
	Options  int               `yaml:"options"` // bytes of IPv4 options
	HopByHop bool              `yaml:"hop_by_hop"`
	Port     uint16            `yaml:"port"` // the destination's, if not λ-RPC's
	TOS      uint8             `yaml:"tos"`
	Checksum string            `yaml:"checksum"` // "none", "wrong", or "" for a right one
	RPC      RPC               `yaml:"rpc"`
	Padding  int               `yaml:"padding"` // bytes behind the IP packet
	Patch    map[string]string `yaml:"patch"`   // bytes to put at LAYER+OFFSET in the end, in hexadecimal
}

// RPC describes a λ-RPC packet. Fields that are nil follow from the rest.
type RPC struct {
	Type       *api.Type `yaml:"type"`
	Flags      api.Flag  `yaml:"flags"`
	Code       uint8     `yaml:"code"`
	Length     *uint16   `yaml:"length"`
	Workload   string    `yaml:"workload"` // a name that the test gives a number
	Revision   uint32    `yaml:"revision"`
	Request    uint64    `yaml:"request"`
	Index      uint32    `yaml:"index"`
	Count      *uint32   `yaml:"count"`
	MessageLen *uint32   `yaml:"message_len"`
	Method     uint32    `yaml:"method"`
	Payload    string    `yaml:"payload"`
	Room       int       `yaml:"room"`        // bytes of payload and padding together
	DeadlineUS *uint32   `yaml:"deadline_us"` // a minute
	Client     *uint32   `yaml:"client"`      // 5
	Sequence   *uint32   `yaml:"sequence"`    // 6
	Key        *api.Key  `yaml:"-"`           // tags the packet: also the payload, if the flags say so
}

// Want is the verdict, and the relevant fields of a reply.
type Want struct {
	Verdict    string   `yaml:"verdict"` // pass, drop or reply
	Type       api.Type `yaml:"type"`
	Code       uint8    `yaml:"code"`
	Index      uint32   `yaml:"index"`
	Count      *uint32  `yaml:"count"` // 1
	MessageLen *uint32  `yaml:"message_len"`
	Payload    string   `yaml:"payload"`
	Hex        string   `yaml:"hex"` // the payload, where it is not text
	PayloadLen *int     `yaml:"payload_len"`
}

// Load reads the cases of one file of this folder.
func Load(name string) ([]Case, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var cases []Case
	if err := yaml.UnmarshalWithOptions(b, &cases, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cases, nil
}

// The two ends of the link.
var (
	ClientMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 1}
	NICMAC    = net.HardwareAddr{0x02, 0, 0, 0, 0, 2}
	ClientIP4 = net.IPv4(192, 0, 2, 1).To4()
	NICIP4    = net.IPv4(192, 0, 2, 2).To4()
	ClientIP6 = net.ParseIP("2001:db8::1")
	NICIP6    = net.ParseIP("2001:db8::2")
)

// ClientPort is where requests come from.
const ClientPort = 40000

// Build makes the frame. workloads gives the names in it their numbers.
func (f *Frame) Build(workloads map[string]uint32) ([]byte, error) {
	stack, at := f.layers()
	buf := gopacket.NewSerializeBuffer()
	stack = append(stack, gopacket.Payload(f.RPC.Build(workloads)))
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, stack...); err != nil {
		return nil, fmt.Errorf("build frame: %w", err)
	}
	b := buf.Bytes()
	switch f.Checksum {
	case "none":
		copy(b[at["udp"]+6:], []byte{0, 0})
	case "wrong":
		b[at["udp"]+7]++
	}
	for place, text := range f.Patch {
		layer, offset, _ := strings.Cut(place, "+")
		n, err := strconv.Atoi(offset)
		v, err2 := hex.DecodeString(text)
		if err != nil || err2 != nil || at[layer]+n+len(v) > len(b) {
			return nil, fmt.Errorf("patch %q: %q does not fit the frame", place, text)
		}
		copy(b[at[layer]+n:], v)
	}
	return append(b, make([]byte, f.Padding)...), nil
}

// layers gives the headers, and where each begins.
func (f *Frame) layers() ([]gopacket.SerializableLayer, map[string]int) {
	types := make([]layers.EthernetType, 0, 3)
	for i := range f.VLAN {
		t := layers.EthernetTypeDot1Q
		if i+1 < len(f.VLAN) {
			t = layers.EthernetTypeQinQ
		}
		types = append(types, t)
	}
	if f.IPv6 {
		types = append(types, layers.EthernetTypeIPv6)
	} else {
		types = append(types, layers.EthernetTypeIPv4)
	}
	stack := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: ClientMAC, DstMAC: NICMAC, EthernetType: types[0]}}
	at := map[string]int{"eth": 0, "ip": 14 + 4*len(f.VLAN)}
	for i, id := range f.VLAN {
		stack = append(stack, &layers.Dot1Q{VLANIdentifier: id, Priority: 3, Type: types[i+1]})
	}
	udp := &layers.UDP{SrcPort: ClientPort, DstPort: layers.UDPPort(f.port())}
	if f.IPv6 {
		ip := &layers.IPv6{
			Version: 6, TrafficClass: f.TOS, FlowLabel: 0x12345, NextHeader: layers.IPProtocolUDP, HopLimit: 64, SrcIP: ClientIP6, DstIP: NICIP6,
		}
		at["udp"] = at["ip"] + 40
		if f.HopByHop {
			// RFC 8200 section 4.3; PadN fills its eight bytes.
			ip.HopByHop = &layers.IPv6HopByHop{}
			ip.HopByHop.NextHeader = layers.IPProtocolUDP
			ip.HopByHop.Options = []*layers.IPv6HopByHopOption{{OptionType: 1, OptionData: make([]byte, 4), OptionLength: 4, ActualLength: 6}}
			at["udp"] += 8
		}
		_ = udp.SetNetworkLayerForChecksum(ip)
		stack = append(stack, ip)
	} else {
		ip := &layers.IPv4{Version: 4, TTL: 64, TOS: f.TOS, Id: 7, Protocol: layers.IPProtocolUDP, SrcIP: ClientIP4, DstIP: NICIP4}
		for range f.Options {
			ip.Options = append(ip.Options, layers.IPv4Option{OptionType: 1}) // no operation
		}
		at["udp"] = at["ip"] + 20 + f.Options
		_ = udp.SetNetworkLayerForChecksum(ip)
		stack = append(stack, ip)
	}
	at["rpc"] = at["udp"] + 8
	return append(stack, udp), at
}

func (f *Frame) port() uint16 {
	if f.Port != 0 {
		return f.Port
	}
	return api.RPCPort
}

// Build makes the datagram.
func (r *RPC) Build(workloads map[string]uint32) []byte {
	n := len(r.Payload)
	h := api.Header{
		Type: or(r.Type, api.TypeRequest), Flags: r.Flags, Code: r.Code, Length: or(r.Length, uint16(n)), Workload: workloads[r.Workload],
		Revision: r.Revision, Request: r.Request, Index: r.Index, Count: or(r.Count, 1), MessageLen: or(r.MessageLen, uint32(n)),
		Method: r.Method, DeadlineUS: or(r.DeadlineUS, 60e6), Client: or(r.Client, 5), Sequence: or(r.Sequence, 6),
	}
	if r.Key != nil {
		h.Flags |= r.Key.TagFlags(r.Flags&api.FlagTagPayload != 0)
	}
	b := append(h.Append(nil), r.Payload...)
	if r.Key != nil {
		binary.BigEndian.PutUint64(b[api.TaggedHeaderLen:], Tag(r.Key, h.Flags, b[:api.RPCHeaderLen], b[api.RPCHeaderLen:]))
	}
	return append(b, make([]byte, max(0, r.Room-n))...)
}

// Tag is the tag of a packet with these flags. The payload is without padding.
func Tag(k *api.Key, flags api.Flag, header, payload []byte) uint64 {
	text := header[:api.TaggedHeaderLen:api.TaggedHeaderLen]
	if flags&api.FlagTagPayload != 0 {
		text = append(text, payload...)
	}
	le := binary.LittleEndian
	return siphash.Hash(le.Uint64(k.Secret[:]), le.Uint64(k.Secret[8:]), text)
}

// KeyOf is a key of the namespace tenant with a number, always the same.
func KeyOf(number uint32) api.Key {
	k := api.Key{Namespace: "tenant", Number: number}
	for i := range k.Secret {
		k.Secret[i] = byte(number)*31 + byte(i)
	}
	return k
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// Answer reads the reply to a request, both whole frames, and checks what holds for all replies: it goes back the way
// that the request came, with right lengths and checksums and nothing behind them, and is no longer than the request.
func Answer(request, reply []byte) (api.Header, []byte, error) {
	var h api.Header
	req, err := split(withoutOptions(request))
	if err != nil {
		return h, nil, fmt.Errorf("request: %w", err)
	}
	rep, err := split(reply)
	if err != nil {
		return h, nil, fmt.Errorf("reply: %w", err)
	}
	if err := rep.check(len(reply)); err != nil {
		return h, nil, fmt.Errorf("reply: %w", err)
	}
	if got, want := rep.route(), req.backRoute(); got != want {
		return h, nil, fmt.Errorf("reply goes by %s, want %s", got, want)
	}
	if len(rep.udp.Payload) > len(req.udp.Payload) {
		return h, nil, fmt.Errorf("reply of %d bytes to a request of %d", len(rep.udp.Payload), len(req.udp.Payload))
	}
	h, payload, err := api.ParsePacket(rep.udp.Payload)
	if err != nil {
		return h, nil, fmt.Errorf("reply: %w", err)
	}
	if len(rep.udp.Payload) != api.RPCHeaderLen+len(payload) {
		return h, nil, fmt.Errorf("reply has bytes behind its payload")
	}
	return h, payload, echoes(req.udp.Payload, rep.udp.Payload)
}

// withoutOptions replaces IPv4 options, which the NIC program skips, by options that gopacket accepts.
func withoutOptions(frame []byte) []byte {
	at := 12
	for binary.BigEndian.Uint16(frame[at:]) == uint16(layers.EthernetTypeDot1Q) || binary.BigEndian.Uint16(frame[at:]) == uint16(layers.EthernetTypeQinQ) {
		at += 4
	}
	if binary.BigEndian.Uint16(frame[at:]) != uint16(layers.EthernetTypeIPv4) {
		return frame
	}
	frame = bytes.Clone(frame)
	ip := frame[at+2:]
	for i := 20; i < int(ip[0]&15)*4; i++ {
		ip[i] = 1 // no operation
	}
	return frame
}

// echoes checks the fields that a reply repeats, and those that it leaves empty.
func echoes(req, rep []byte) error {
	for _, f := range []struct {
		name     string
		at, size int
		zero     bool
	}{
		{"workload", 8, 4, false}, {"request", 16, 8, false}, {"method", 36, 4, false},
		{"deadline", 40, 4, true}, {"client", 44, 4, false}, {"sequence", 48, 4, false}, {"tag", 56, 8, true},
	} {
		want := make([]byte, f.size)
		if f.name == "tag" && rep[4]&byte(api.FlagTag) != 0 {
			continue
		}
		if !f.zero {
			copy(want, req[f.at:])
		}
		if got := rep[f.at : f.at+f.size]; string(got) != string(want) {
			return fmt.Errorf("reply has %s %x, want %x", f.name, got, want)
		}
	}
	if grant := binary.BigEndian.Uint32(rep[52:]); grant != 0 && rep[3] != byte(api.TypeAck) {
		return fmt.Errorf("reply that acknowledges nothing grants %d packets", grant)
	}
	return checkFlags(req, rep)
}

// checkFlags allows done, in a response to a whole message of several packets, and what the request says of its tag.
func checkFlags(req, rep []byte) error {
	const tag = byte(api.FlagTag | api.FlagTagPayload | api.FlagOddKey)
	if rep[4]&byte(api.FlagTag) != 0 && rep[4]&tag == req[4]&tag {
		rep = bytes.Clone(rep)
		rep[4] &^= tag
	}
	whole := rep[3] == byte(api.TypeResponse) && req[3] == byte(api.TypeRequest) && binary.BigEndian.Uint32(req[28:]) != 1
	if rep[4] != 0 && (!whole || rep[4] != byte(api.FlagDone)) {
		return fmt.Errorf("reply has flags %#x", rep[4])
	}
	return nil
}

// parts are a frame's layers.
type parts struct {
	packet gopacket.Packet
	eth    *layers.Ethernet
	vlan   string
	net    gopacket.NetworkLayer
	udp    *layers.UDP
}

func split(frame []byte) (p parts, err error) {
	p.packet = gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	p.eth, _ = p.packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	p.udp, _ = p.packet.Layer(layers.LayerTypeUDP).(*layers.UDP)
	p.net = p.packet.NetworkLayer()
	if p.eth == nil || p.net == nil || p.udp == nil {
		return p, fmt.Errorf("not Ethernet, IP and UDP: %v", p.packet)
	}
	for _, l := range p.packet.Layers() {
		if tag, ok := l.(*layers.Dot1Q); ok {
			p.vlan += fmt.Sprintf("/%d.%d", tag.VLANIdentifier, tag.Priority)
		}
	}
	return p, nil
}

// check verifies lengths and checksums of a frame of n bytes.
func (p *parts) check(n int) error {
	if bad := p.packet.ErrorLayer(); bad != nil {
		return bad.Error()
	}
	if err := p.udp.SetNetworkLayerForChecksum(p.net); err != nil {
		return err
	}
	err, wrong := p.packet.VerifyChecksums()
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("wrong checksums: %v", wrong)
	}
	headers := len(p.packet.Data()) - len(p.net.LayerPayload())
	length := len(p.udp.Contents) + len(p.udp.Payload)
	switch ip := p.net.(type) {
	case *layers.IPv4:
		if int(ip.Length) != int(ip.IHL)*4+length {
			return fmt.Errorf("IPv4 length %d for a datagram of %d", ip.Length, length)
		}
	case *layers.IPv6:
		if int(ip.Length) != length {
			return fmt.Errorf("IPv6 length %d for a datagram of %d", ip.Length, length)
		}
		if p.udp.Checksum == 0 {
			return fmt.Errorf("no UDP checksum over IPv6")
		}
	}
	if int(p.udp.Length) != length || n != headers+length {
		return fmt.Errorf("frame of %d bytes, headers %d, UDP length %d, datagram of %d", n, headers, p.udp.Length, length)
	}
	return nil
}

func (p *parts) route() string {
	return p.way(p.eth.SrcMAC, p.eth.DstMAC, p.net.NetworkFlow(), p.udp.TransportFlow())
}

func (p *parts) backRoute() string {
	return p.way(p.eth.DstMAC, p.eth.SrcMAC, p.net.NetworkFlow().Reverse(), p.udp.TransportFlow().Reverse())
}

func (p *parts) way(from, to net.HardwareAddr, network, transport gopacket.Flow) string {
	return fmt.Sprintf("%s>%s%s %s %s %s", from, to, p.vlan, network, transport, p.trafficClass())
}

func (p *parts) trafficClass() string {
	if ip, ok := p.net.(*layers.IPv6); ok {
		return fmt.Sprintf("%#x %#x", ip.TrafficClass, ip.FlowLabel)
	}
	return fmt.Sprintf("%#x", p.net.(*layers.IPv4).TOS)
}

// Check compares a reply with what the case wants.
func (w *Want) Check(h *api.Header, payload []byte) error {
	if h.Type != w.Type || h.Code != w.Code || h.Index != w.Index || h.Count != or(w.Count, 1) {
		return fmt.Errorf("got type %d code %d packet %d of %d, want %d %d %d of %d",
			h.Type, h.Code, h.Index, h.Count, w.Type, w.Code, w.Index, or(w.Count, 1))
	}
	want := w.Payload
	if w.Hex != "" {
		b, err := hex.DecodeString(w.Hex)
		if err != nil {
			return err
		}
		want = string(b)
	}
	if w.PayloadLen != nil && *w.PayloadLen != len(payload) || w.PayloadLen == nil && want != string(payload) {
		return fmt.Errorf("got payload %q, want %q", payload, want)
	}
	if m := or(w.MessageLen, uint32(len(payload))); h.MessageLen != m {
		return fmt.Errorf("got message length %d, want %d", h.MessageLen, m)
	}
	return nil
}

// Bitmap is an acknowledgement's payload.
func Bitmap(payload []byte) uint64 { return binary.BigEndian.Uint64(payload) }
