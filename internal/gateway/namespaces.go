package gateway

import (
	"net/http"

	"github.com/lambdanic/lambdanic/api"
)

// namespaces lists the names alone, as OpenFaaS does.
func (g *Gateway) namespaces(w http.ResponseWriter, r *http.Request) error {
	list, err := g.Manager.Namespaces(r.Context())
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return writeJSON(w, http.StatusOK, names)
}

func (g *Gateway) namespaceDetails(w http.ResponseWriter, r *http.Request) error {
	list, err := g.Manager.Namespaces(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, list)
}

func (g *Gateway) namespace(w http.ResponseWriter, r *http.Request) error {
	n, err := g.Manager.Namespace(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, n)
}

func (g *Gateway) setQuota(w http.ResponseWriter, r *http.Request) error {
	var change api.QuotaChange
	if err := readJSON(w, r, &change); err != nil {
		return err
	}
	n, err := g.Manager.SetQuota(r.Context(), r.PathValue("name"), change)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, n)
}

func (g *Gateway) removeNamespace(w http.ResponseWriter, r *http.Request) error {
	if err := g.Manager.RemoveNamespace(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
