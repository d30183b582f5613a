// Package roce speaks RoCEv2, RDMA over UDP, in user space: the packets, and a requester that writes into a λ-NIC's memory from
// hosts that have no RDMA hardware.
//
// A [Packet] is a transport packet by itself. A [QueuePair] sends messages as many packets, and sends again what was lost.
package roce

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api/roce"
)

// ErrMalformed says that bytes are not a whole RoCEv2 packet; the wrapped text says what was wrong.
var ErrMalformed = errors.New("malformed RoCEv2 packet")

var be = binary.BigEndian

// Packet is one transport packet. Its operation decides which of its optional headers are on the wire.
type Packet struct {
	Service roce.Service
	Op      roce.Op
	PKey    uint16 // 0: that of the default partition
	DestQP  uint32 // 24 bits, as PSN and MSN are
	AckReq  bool
	PSN     uint32

	VA     uint64 // RETH: where to write
	RKey   uint32
	DMALen uint32 // of the whole message

	Imm uint32 // immediate data

	Syndrome roce.Syndrome // AETH
	MSN      uint32

	Payload []byte
}

// Append appends the packet as a UDP datagram's payload, without its ICRC: the headers, the payload, and zeros that pad it to a
// multiple of four bytes.
func (p *Packet) Append(b []byte) []byte {
	pad := -len(p.Payload) & 3
	key := p.PKey
	if key == 0 {
		key = roce.PKey
	}
	b = append(b, byte(p.Service)|byte(p.Op), byte(pad)<<4)
	b = be.AppendUint16(b, key)
	b = be.AppendUint32(b, p.DestQP&roce.NumMask)
	psn := p.PSN & roce.NumMask
	if p.AckReq {
		psn |= 1 << 31
	}
	b = be.AppendUint32(b, psn)
	if p.Op.HasRETH() {
		b = be.AppendUint64(b, p.VA)
		b = be.AppendUint32(b, p.RKey)
		b = be.AppendUint32(b, p.DMALen)
	}
	if p.Op == roce.OpAck {
		b = be.AppendUint32(b, uint32(p.Syndrome)<<24|p.MSN&roce.NumMask)
	}
	if p.Op.HasImm() {
		b = be.AppendUint32(b, p.Imm)
	}
	b = append(b, p.Payload...)
	return append(b, make([]byte, pad)...)
}

// Parse reads a UDP datagram's payload, whose last four bytes are the ICRC, which it leaves to [Path.Check]. Payload is part
// of b. The error is ErrMalformed, wrapped.
func Parse(b []byte) (p Packet, err error) {
	if len(b) < roce.BTHLen+roce.ICRCLen {
		return p, fmt.Errorf("%w: %d bytes, shorter than its headers", ErrMalformed, len(b))
	}
	p = Packet{
		Service: roce.Service(b[0] &^ 31), Op: roce.Op(b[0] & 31), PKey: be.Uint16(b[2:]), DestQP: be.Uint32(b[4:]) & roce.NumMask,
		AckReq: b[8]>>7 == 1, PSN: be.Uint32(b[8:]) & roce.NumMask,
	}
	if version := b[1] & 15; version != 0 {
		return p, fmt.Errorf("%w: transport header version %d", ErrMalformed, version)
	}
	pad, head := int(b[1]>>4&3), p.Op.HeaderLen()
	n := len(b) - head - pad - roce.ICRCLen
	if n < 0 || (n+pad)%4 != 0 {
		return p, fmt.Errorf("%w: %d bytes with operation %#x and a padding of %d", ErrMalformed, len(b), uint8(p.Op), pad)
	}
	at := b[roce.BTHLen:]
	if p.Op.HasRETH() {
		p.VA, p.RKey, p.DMALen = be.Uint64(at), be.Uint32(at[8:]), be.Uint32(at[12:])
		at = at[roce.RETHLen:]
	}
	if p.Op == roce.OpAck {
		p.Syndrome, p.MSN = roce.Syndrome(at[0]), be.Uint32(at)&roce.NumMask
		at = at[roce.AETHLen:]
	}
	if p.Op.HasImm() {
		p.Imm = be.Uint32(at)
		at = at[roce.ImmLen:]
	}
	p.Payload = at[:n]
	return p, nil
}
