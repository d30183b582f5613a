package api

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Constants of λ-RPC version 1 (docs/protocol.md). This file is their single source: what other languages know of them is
// generated from it by api/genheader.
const (
	RPCPort       = 4370
	RPCMagic      = 0x03bb // U+03BB, λ
	RPCVersion    = 1
	RPCHeaderLen  = 64
	RPCMaxPayload = 1408     // bytes of payload in a 1,500-byte IPv4 packet
	RPCFragment   = 1376     // bytes per packet of a multi-packet request: a multiple of 16 that fits IPv4 and IPv6
	RPCMaxMessage = 90 << 20 // bytes per message: 65,535 packets of RPCFragment, rounded down
	RPCAskAfter   = 3        // resends of a packet that nobody answers, after which a client asks where the function is
)

// Type is the kind of a λ-RPC packet.
type Type uint8

// The packet types.
const (
	TypeRequest  Type = 1
	TypeResponse Type = 2
	TypeAck      Type = 3
	TypePull     Type = 4
	TypeError    Type = 5
)

// Flag bits of a packet.
type Flag uint8

// The flags.
const (
	FlagTag        Flag = 1
	FlagTagPayload Flag = 2
	FlagAckWanted  Flag = 4
	FlagDone       Flag = 8
	FlagResend     Flag = 16
	FlagOnce       Flag = 32
	FlagOddKey     Flag = 64  // the tag is by the namespace's key with an odd number
	FlagRegion     Flag = 128 // the payload names a region that the message was written to by RDMA
)

// Code is the reason in an error packet.
type Code uint8

// The error codes.
const (
	CodeUnknownWorkload Code = 1
	CodeOverQuota       Code = 2
	CodeBadTag          Code = 3
	CodeMalformed       Code = 4
	CodeLambdaFault     Code = 5
	CodeTooLarge        Code = 6
	CodeBusy            Code = 7
	CodeTimeout         Code = 8
	CodeUnreachable     Code = 9
	CodeStale           Code = 10
	CodeDeadline        Code = 11
)

// Fault is why a lambda failed: the message length of an error packet with CodeLambdaFault. An older server does not say, which is 0.
type Fault uint8

// The faults. What a lambda's program returns for one is LN_VERDICT_OF(fault) of bpf/layout.h.
const (
	FaultOwn       Fault = 1 // RETURN_FAULT, abort(), or an answer that there is not
	FaultTime      Fault = 2 // limits.time ran out
	FaultBounds    Fault = 3 // an access outside of the lambda's memory
	FaultRecursion Fault = 4 // deeper than the memory for it
	FaultMemory    Fault = 5 // more memory than there is was asked for
	FaultDivision  Fault = 6 // by zero, in a process
	FaultCrash     Fault = 7 // the process died
)

// Status is a lambda's own verdict on a request that it answered. Those from 5 to 99 mean what the lambda's author wants.
type Status uint8

// The statuses.
const (
	StatusOK           Status = 0
	StatusNotFound     Status = 1
	StatusBadRequest   Status = 2
	StatusFailed       Status = 3
	StatusServiceError Status = 4
	StatusHTTP400      Status = 100 // by HTTP 400, the next one 401, and so on to 255, which is 555
)

// Header is the fixed header of every λ-RPC packet, in host order. The order and widths of its fields are the wire layout.
type Header struct {
	Magic      uint16
	Version    uint8
	Type       Type
	Flags      Flag
	Code       uint8
	Length     uint16
	Workload   uint32
	Revision   uint32
	Request    uint64
	Index      uint32
	Count      uint32
	MessageLen uint32
	Method     uint32
	DeadlineUS uint32
	Client     uint32
	Sequence   uint32
	Grant      uint32
	Tag        uint64
}

// ErrNotRPC says that bytes are not a λ-RPC packet of this version at all.
var ErrNotRPC = errors.New("not a λ-RPC packet")

// ErrMalformed says that a λ-RPC packet contradicts itself.
var ErrMalformed = errors.New("malformed λ-RPC packet")

// Append appends the 64 wire bytes of h to b. Magic and Version are always those of this package.
func (h *Header) Append(b []byte) []byte {
	be := binary.BigEndian
	b = be.AppendUint16(b, RPCMagic)
	b = append(b, RPCVersion, byte(h.Type), byte(h.Flags), h.Code)
	b = be.AppendUint16(b, h.Length)
	b = be.AppendUint32(b, h.Workload)
	b = be.AppendUint32(b, h.Revision)
	b = be.AppendUint64(b, h.Request)
	for _, v := range [...]uint32{h.Index, h.Count, h.MessageLen, h.Method, h.DeadlineUS, h.Client, h.Sequence, h.Grant} {
		b = be.AppendUint32(b, v)
	}
	return be.AppendUint64(b, h.Tag)
}

// ParsePacket splits a datagram into header and message bytes, leaving the padding out. The error is ErrNotRPC or
// ErrMalformed, wrapped with what was wrong.
func ParsePacket(b []byte) (h Header, payload []byte, err error) {
	if len(b) < RPCHeaderLen {
		return h, nil, fmt.Errorf("%w: %d bytes, shorter than a header", ErrNotRPC, len(b))
	}
	be := binary.BigEndian
	h = Header{
		Magic: be.Uint16(b), Version: b[2], Type: Type(b[3]), Flags: Flag(b[4]), Code: b[5], Length: be.Uint16(b[6:]),
		Workload: be.Uint32(b[8:]), Revision: be.Uint32(b[12:]), Request: be.Uint64(b[16:]),
		Index: be.Uint32(b[24:]), Count: be.Uint32(b[28:]), MessageLen: be.Uint32(b[32:]), Method: be.Uint32(b[36:]),
		DeadlineUS: be.Uint32(b[40:]), Client: be.Uint32(b[44:]), Sequence: be.Uint32(b[48:]), Grant: be.Uint32(b[52:]),
		Tag: be.Uint64(b[56:]),
	}
	if h.Magic != RPCMagic || h.Version != RPCVersion {
		return h, nil, fmt.Errorf("%w: magic %#04x version %d", ErrNotRPC, h.Magic, h.Version)
	}
	if h.Type < TypeRequest || h.Type > TypeError {
		return h, nil, fmt.Errorf("%w: type %d", ErrMalformed, h.Type)
	}
	if int(h.Length) > len(b)-RPCHeaderLen {
		return h, nil, fmt.Errorf("%w: length %d in a datagram with %d bytes of payload", ErrMalformed, h.Length, len(b)-RPCHeaderLen)
	}
	return h, b[RPCHeaderLen : RPCHeaderLen+int(h.Length)], nil
}

// Fragments returns how many packets a message of n bytes takes at size bytes each.
func Fragments(n, size int) int {
	return max(1, (n+size-1)/size)
}
