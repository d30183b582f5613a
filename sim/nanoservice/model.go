// Package nanoservice simulates nanoservices: requests that take about a microsecond, where the way from the wire to a core decides how
// fast they are. The model is that of S. Ibanez, M. Shahbaz and N. McKeown: The case for a network fast path to the CPU (HotNets 2019),
// section 4. A [Tree] is its search, a [Load] is requests of many clients to hosts of many cores, and [Experiment] repeats the
// paper's Table 2 and Figures 5 and 6.
//
// Each message is two to six events, and each event takes O(1) and the queue's share (package event); with JBSQ and Central, also O(cores) to
// choose one. Memory is O(hosts x cores + the most messages that are on their way at a time).
package nanoservice

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
	"github.com/lambdanic/lambdanic/sim/random"
)

// Interface is the way between a host's wire and its core.
type Interface struct {
	Name  string
	Delay event.Time // between wire and memory, each way
	// To get at a message takes Near where at most NIC messages wait at the host, this one among them; Far where more than NIC+LLC
	// wait; and Mid between.
	Near, Mid, Far event.Time
	NIC, LLC       int
}

// The paper's interfaces. A host keeps 100 messages in its NIC, and 1,000 in its last-level cache; for the sweeps over depths 5 and 6, the
// paper has 100 there. Its Table 1 gives 1 µs to memory and cache; 900 ns, on each side of the wire, give its Table 2.
var (
	DMA  = Interface{Name: "DMA", Delay: 900 * ns, Near: 100 * ns, Mid: 100 * ns, Far: 100 * ns, NIC: 100, LLC: 1000}
	DDIO = Interface{Name: "DDIO", Delay: 900 * ns, Near: 10 * ns, Mid: 10 * ns, Far: 100 * ns, NIC: 100, LLC: 1000}
)

// LNIC is the paper's path from the NIC into a core's registers, which takes delay each way.
func LNIC(delay event.Time) Interface {
	return Interface{Name: fmt.Sprintf("L-NIC (%v)", delay.Duration()), Delay: delay, Mid: 10 * ns, Far: 100 * ns, NIC: 100, LLC: 1000}
}

const ns = event.Nanosecond

func (i *Interface) access(waiting int) event.Time {
	switch {
	case waiting <= i.NIC:
		return i.Near
	case waiting <= i.NIC+i.LLC:
		return i.Mid
	}
	return i.Far
}

// Tree is a game's search tree, whose nodes are spread over many hosts by messages: each host searches a position (map), sends the
// positions one move on to other hosts, and sums up their answers (reduce).
type Tree struct {
	Hosts     int
	Depth     int // levels of the tree
	Branches  random.Count
	Map       random.Time
	Reduce    event.Time // 0 where the NIC does it
	Interface Interface
	Wire      event.Time // from one NIC to another, whatever else is sent
	// Network, where set, is what takes the messages instead, of so many bytes each.
	Network *network.Config
	Bytes   int
}

// Result is what became of a run.
type Result struct {
	Finish      event.Time // when the root had all answers
	Utilisation float64    // of all hosts until then, from 0 to 1, without the time to get at messages
	Messages    uint64     // served
}

// ParseInterface reads dma, ddio, or lnic:DELAY with a time such as 200ns.
func ParseInterface(s string) (Interface, error) {
	switch kind, delay, found := strings.Cut(s, ":"); {
	case s == "dma":
		return DMA, nil
	case s == "ddio":
		return DDIO, nil
	case kind == "lnic" && found:
		d, err := random.ParseFixed(delay)
		if err != nil {
			return Interface{}, fmt.Errorf("interface %q: %w", s, err)
		}
		return LNIC(d), nil
	}
	return Interface{}, fmt.Errorf("interface %q: it has to be dma, ddio or lnic:DELAY, as in lnic:200ns", s)
}

func (t *Tree) check() error {
	switch {
	case t.Hosts < 1 || t.Hosts > MaxHosts:
		return fmt.Errorf("hosts: %d is not between 1 and %d", t.Hosts, MaxHosts)
	case t.Depth < 1 || t.Depth > MaxDepth:
		return fmt.Errorf("depth: %d is not between 1 and %d", t.Depth, MaxDepth)
	case t.Reduce < 0:
		return errors.New("reduce: the time is negative")
	case t.Wire < 0:
		return errors.New("wire: the time is negative")
	}
	if err := checkNetwork(t.Network, t.Bytes); err != nil {
		return err
	}
	return t.Interface.check()
}

func checkNetwork(c *network.Config, bytes ...int) error {
	for _, b := range bytes {
		if b < 0 || b > maxMessage {
			return fmt.Errorf("a message of %d bytes: it has to have from 0 to %d", b, maxMessage)
		}
	}
	if c == nil {
		return nil
	}
	return c.Check()
}

const maxMessage = 1 << 30

func (i *Interface) check() error {
	switch {
	case min(i.Delay, i.Near, i.Mid, i.Far) < 0:
		return fmt.Errorf("interface %s: a time is negative", i.Name)
	case min(i.NIC, i.LLC) < 0:
		return fmt.Errorf("interface %s: a number of messages is negative", i.Name)
	}
	return nil
}

// Limits of what is simulated.
const (
	MaxHosts = 1_000_000
	MaxDepth = 30
)
