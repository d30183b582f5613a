package daemon

import (
	"errors"
	"slices"
	"sync"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// nics are the NICs that a daemon has at the moment. One goroutine changes them, while others read their counters.
type nics struct {
	mu  sync.Mutex
	all []*nic.NIC
}

func (n *nics) add(one *nic.NIC) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, one)
}

func (n *nics) list() []*nic.NIC {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// close lets go of all. First they are taken out, so that nobody asks one that is closed.
func (n *nics) close() error {
	n.mu.Lock()
	all := n.all
	n.all = nil
	n.mu.Unlock()
	var errs []error
	for _, one := range all {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// counters reads what each counted, by interface.
func (n *nics) counters() (map[string]backend.NICCounters, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	counters := make(map[string]backend.NICCounters, len(n.all))
	for _, one := range n.all {
		c, err := one.Counters()
		if err != nil {
			return nil, err
		}
		counters[one.Interface()] = c
	}
	return counters, nil
}
