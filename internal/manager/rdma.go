package manager

import (
	"cmp"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// RDMA finds what has the regions and queue pairs of a function, and its workload ID there.
func (m *Manager) RDMA(namespace, name string) (backend.RDMA, uint32, error) {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	f, ok := m.Route(namespace, name)
	if !ok {
		return nil, 0, fmt.Errorf("%w: %s/%s", store.ErrNotFound, namespace, name)
	}
	r, err := m.Node.RDMA(f.Target)
	return r, f.Workload, err
}
