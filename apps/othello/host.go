package othello

import (
	"fmt"
	"math/bits"
)

// A Transport carries messages to hosts, which are numbered from 0; the number behind the last host's is that of whoever asks. It takes a
// message at once, however many wait already: hosts that waited for each other's queues could wait forever. It may deliver
// messages in any order, but each once; a repeated one is refused or costs work, and does not change a result.
type Transport interface {
	Send(to int, m Message)
}

// A Host is one of those that share a search. It is a machine that messages drive: who has it delivers them one at a time, in any order.
//
// For a map message it finds all moves of the position and sends each child to another host by a map message of its own, unless the position
// is a leaf: then it sends its value to who waits, by a reduce message. A node waits for the values of all its children, takes the best, and
// sends that up.
type Host struct {
	self, hosts int
	transport   Transport
	nodes       map[uint32]*waiting
	next        uint32
}

// waiting is a node that waits for its children's values.
type waiting struct {
	Message        // that asked for it
	moves   uint64 // of its board; the i-th of them leads to child i
	open    uint64 // children that have not answered
	value   Value
	best    int
	visited uint64
}

// NewHost makes one of that many hosts.
func NewHost(self, hosts int, t Transport) *Host {
	return &Host{self: self, hosts: hosts, transport: t, nodes: make(map[uint32]*waiting)}
}

// Waiting is how many nodes wait for values.
func (h *Host) Waiting() int { return len(h.nodes) }

// Deliver serves a message. It refuses one that nobody waits for, or that cannot be, by an error that wraps [ErrMessage].
func (h *Host) Deliver(m Message) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.Kind == Map {
		if int(m.Host) > h.hosts {
			return fmt.Errorf("%w: host %d would wait, of %d", ErrMessage, m.Host, h.hosts)
		}
		h.search(m)
		return nil
	}
	return h.reduce(m)
}

func (h *Host) search(m Message) {
	moves := m.Board.Moves()
	if m.Depth == m.Most || moves == 0 && m.Board.Pass().Moves() == 0 {
		h.answer(m, evaluate(m.Board, moves), None, 1)
		return
	}
	id := h.next
	h.next++
	h.nodes[id] = &waiting{
		Message: m, moves: moves, open: 1<<max(bits.OnesCount64(moves), 1) - 1, value: -maxValue - 1, best: None, visited: 1,
	}
	child := uint8(0)
	for _, b := range children(m.Board, moves) {
		h.transport.Send(h.place(b), Message{
			Kind: Map, Child: child, Depth: m.Depth + 1, Most: m.Most, Search: m.Search, Host: uint16(h.self), Node: id, Board: b,
		})
		child++
	}
}

// place is which host searches a board: another one where there is one. It is chosen by a hash, which spreads them evenly and needs no state.
func (h *Host) place(b Board) int {
	if h.hosts == 1 {
		return h.self
	}
	others, _ := bits.Mul64(b.hash(), uint64(h.hosts-1))
	return (h.self + 1 + int(others)) % h.hosts
}

func (h *Host) reduce(m Message) error {
	n, ok := h.nodes[m.Node]
	if !ok || int(m.Host) != h.self || n.Search != m.Search || n.open>>m.Child&1 == 0 {
		return fmt.Errorf("%w: host %d waits for no child %d of node %d", ErrMessage, h.self, m.Child, m.Node)
	}
	n.open &^= 1 << m.Child
	n.visited += m.Nodes
	// Of equal moves, the first: values come in any order.
	if move := n.move(m.Child); -m.Value > n.value || -m.Value == n.value && move < n.best {
		n.value, n.best = -m.Value, move
	}
	if n.open == 0 {
		delete(h.nodes, m.Node)
		h.answer(n.Message, n.value, n.best, n.visited)
	}
	return nil
}

// move is which one leads to a child.
func (n *waiting) move(child uint8) int {
	moves := n.moves
	for range child {
		moves &= moves - 1
	}
	return bits.TrailingZeros64(moves) // 64 where there is none, which is Pass
}

// answer sends the value of what m asks for.
func (h *Host) answer(m Message, v Value, best int, nodes uint64) {
	h.transport.Send(int(m.Host), Message{
		Kind: Reduce, Child: m.Child, Best: uint8(best), Search: m.Search, Host: m.Host, Node: m.Node, Value: v, Nodes: nodes,
	})
}
