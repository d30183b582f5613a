package worker

import (
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// RDMA returns what lets peers write into the memory of lambdas on a target.
func (w *Worker) RDMA(t api.Target) (backend.RDMA, error) {
	p, err := w.place(t)
	if err != nil {
		return nil, err
	}
	if nic, ok := p.Backend.(interface{ RDMA() backend.RDMA }); ok {
		return nic.RDMA(), nil
	}
	if _, ok := p.Backend.(backend.Group); ok {
		return nil, fmt.Errorf("%w: a queue pair is of one interface: bring an instance up with one --nic", backend.ErrRDMA)
	}
	return nil, fmt.Errorf("%w: target %s has no RDMA: deploy with `--target %s`", backend.ErrRDMA, t, api.TargetNIC)
}
