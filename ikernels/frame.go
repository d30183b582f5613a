package ikernels

import (
	"encoding/binary"
	"fmt"
)

// frame makes the frame of a message, which the program completes: number, time and the UDP checksum are 0.
func (a addresses) frame(p path, m *generatorGeneratorMessage) (*generatorGeneratorFrame, error) {
	message, be := m.Bytes[:m.Len], binary.BigEndian
	proto, ipLen := uint16(0x0800), ipv4Len
	if a.peer.Addr().Is6() {
		proto, ipLen = 0x86dd, ipv6Len
	}
	if n := ipLen + udpLen + len(message); n > p.mtu {
		return nil, fmt.Errorf("packets of %d bytes are too long for the way to %s, which takes %d", n, a.peer.Addr(), p.mtu)
	}
	f := &generatorGeneratorFrame{
		Len: uint32(ethernetLen + ipLen + udpLen + len(message)), CheckAt: uint32(ethernetLen + ipLen + 6),
		NumberAt: uint32(generatorGeneratorLimitGENERATOR_NOWHERE), TimeAt: uint32(generatorGeneratorLimitGENERATOR_NOWHERE),
	}
	udp := be.AppendUint16(be.AppendUint16(nil, a.own.Port()), a.peer.Port())
	udp = append(be.AppendUint16(udp, uint16(udpLen+len(message))), 0, 0)
	udp = append(udp, message...)
	for _, field := range []struct{ from, to *uint32 }{{&m.Note.NumberAt, &f.NumberAt}, {&m.Note.TimeAt, &f.TimeAt}} {
		if *field.from != uint32(generatorGeneratorLimitGENERATOR_NOWHERE) {
			*field.to = uint32(ethernetLen+ipLen+udpLen) + *field.from
			clear(udp[udpLen+*field.from:][:8])
		}
	}
	pseudo := append(a.own.Addr().AsSlice(), a.peer.Addr().AsSlice()...)
	pseudo = be.AppendUint16(append(pseudo, 0, 17), uint16(len(udp)))
	f.Sum = uint32(sum(sum(0, pseudo), udp))
	all := append(append([]byte{}, p.next...), p.own...)
	all = append(a.appendIP(be.AppendUint16(all, proto), len(udp)), udp...)
	copy(f.Bytes[:], all)
	return f, nil
}

// appendIP appends the header of an IP packet with that many bytes behind it.
func (a addresses) appendIP(b []byte, n int) []byte {
	be, own, peer := binary.BigEndian, a.own.Addr(), a.peer.Addr()
	if peer.Is6() {
		b = be.AppendUint16(append(b, 0x60, 0, 0, 0), uint16(n))
		return append(append(append(b, 17, 64), own.AsSlice()...), peer.AsSlice()...)
	}
	at := len(b)
	b = be.AppendUint16(append(b, 0x45, 0), uint16(ipv4Len+n))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0) // no ID, don't fragment (RFC 6864)
	b = append(append(b, own.AsSlice()...), peer.AsSlice()...)
	binary.NativeEndian.PutUint16(b[at+10:], ^sum(0, b[at:]))
	return b
}

// sum is the Internet checksum's sum (RFC 1071) of words in the machine's order. Only the last part of a packet has an odd number of bytes.
func sum(start uint16, b []byte) uint16 {
	s := uint32(start)
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.NativeEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(binary.NativeEndian.Uint16([]byte{b[0], 0}))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
