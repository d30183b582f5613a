package gen

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/link"
)

const (
	ethLen    = 14
	ipLen     = 20
	udpLen    = 8
	payloadAt = ethLen + ipLen + udpLen
)

// Request is a λ-RPC packet of a load. The generator chooses request IDs and client ports.
type Request struct {
	Header  api.Header // Type, Count, Length and MessageLen are filled in where they are zero
	Payload []byte
	Port    uint16 // 0: the load's
}

// packet returns the λ-RPC header and payload, padded to size bytes of payload.
func (r Request) packet(size int) []byte {
	h := r.Header
	if h.Type == 0 {
		h.Type = api.TypeRequest
	}
	h.Count = max(h.Count, 1)
	h.Length = uint16(len(r.Payload))
	if h.MessageLen == 0 {
		h.MessageLen = uint32(len(r.Payload))
	}
	h.Request = 0
	b := append(h.Append(nil), r.Payload...)
	return append(b, make([]byte, size-len(r.Payload))...)
}

// A Datagram is a packet of any protocol by UDP. The generator chooses client ports.
type Datagram struct {
	Port    uint16 // to which it goes
	Payload []byte
}

// to sends packets to a port.
func to(port uint16, packets [][]byte) (all []Datagram) {
	for _, packet := range packets {
		all = append(all, Datagram{port, packet})
	}
	return all
}

// frame returns the Ethernet frame around a datagram, from one end of the pair to the other. The UDP source port is 0 and
// the checksum field holds the sum over all else, not yet inverted, in network order.
func frame(p *link.Pair, d Datagram) []byte {
	be, packet := binary.BigEndian, d.Payload
	b := append(append([]byte{}, p.Peer.MAC...), p.Host.MAC...)
	b = be.AppendUint16(b, 0x0800)
	ip := append([]byte{0x45, 0}, make([]byte, ipLen-2)...)
	be.PutUint16(ip[2:], uint16(ipLen+udpLen+len(packet)))
	ip[8], ip[9] = 64, 17
	copy(ip[12:], p.Host.Addr.AsSlice())
	copy(ip[16:], p.Peer.Addr.AsSlice())
	be.PutUint16(ip[10:], ^sum(0, ip))
	udp := be.AppendUint16([]byte{0, 0}, d.Port)
	udp = be.AppendUint16(udp, uint16(udpLen+len(packet)))
	pseudo := be.AppendUint16([]byte{0, 17}, uint16(udpLen+len(packet)))
	check := sum(sum(sum(sum(0, ip[12:20]), pseudo), udp), packet)
	udp = be.AppendUint16(udp, check)
	return append(append(append(b, ip...), udp...), packet...)
}

// sum is the Internet checksum's sum (RFC 1071) of b, whose last byte stands alone only at the end of a packet.
func sum(start uint16, b []byte) uint16 {
	s := uint32(start)
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// datagrams returns the requests to a port. All have the length of the longest: λ-RPC pads.
func datagrams(requests []Request, port uint16, room int) (all []Datagram, err error) {
	for _, r := range requests {
		room = max(room, len(r.Payload))
	}
	if room > api.RPCMaxPayload {
		return nil, fmt.Errorf("a request of %d bytes exceeds one packet's %d: an open load is made of single packets", room, api.RPCMaxPayload)
	}
	for _, r := range requests {
		all = append(all, Datagram{cmp.Or(r.Port, port), r.packet(room)})
	}
	return all, nil
}

// templates lays frames out at equal distances, at which there is room for longer ones.
func templates(frames [][]byte, room int) (b []byte, longest, stride int, err error) {
	if len(frames) == 0 {
		return nil, 0, 0, errors.New("the load has no requests: give at least one")
	}
	longest = room
	for _, f := range frames {
		longest = max(longest, len(f))
	}
	if longest > int(bpfLnGenLimitLN_GEN_FRAME) {
		return nil, 0, 0, fmt.Errorf("a frame of %d bytes exceeds %d: an open load is made of single packets", longest, bpfLnGenLimitLN_GEN_FRAME)
	}
	stride = (longest + 63) &^ 63
	if total := stride * len(frames); total > int(bpfLnGenLimitLN_GEN_TEMPLATES) {
		return nil, 0, 0, fmt.Errorf("%d requests of up to %d bytes exceed the generator's %d: give fewer", len(frames), longest, bpfLnGenLimitLN_GEN_TEMPLATES)
	}
	b = make([]byte, stride*len(frames))
	for i, f := range frames {
		copy(b[i*stride:], f)
	}
	return b, longest, stride, nil
}
