package roce

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"

	"github.com/lambdanic/lambdanic/api/roce"
)

// Path is what the invariant CRC covers of the IP and UDP headers: all that no router changes.
type Path struct {
	From, To netip.AddrPort // both of one family
	ID       uint16         // IPv4's identification
	MayCut   bool           // IPv4: without the flag "don't fragment"
}

// ICRC is the invariant CRC of a datagram's payload without the ICRC: Ethernet's CRC-32 over the headers from IP on, with
// ones in place of what routers change, and eight bytes of ones before them (InfiniBand specification, annex A17.3.3).
func (p Path) ICRC(payload []byte) uint32 {
	head := make([]byte, 0, 8+40+8+roce.BTHLen)
	head = append(head, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	udp := 8 + len(payload) + roce.ICRCLen
	if p.From.Addr().Is4() {
		fragment := uint16(0x4000)
		if p.MayCut {
			fragment = 0
		}
		head = append(head, 0x45, 0xff)
		head = be.AppendUint16(head, uint16(20+udp))
		head = be.AppendUint16(head, p.ID)
		head = be.AppendUint16(head, fragment)
		head = append(head, 0xff, 17, 0xff, 0xff)
	} else {
		head = append(head, 0x6f, 0xff, 0xff, 0xff)
		head = be.AppendUint16(head, uint16(udp))
		head = append(head, 17, 0xff)
	}
	head = append(head, p.From.Addr().AsSlice()...)
	head = append(head, p.To.Addr().AsSlice()...)
	head = be.AppendUint16(head, p.From.Port())
	head = be.AppendUint16(head, p.To.Port())
	head = be.AppendUint16(head, uint16(udp))
	head = append(head, 0xff, 0xff)
	bth := len(head)
	head = append(head, payload[:roce.BTHLen]...)
	head[bth+4] = 0xff // congestion notification
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, payload[roce.BTHLen:])
}

// Seal appends the ICRC to what [Packet.Append] made.
func (p Path) Seal(payload []byte) []byte {
	return binary.LittleEndian.AppendUint32(payload, p.ICRC(payload))
}

// Check says whether a datagram's payload ends with the right ICRC.
func (p Path) Check(payload []byte) bool {
	n := len(payload) - roce.ICRCLen
	return n >= roce.BTHLen && binary.LittleEndian.Uint32(payload[n:]) == p.ICRC(payload[:n])
}
