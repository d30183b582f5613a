package othello

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Kind says what a message is about.
type Kind uint8

// The kinds. A map message has a position searched, a reduce message has the value of one.
const (
	Map    Kind = 1
	Reduce Kind = 2
)

// MessageSize is the length of every message, in bytes.
const MessageSize = 40

// A Message is one of a distributed search. Its form on the wire has the fields in this order, big-endian and without gaps but where it says
// so; byte 0 is messageMagic, byte 1 messageVersion. Fields that the kind has no use for are 0. One form for both kinds means that a program
// on a NIC finds everything at a fixed place and may answer a map message in the packet that it came in.
//
//	 0  magic        1  version
//	 2  kind         3  child        4  depth   5  most   6  best   7  zero
//	 8  search
//	12  host (2)    14  zero (2)
//	16  node
//	20  value
//	24  own, or of a reduce message nodes
//	32  opp
type Message struct {
	Kind Kind
	// Child is which of the waiting node's children this is about, from 0.
	Child uint8
	// Depth is how many moves the position is from the root, and Most how many the leaves are. Map only.
	Depth, Most uint8
	// Best is the move that the value comes from: a square, Pass, or None for a leaf. Reduce only.
	Best uint8
	// Search numbers the searches of whoever asks, so that a late answer is not taken for another's.
	Search uint32
	// Host and Node are who waits for the answer.
	Host uint16
	Node uint32
	// Value is the position's, for the side to move there. Reduce only.
	Value Value
	// Nodes is how many positions were looked at. Reduce only.
	Nodes uint64
	// Board is the position. Map only.
	Board Board
}

const (
	messageMagic   = 0x6f // o
	messageVersion = 1
)

// ErrMessage is what all errors about a broken message are.
var ErrMessage = errors.New("broken message")

// Append appends the message's form on the wire.
func (m *Message) Append(to []byte) []byte {
	first := m.Board.Own
	if m.Kind == Reduce {
		first = m.Nodes
	}
	to = append(to, messageMagic, messageVersion, byte(m.Kind), m.Child, m.Depth, m.Most, m.Best, 0)
	to = binary.BigEndian.AppendUint32(to, m.Search)
	to = binary.BigEndian.AppendUint16(to, m.Host)
	to = binary.BigEndian.AppendUint16(to, 0)
	to = binary.BigEndian.AppendUint32(to, m.Node)
	to = binary.BigEndian.AppendUint32(to, uint32(m.Value))
	to = binary.BigEndian.AppendUint64(to, first)
	return binary.BigEndian.AppendUint64(to, m.Board.Opp)
}

// ParseMessage reads what Append wrote, and nothing else: what it takes, Append writes in the same bytes. Its errors are ErrMessage.
func ParseMessage(b []byte) (m Message, err error) {
	if len(b) != MessageSize {
		return m, fmt.Errorf("%w: %d bytes, not %d", ErrMessage, len(b), MessageSize)
	}
	if b[0] != messageMagic || b[1] != messageVersion {
		return m, fmt.Errorf("%w: it begins with %#x, version %d", ErrMessage, b[0], b[1])
	}
	if b[7] != 0 || b[14] != 0 || b[15] != 0 {
		return m, fmt.Errorf("%w: what has to be 0 is not", ErrMessage)
	}
	m = Message{
		Kind: Kind(b[2]), Child: b[3], Depth: b[4], Most: b[5], Best: b[6],
		Search: binary.BigEndian.Uint32(b[8:]), Host: binary.BigEndian.Uint16(b[12:]), Node: binary.BigEndian.Uint32(b[16:]),
		Value: Value(binary.BigEndian.Uint32(b[20:])), Board: Board{Opp: binary.BigEndian.Uint64(b[32:])},
	}
	first := binary.BigEndian.Uint64(b[24:])
	if m.Kind == Reduce {
		m.Nodes = first
	} else {
		m.Board.Own = first
	}
	return m, m.check()
}

// check says what of a message cannot be.
func (m *Message) check() error {
	if m.Child >= 64 {
		return fmt.Errorf("%w: child %d of at most 64", ErrMessage, m.Child)
	}
	switch m.Kind {
	case Map:
		switch {
		case m.Best != 0 || m.Value != 0 || m.Nodes != 0:
			return fmt.Errorf("%w: a map message with a result", ErrMessage)
		case m.Depth > m.Most || m.Most > MaxDepth:
			return fmt.Errorf("%w: depth %d of %d, which may be %d", ErrMessage, m.Depth, m.Most, MaxDepth)
		case m.Board.Own&m.Board.Opp != 0:
			return fmt.Errorf("%w: two discs on %v", ErrMessage, SquareNames(m.Board.Own&m.Board.Opp))
		}
	case Reduce:
		switch {
		case m.Depth != 0 || m.Most != 0 || m.Board != Board{}:
			return fmt.Errorf("%w: a reduce message with a position", ErrMessage)
		case m.Value < -maxValue || m.Value > maxValue || m.Best > None || m.Nodes == 0:
			return fmt.Errorf("%w: value %d of move %d, from %d positions", ErrMessage, m.Value, m.Best, m.Nodes)
		}
	default:
		return fmt.Errorf("%w: kind %d", ErrMessage, m.Kind)
	}
	return nil
}
