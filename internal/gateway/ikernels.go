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
	err := g.Ikernels.Detach(r.Context(), name)
	if of := g.applicationOf(name); of != nil && errors.Is(err, ikernel.ErrNotFound) {
		err = fmt.Errorf("%w: process %d (%s) has %s until it detaches it, or ends", ikernel.ErrApplication, of.PID, of.Command, name)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// applicationOf is the application that has an ikernel; nil: none is known to.
func (g *Gateway) applicationOf(name string) *api.IkernelApplication {
	if g.Applications == nil {
		return nil
	}
	list, _ := g.Applications()
	for _, i := range list {
		if i.Name == name {
			return i.Application
		}
	}
	return nil
}

func (g *Gateway) changeIkernelKeys(w http.ResponseWriter, r *http.Request) error {
	var body api.IkernelKeysRequest
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	i, err := g.Ikernels.ChangeKeys(r.Context(), r.PathValue("name"), body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, i)
}
