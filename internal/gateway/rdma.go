package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/manager"
)

// rdma finds what has the regions and queue pairs of the function that a request is about.
func (g *Gateway) rdma(r *http.Request) (backend.RDMA, uint32, error) {
	namespace, name, _ := where(r)
	return g.Manager.RDMA(namespace, name)
}

func (g *Gateway) addRegion(w http.ResponseWriter, r *http.Request) error {
	return added(g, w, r, backend.RDMA.AddRegion)
}

func (g *Gateway) addQueuePair(w http.ResponseWriter, r *http.Request) error {
	return added(g, w, r, backend.RDMA.AddQueuePair)
}

func (g *Gateway) regions(w http.ResponseWriter, r *http.Request) error {
	return listed(g, w, r, backend.RDMA.Regions)
}

func (g *Gateway) queuePairs(w http.ResponseWriter, r *http.Request) error {
	return listed(g, w, r, backend.RDMA.QueuePairs)
}

func (g *Gateway) removeRegion(w http.ResponseWriter, r *http.Request) error {
	return g.removed(w, r, backend.RDMA.RemoveRegion)
}

func (g *Gateway) removeQueuePair(w http.ResponseWriter, r *http.Request) error {
	return g.removed(w, r, backend.RDMA.RemoveQueuePair)
}

func added[In, Out any](g *Gateway, w http.ResponseWriter, r *http.Request, add func(backend.RDMA, context.Context, uint32, In) (*Out, error)) error {
	var body In
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	b, workload, err := g.rdma(r)
	if err != nil {
		return err
	}
	out, err := add(b, r.Context(), workload, body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, out)
}

func listed[Out any](g *Gateway, w http.ResponseWriter, r *http.Request, list func(backend.RDMA, context.Context, uint32) ([]Out, error)) error {
	b, workload, err := g.rdma(r)
	if err != nil {
		return err
	}
	out, err := list(b, r.Context(), workload)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, append([]Out{}, out...)) // an empty list is no null
}

func (g *Gateway) removed(w http.ResponseWriter, r *http.Request, remove func(backend.RDMA, context.Context, uint32, uint32) error) error {
	number, err := strconv.ParseUint(r.PathValue("number"), 0, 32)
	if err != nil {
		return fmt.Errorf("%w: %q is no number of 32 bits", manager.ErrInvalid, r.PathValue("number"))
	}
	b, workload, err := g.rdma(r)
	if err != nil {
		return err
	}
	if err := remove(b, r.Context(), workload, uint32(number)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
