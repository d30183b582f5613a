package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ikernel"
)

func (g *Gateway) ikernels(w http.ResponseWriter, _ *http.Request) error {
	list, err := g.Ikernels.List()
	if err != nil {
		return err
	}
	if g.Applications != nil {
		more, err := g.Applications()
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	return writeJSON(w, http.StatusOK, list)
}

func (g *Gateway) attachIkernel(w http.ResponseWriter, r *http.Request) error {
	var body api.IkernelRequest
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	i, err := g.Ikernels.Attach(r.Context(), body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, i)
}

func (g *Gateway) detachIkernel(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := g.Ikernels.Detach(r.Context(), name); err != nil {
		return g.orOwned(name, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// orOwned is the error, or whose the ikernel is that no operator has attached.
func (g *Gateway) orOwned(name string, err error) error {
	if g.Applications == nil || !errors.Is(err, ikernel.ErrNotFound) {
		return err
	}
	list, _ := g.Applications()
	for _, i := range list {
		if i.Name == name {
			return fmt.Errorf("%w: %v has %s until it detaches it, or ends", ikernel.ErrApplication, i.Application, name)
		}
	}
	return err
}

func (g *Gateway) changeIkernelKeys(w http.ResponseWriter, r *http.Request) error {
	var body api.IkernelKeysRequest
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	name := r.PathValue("name")
	i, err := g.Ikernels.ChangeKeys(r.Context(), name, body)
	if err != nil {
		return g.orOwned(name, err)
	}
	return writeJSON(w, http.StatusOK, i)
}
