package gateway

import (
	"fmt"
	"io"
	"net/http"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/manager"
)

// where names the function that a request is about.
func where(r *http.Request) (namespace, name string) {
	return r.URL.Query().Get("namespace"), r.PathValue("name")
}

func (g *Gateway) objects(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	list, err := g.Manager.Objects(r.Context(), namespace, name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, append([]api.Object{}, list...)) // an empty list is no null
}

func (g *Gateway) readObject(w http.ResponseWriter, r *http.Request) error {
	namespace, name := where(r)
	value, err := g.Manager.ReadObject(r.Context(), namespace, name, r.PathValue("object"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(value) // the client may be gone
	return nil
}

func (g *Gateway) writeObject(w http.ResponseWriter, r *http.Request) error {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(api.MaxMemory)))
	if err != nil {
		return fmt.Errorf("%w: read the value: %w", manager.ErrInvalid, err)
	}
	namespace, name := where(r)
	if err := g.Manager.WriteObject(r.Context(), namespace, name, r.PathValue("object"), value); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
