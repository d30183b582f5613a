package gateway

import (
	"fmt"
	"net/http"
	"path"
	"strconv"

	"github.com/lambdanic/lambdanic/internal/manager"
)

func (g *Gateway) addResource(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	decode := func(request any) error { return readJSON(w, r, request) }
	made, err := g.Manager.AddResource(r.Context(), namespace, name, r.PathValue("resource"), decode)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, made)
}

func (g *Gateway) listResource(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	list, err := g.Manager.ListResource(r.Context(), namespace, name, r.PathValue("resource"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, list)
}

func (g *Gateway) removeResource(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	resource, last := path.Split(r.PathValue("resource"))
	number, err := strconv.ParseUint(last, 0, 32)
	if err != nil {
		return fmt.Errorf("%w: %q is no number of 32 bits", manager.ErrInvalid, last)
	}
	if err := g.Manager.RemoveResource(r.Context(), namespace, name, path.Clean(resource), uint32(number)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
