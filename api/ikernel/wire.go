// Package ikernel has the messages by which an application on this machine has ikernels serve its sockets.
package ikernel

//go:generate go run ../genheader -constants IKERNEL -o ../../client/c/ikernel_wire.h

// An application connects to the daemon's socket of type SOCK_SEQPACKET. Each request is one packet, and so is its reply. All numbers are of 32 bits,
// registers of 64, in the machine's byte order.
//
// A request has its operation and the number of the ikernel, and then what the operation takes. A reply has an errno, 0 for success, and the number of the
// ikernel, and then what the operation gives, or where it failed a text that says why. The ikernels go with the connection.
const (
	HeaderLen      = 8
	MaxPacket      = 4096
	MaxName        = 32  // bytes of an ikernel's or a register's name
	MaxRegisters   = 16  // of an ikernel
	RegisterLen    = 36  // a register in the reply to create: whether it is signed, and its name with zeros behind
	TransactionLen = 272 // expect and write, one bit for each register; the values that are expected; the values to write
)

// Operation is what a request asks for.
type Operation uint32

// The operations.
const (
	OperationCreate   Operation = 1 // takes the ikernel's name; gives its number and its registers
	OperationDestroy  Operation = 2
	OperationAttach   Operation = 3 // takes a socket (SCM_RIGHTS)
	OperationDetach   Operation = 4 // takes a socket
	OperationTransact Operation = 5 // takes a transaction, and gives all registers as they were before; fails with EAGAIN if another value was expected
)
