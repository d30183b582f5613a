package gateway

import (
	"net/http"

	"github.com/lambdanic/lambdanic/api"
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
	if err := g.Ikernels.Detach(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
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
