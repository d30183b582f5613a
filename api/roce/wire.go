// Package roce has the numbers of RoCEv2, RDMA over UDP, and the types of their kinds.
package roce

//go:generate go run ../genheader -constants ROCE -o ../../bpf/roce_wire.h

// Numbers of RoCEv2: InfiniBand Architecture Specification, volume 1, chapter 9 (transport) and annex A17 (RoCEv2). This file is
// their single source: bpf/roce_wire.h is generated from it by api/genheader.
const (
	Port     = 4791 // UDP, of every packet's destination
	BTHLen   = 12
	RETHLen  = 16
	AETHLen  = 4
	ImmLen   = 4
	ICRCLen  = 4
	MinMTU   = 256
	MaxMTU   = 4096
	PKey     = 0xffff     // of the default partition, for its full members; the upper bit says that
	NumMask  = 0xffffff   // of packet sequence numbers, queue pair numbers and message sequence numbers
	NumHalf  = 0x800000   // differences of PSNs from here on are of packets that were there before
	CRCSeed  = 0xdebb20e3 // the state of the CRC behind the eight bytes of ones that stand for InfiniBand's own routing header
	CRCSlice = 16         // tables of the NIC program's CRC, and bytes that it takes at a time
)

// Service is a transport service: the upper three bits of an opcode.
type Service uint8

// The services with a responder of their own.
const (
	ServiceRC Service = 0x00 // reliable connection
	ServiceUC Service = 0x20 // unreliable connection
)

// Op is an operation: the lower five bits of an opcode.
type Op uint8

// The operations of a requester, and the acknowledgement.
const (
	OpSendFirst    Op = 0x00
	OpSendMiddle   Op = 0x01
	OpSendLast     Op = 0x02
	OpSendLastImm  Op = 0x03
	OpSendOnly     Op = 0x04
	OpSendOnlyImm  Op = 0x05
	OpWriteFirst   Op = 0x06
	OpWriteMiddle  Op = 0x07
	OpWriteLast    Op = 0x08
	OpWriteLastImm Op = 0x09
	OpWriteOnly    Op = 0x0a
	OpWriteOnlyImm Op = 0x0b
	OpReadRequest  Op = 0x0c
	OpAck          Op = 0x11
)

// Syndrome is the first byte of an AETH.
type Syndrome uint8

// The syndromes: an acknowledgement that tells of no credits, and the negative ones.
const (
	SyndromeAck            Syndrome = 0x1f
	SyndromeRNR            Syndrome = 0x20 // receiver not ready; the low five bits say how long to wait
	SyndromeSequence       Syndrome = 0x60 // packets are missing; the PSN is the first that is
	SyndromeInvalidRequest Syndrome = 0x61
	SyndromeAccess         Syndrome = 0x62 // remote access error
	SyndromeOperation      Syndrome = 0x63 // remote operational error
)
