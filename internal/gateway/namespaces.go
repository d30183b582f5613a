package gateway

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/manager"
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

func (g *Gateway) addKey(w http.ResponseWriter, r *http.Request) error {
	key, err := g.Manager.AddKey(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store") // it is a secret
	return writeJSON(w, http.StatusCreated, key)
}

func (g *Gateway) removeKey(w http.ResponseWriter, r *http.Request) error {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 32)
	if err != nil {
		return fmt.Errorf("%w: %q is not the number of a key", manager.ErrInvalid, r.PathValue("number"))
	}
	if err := g.Manager.RemoveKey(r.Context(), r.PathValue("name"), uint32(number)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (g *Gateway) requireTags(w http.ResponseWriter, r *http.Request) error {
	var body api.Tags
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if body.Required == nil {
		return fmt.Errorf(`%w: the body does not say whether tags are required: write {"required": true} or {"required": false}`, manager.ErrInvalid)
	}
	n, err := g.Manager.RequireTags(r.Context(), r.PathValue("name"), *body.Required)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, n)
}

func (g *Gateway) addNetwork(w http.ResponseWriter, r *http.Request) error {
	var body api.NewNetwork
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if body.Network == (api.Network{}) {
		return fmt.Errorf(`%w: no network: name one, as {"network": "vlan:100"}`, manager.ErrInvalid)
	}
	n, err := g.Manager.AddNetwork(r.Context(), r.PathValue("name"), body.Network)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, n)
}

func (g *Gateway) removeNetwork(w http.ResponseWriter, r *http.Request) error {
	network, err := api.ParseNetwork(r.PathValue("network"))
	if err != nil {
		return fmt.Errorf("%w: %w", manager.ErrInvalid, err)
	}
	n, err := g.Manager.RemoveNetwork(r.Context(), r.PathValue("name"), network)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, n)
}
