package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/lambdanic/lambdanic/internal/manager"
)

func (g *Gateway) addResource(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	var body json.RawMessage
	if err := readJSON(w, r, &body); err != nil { // first: a slow caller takes up to a minute
		return err
	}
	decode := func(request any) error { return decodeJSON(bytes.NewReader(body), request) }
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
	resource, last := "", r.PathValue("resource")
	if i := strings.LastIndexByte(last, '/'); i >= 0 {
		resource, last = last[:i], last[i+1:]
	}
	number, err := strconv.ParseUint(last, 0, 32)
	if err != nil {
		return fmt.Errorf("%w: %q is not a number of 32 bits", manager.ErrInvalid, last)
	}
	if err := g.Manager.RemoveResource(r.Context(), namespace, name, resource, uint32(number)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
