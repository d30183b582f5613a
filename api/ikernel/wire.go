// Package ikernel has the messages by which an application on this machine has ikernels serve its sockets.
package ikernel

//go:generate go run ../genheader -constants IKERNEL -o ../../client/c/ikernel_wire.h

// An application connects to the daemon's socket of type SOCK_SEQPACKET. Each request is one packet, and so is its reply. All numbers are of 32 bits,
// registers of 64, in the machine's byte order.
//
// A request has its operation and the number of the ikernel, and then what the operation takes. A reply has an errno, 0 for success, and the number of the
// ikernel, and then what the operation gives, or where it failed a text that says why: EIO is the ikernel's fault. The ikernels go with the connection.
const (
	HeaderLen      = 8
	MaxPacket      = 4096
	MaxName        = 32  // bytes of an ikernel's or a register's name
	MaxNamespace   = 63  // bytes of a namespace's name
	MaxRegisters   = 16  // of an ikernel
	RegisterLen    = 36  // a register in the reply to create: whether it is signed, and its name with zeros behind
	TransactionLen = 272 // expect and write, one bit for each register; the values that are expected; the values to write
	MaxRings       = 128 // of an ikernel
	RingsLen       = 12  // how many rings, the bytes of each, and how they are read (RingsPolled)
	RingCountsLen  = 16  // of a ring: how many messages were posted, and how many it refused, of 64 bits each
	RingHeadLen    = 48  // before each message in a ring
)

// RingsPolled says that the application looks for messages by itself: the kernel does not wake it.
const RingsPolled = 1

// A ring is a map of type BPF_MAP_TYPE_RINGBUF. Its reader maps it as libbpf does (ring_buffer__add): one page that it may write, which begins with the
// position up to which it has read; and behind it, to read alone, one with the position up to which there are messages, and the bytes of the ring, twice, so
// that each message is in one piece. A message begins with its length (BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT) in BPF_RINGBUF_HDR_SZ bytes. Then
// comes its head: when it was posted, in ns of CLOCK_MONOTONIC, of 64 bits; the address of the datagram's sender and that at which it came, of 16 bytes,
// with zeros behind those of IPv4; their two ports as in packets; 1 for IPv6 or 0 for IPv4, in one byte, and three bytes more. The descriptor is ready to read
// when there are messages (poll, epoll), unless the application polls.
//
// Where notes are written is a map of type BPF_MAP_TYPE_USER_RINGBUF, which its writer maps as libbpf does (user_ring_buffer__new): one page to read alone, with
// the position up to which the ikernel has got notes; and behind it, to write, one with the position up to which there are notes, and the bytes, twice. A note
// begins with its length, in BPF_RINGBUF_HDR_SZ bytes, too.

// Operation is what a request asks for.
type Operation uint32

// The operations.
const (
	// OperationCreate takes the ikernel's name, and behind a zero byte the namespace that it is of, if it is of one; gives its number and its registers.
	OperationCreate   Operation = 1
	OperationDestroy  Operation = 2
	OperationAttach   Operation = 3 // takes a socket (SCM_RIGHTS)
	OperationDetach   Operation = 4 // takes a socket
	OperationTransact Operation = 5 // takes a transaction, and gives all registers as they were before; fails with EAGAIN if another value was expected
	// OperationRings takes what rings the ikernel gets (RingsLen), once, and gives them (SCM_RIGHTS).
	OperationRings      Operation = 6
	OperationRingCounts Operation = 7 // gives the counts of each ring (RingCountsLen)
	OperationNotes      Operation = 8 // gives where the application writes notes (SCM_RIGHTS), and its bytes
	OperationDeliver    Operation = 9 // has the ikernel get the notes, and gives how many
	// OperationFault gives a socket (SCM_RIGHTS) of type SOCK_SEQPACKET. When the ikernel faults, one packet comes by it: the fault's code, of 32 bits, and a
	// text. Who reads it by MSG_PEEK leaves it there for others. Without a fault it ends when the ikernel does, or the daemon.
	OperationFault Operation = 10
)
