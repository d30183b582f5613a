package nics

import (
	"errors"
	"slices"
	"sync"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// list holds the NICs that a node has at the moment. One goroutine changes it, while others read counters.
type list struct {
	mu   sync.Mutex
	nics []*nic.NIC
}

func (l *list) add(n *nic.NIC) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nics = append(l.nics, n)
}

func (l *list) all() []*nic.NIC {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.nics)
}

// close closes all NICs. It takes them off the list first, so that nobody asks a closed one.
func (l *list) close() error {
	l.mu.Lock()
	all := l.nics
	l.nics = nil
	l.mu.Unlock()
	var errs []error
	for _, n := range all {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// counters reads what each counted, by interface.
func (l *list) counters() (map[string][]backend.Counter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counters := make(map[string][]backend.Counter, len(l.nics))
	for _, n := range l.nics {
		c, err := n.Counters()
		if err != nil {
			return nil, err
		}
		counters[n.Interface()] = c
	}
	return counters, nil
}
