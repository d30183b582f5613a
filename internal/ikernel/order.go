package ikernel

import (
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// apart is how far the orders of ikernels are apart that are attached one after the other, so that others can come between.
const apart = 1 << 40

// orderOf says where an ikernel will be among those of its port: before the one that it names, or after all. It is recorded, so that they are in this order
// whenever each of them is attached again. m is locked.
func (m *Manager) orderOf(r *api.IkernelRequest) (int64, error) {
	if r.Before == "" {
		var last int64
		for _, a := range m.all {
			last = max(last, a.order)
		}
		return last + apart, nil
	}
	next := m.all[r.Before]
	switch {
	case next == nil:
		return 0, fmt.Errorf("%w: %q is to be before %q, which is not attached: `lambdanic ik list` shows those that are", ErrInvalid, r.Name, r.Before)
	case next.port != r.Port:
		return 0, fmt.Errorf("%w: %q is at port %d, and can have none before it at port %d", ErrInvalid, r.Before, next.port, r.Port)
	}
	order := next.order - 2*apart // of one before it, if it is the first
	for _, a := range m.all {
		if a.port == r.Port && a.order < next.order {
			order = max(order, a.order)
		}
	}
	middle := order + (next.order-order)/2
	if middle == order {
		return 0, fmt.Errorf("%w: no order is left before %q: detach it, and attach it after this one", ErrRefused, r.Before)
	}
	return middle, nil
}

// checkBefore refuses an ikernel that is to be before another one, and gets none of its packets. Who locks both has first locked the one that came later.
func (m *Manager) checkBefore(a *attachment, before string) error {
	next, err := m.lock(before)
	if err != nil {
		return err
	}
	defer next.mu.Unlock()
	if next.instance == nil || a.instance.Attachment().Shares(next.instance.Attachment()) {
		return nil
	}
	return fmt.Errorf("it would not be before %s, which gets packets by other interfaces or of another server: give the same --interface, and --netns or --pid", before)
}
