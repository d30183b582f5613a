package othello

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// MaxHosts is how many hosts a cluster may have.
const MaxHosts = 256

// A Cluster is hosts that search together, each a goroutine, and whoever asks them, who counts as the host behind the last.
type Cluster struct {
	hosts   int
	boxes   []*mailbox // of the hosts, and of who asks
	ask     Transport
	closing func() // what the transport holds
	done    chan struct{}
	running sync.WaitGroup
	refused atomic.Uint64

	mu     sync.Mutex // one search at a time
	search uint32
}

func newCluster(hosts int) (*Cluster, error) {
	if hosts < 1 || hosts > MaxHosts {
		return nil, fmt.Errorf("%d hosts: there have to be 1 to %d", hosts, MaxHosts)
	}
	c := &Cluster{hosts: hosts, done: make(chan struct{}), closing: func() {}}
	for range hosts + 1 {
		c.boxes = append(c.boxes, newMailbox())
	}
	return c, nil
}

// NewLocal makes a cluster whose messages go by queues in memory.
func NewLocal(hosts int) (*Cluster, error) {
	c, err := newCluster(hosts)
	if err != nil {
		return nil, err
	}
	c.run(func(int) Transport { return local(c.boxes) })
	return c, nil
}

// local delivers to mailboxes.
type local []*mailbox

func (l local) Send(to int, m Message) { l[to].put(m) }

// run begins all hosts, each with its transport.
func (c *Cluster) run(transport func(self int) Transport) {
	c.ask = transport(c.hosts)
	for i := range c.hosts {
		h := NewHost(i, c.hosts, transport(i))
		c.running.Go(func() {
			for {
				m, ok := c.boxes[i].take(c.done)
				if !ok {
					return
				}
				if h.Deliver(m) != nil {
					c.refused.Add(1)
				}
			}
		})
	}
}

// Search has the hosts search a board, as [Minimax] does, with the same result. Messages, and memory, are as many as positions at worst. It
// fails if ctx ends; then the hosts go on until the cluster is closed.
func (c *Cluster) Search(ctx context.Context, b Board, depth int) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.search++
	m := Message{Kind: Map, Most: uint8(max(0, min(depth, MaxDepth))), Search: c.search, Host: uint16(c.hosts), Board: b}
	if err := m.check(); err != nil {
		return Result{Best: None}, err
	}
	c.ask.Send(0, m)
	for {
		answer, ok := c.boxes[c.hosts].take(ctx.Done())
		switch {
		case !ok:
			return Result{Best: None}, context.Cause(ctx)
		case answer.Kind == Reduce && answer.Search == c.search:
			return Result{Value: answer.Value, Best: int(answer.Best), Nodes: answer.Nodes}, nil
		}
		c.refused.Add(1)
	}
}

// Refused is how many messages were broken, or nobody waited for.
func (c *Cluster) Refused() uint64 { return c.refused.Load() }

// Close ends the hosts. No search may be under way.
func (c *Cluster) Close() {
	close(c.done)
	c.closing()
	c.running.Wait()
}

// A mailbox has no bound, so that hosts which send to each other never wait for each other. The message that came last is taken first: so
// the tree is searched deep before wide, and few nodes wait at a time.
type mailbox struct {
	mu       sync.Mutex
	messages []Message
	filled   chan struct{} // has a token if there may be messages
}

func newMailbox() *mailbox { return &mailbox{filled: make(chan struct{}, 1)} }

func (b *mailbox) put(m Message) {
	b.mu.Lock()
	b.messages = append(b.messages, m)
	b.mu.Unlock()
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

// take waits for a message until done. One goroutine may call it.
func (b *mailbox) take(done <-chan struct{}) (m Message, ok bool) {
	for {
		select {
		case <-done:
			return m, false
		default:
		}
		b.mu.Lock()
		if last := len(b.messages) - 1; last >= 0 {
			m = b.messages[last]
			b.messages = b.messages[:last]
			b.mu.Unlock()
			return m, true
		}
		b.mu.Unlock()
		select {
		case <-b.filled:
		case <-done:
			return m, false
		}
	}
}
