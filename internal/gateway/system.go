package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/space"
	"github.com/lambdanic/lambdanic/internal/store"
)

// Limits on bodies of the management API, and on how long a body may take to arrive.
const (
	maxJSON   = 1 << 20
	maxSource = 16 << 20

	bodyPatience = time.Minute
)

// system serves /system/*: OpenFaaS's requests, with errors in plain text, and our own, with errors in JSON.
func (g *Gateway) system() http.Handler {
	mux := http.NewServeMux()
	faas := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				http.Error(w, err.Error(), g.statusOf(r, err))
			}
		})
	}
	ours := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				_ = writeJSON(w, g.statusOf(r, err), api.Error{Error: err.Error()})
			}
		})
	}
	faas("GET /system/functions", g.list)
	faas("POST /system/functions", g.deploy)
	faas("PUT /system/functions", g.update)
	faas("DELETE /system/functions", g.remove)
	faas("GET /system/function/{name}", g.describe)
	faas("GET /system/info", g.info)
	faas("GET /system/namespaces", g.namespaces)
	faas("GET /system/logs", g.logs)
	ours("GET /system/namespaces/details", g.namespaceDetails)
	ours("GET /system/namespace/{name}", g.namespace)
	ours("DELETE /system/namespace/{name}", g.removeNamespace)
	ours("PATCH /system/namespace/{name}/quota", g.setQuota)
	ours("POST /system/namespace/{name}/keys", g.addKey)
	ours("DELETE /system/namespace/{name}/keys/{number}", g.removeKey)
	ours("PUT /system/namespace/{name}/tags", g.requireTags)
	ours("POST /system/namespace/{name}/networks", g.addNetwork)
	ours("DELETE /system/namespace/{name}/networks/{network}", g.removeNetwork)
	ours("POST /system/artifacts", g.build)
	ours("POST /system/fused", g.deployFused)
	ours("GET /system/function/{name}/objects", g.objects)
	ours("GET /system/function/{name}/objects/{object}", g.readObject)
	ours("PUT /system/function/{name}/objects/{object}", g.writeObject)
	ours("GET /system/function/{name}/{resource...}", g.listResource)
	ours("POST /system/function/{name}/{resource...}", g.addResource)
	ours("DELETE /system/function/{name}/{resource...}", g.removeResource)
	ours("GET /system/ikernels", g.ikernels)
	ours("POST /system/ikernels", g.attachIkernel)
	ours("DELETE /system/ikernels/{name}", g.detachIkernel)
	ours("POST /system/ikernels/{name}/keys", g.changeIkernelKeys)
	ours("GET /system/stats", g.stats)
	ours("GET /system/node", g.node)
	return sameSite(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience)) // a recorder in a test has none
		}
		mux.ServeHTTP(w, r)
	}))
}

// errContentType says that a body is not declared to be JSON.
var errContentType = errors.New("the body has to be JSON: send it with Content-Type: application/json")

// sameSite refuses what the page of another site has a browser send, with the credentials that the browser keeps for this one.
// Other programs than browsers send neither of the headers that it checks.
func sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "refused: the page of another site sent this, which may not manage functions: use lambdanic, faas-cli or a page of this host",
			http.StatusForbidden)
	}))
	return protection.Handler(next)
}

// statusOf maps the managers' errors.
func (g *Gateway) statusOf(r *http.Request, err error) int {
	var tooLong *http.MaxBytesError
	var quota *manager.QuotaError
	switch {
	case errors.As(err, &tooLong):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errMemory), errors.Is(err, sandbox.ErrBusy):
		return http.StatusServiceUnavailable
	case space.Is(err) && !errors.Is(err, manager.ErrRefused) && !errors.Is(err, ikernel.ErrRefused): // to the kernel, ENOSPC means more than disks
		return http.StatusInsufficientStorage
	case errors.As(err, &quota): // as Kubernetes says it: the request is right, but not allowed. 507 is for full disks, 429 for requests to functions
		return http.StatusForbidden
	case errors.Is(err, errContentType):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, manager.ErrInvalid), errors.Is(err, ikernel.ErrInvalid), errors.Is(err, backend.ErrObjectSize), errors.Is(err, backend.ErrResource):
		return http.StatusBadRequest
	case errors.Is(err, manager.ErrBuild), errors.Is(err, manager.ErrRefused), errors.Is(err, ikernel.ErrRefused):
		return http.StatusUnprocessableEntity
	case errors.Is(err, store.ErrNotFound), errors.Is(err, manager.ErrNoNamespace), errors.Is(err, manager.ErrNoKey), errors.Is(err, manager.ErrNoNetwork), errors.Is(err, ikernel.ErrNotFound), errors.Is(err, backend.ErrNoObject), errors.Is(err, backend.ErrNoResource):
		return http.StatusNotFound
	case errors.Is(err, ikernel.ErrExists), errors.Is(err, ikernel.ErrApplication), errors.Is(err, manager.ErrInUse):
		return http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	g.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return http.StatusInternalServerError
}

func (g *Gateway) list(w http.ResponseWriter, r *http.Request) error {
	functions, err := g.Manager.List(r.Context(), r.URL.Query().Get("namespace"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, functions)
}

func (g *Gateway) describe(w http.ResponseWriter, r *http.Request) error {
	f, err := g.Manager.Describe(r.Context(), r.URL.Query().Get("namespace"), r.PathValue("name"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, f)
}

func (g *Gateway) deploy(w http.ResponseWriter, r *http.Request) error {
	var body types.FunctionDeployment
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	return g.apply(w, r, &body)
}

// update deploys a function that exists.
func (g *Gateway) update(w http.ResponseWriter, r *http.Request) error {
	var body types.FunctionDeployment
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if _, err := g.Manager.Describe(r.Context(), body.Namespace, body.Service); err != nil {
		return err
	}
	return g.apply(w, r, &body)
}

func (g *Gateway) apply(w http.ResponseWriter, r *http.Request, body *types.FunctionDeployment) error {
	request, err := deployRequest(body)
	if err != nil {
		return err
	}
	f, err := g.Manager.Deploy(r.Context(), request)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, f)
}

func (g *Gateway) deployFused(w http.ResponseWriter, r *http.Request) error {
	var body api.FusedDeployment
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	var requests []manager.Request
	for i := range body.Functions {
		request, err := deployRequest(&body.Functions[i])
		if err != nil {
			return fmt.Errorf("%s: %w", body.Functions[i].Service, err)
		}
		requests = append(requests, request)
	}
	functions, err := g.Manager.DeployFused(r.Context(), requests)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, functions)
}

// deployRequest reads OpenFaaS's request. A field that lambdas do not support is refused where ignoring it would change what the
// function does; constraints, resources and the watchdog's process mean nothing here.
func deployRequest(body *types.FunctionDeployment) (manager.Request, error) {
	request := manager.Request{
		Namespace: body.Namespace, Name: body.Service, Image: body.Image, Env: body.EnvVars, Services: map[string]string{},
	}
	if len(body.Secrets) > 0 {
		return request, fmt.Errorf("%w: lambdas have no secrets: leave them out", manager.ErrInvalid)
	}
	if body.Labels != nil {
		request.Labels = *body.Labels
	}
	if body.Annotations == nil {
		return request, nil
	}
	request.Annotations = *body.Annotations
	for key, value := range request.Annotations {
		if service, ok := strings.CutPrefix(key, api.AnnotationService); ok {
			request.Services[service] = value
		} else if strings.HasPrefix(key, api.AnnotationPrefix) && key != api.AnnotationTargets {
			return request, fmt.Errorf("%w: annotation %s means nothing: there are %s and %sNAME",
				manager.ErrInvalid, key, api.AnnotationTargets, api.AnnotationService)
		}
	}
	if list := request.Annotations[api.AnnotationTargets]; list != "" {
		for target := range strings.SplitSeq(list, ",") {
			request.Targets = append(request.Targets, api.Target(strings.TrimSpace(target)))
		}
	}
	return request, nil
}

func (g *Gateway) remove(w http.ResponseWriter, r *http.Request) error {
	var body types.DeleteFunctionRequest
	if err := readJSON(w, r, &body); err != nil {
		return err
	}
	if body.Namespace == "" {
		body.Namespace = r.URL.Query().Get("namespace")
	}
	if err := g.Manager.Remove(r.Context(), body.Namespace, body.FunctionName); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (g *Gateway) info(w http.ResponseWriter, _ *http.Request) error {
	version := &types.VersionInfo{Release: g.Version, SHA: g.Commit}
	return writeJSON(w, http.StatusOK, map[string]any{
		"provider": types.ProviderInfo{Name: "lambdanic", Version: version, Orchestration: "lambdanic"},
		"version":  version,
		"arch":     runtime.GOARCH,
	})
}

func (g *Gateway) build(w http.ResponseWriter, r *http.Request) error {
	held := reservation{memory: g.memory} // builds wait for each other
	defer held.release()
	source, err := held.read(http.MaxBytesReader(w, r.Body, maxSource), maxSource)
	if errors.Is(err, errMemory) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w: read the source: %w", manager.ErrInvalid, err)
	}
	artifact, err := g.Manager.BuildSource(r.Context(), source)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, artifact)
}

func (g *Gateway) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := g.Manager.Stats(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, stats)
}

func (g *Gateway) node(w http.ResponseWriter, r *http.Request) error {
	targets, err := g.Manager.Targets(r.Context())
	if err != nil {
		return err
	}
	node := g.Describe()
	node.Targets = targets
	return writeJSON(w, http.StatusOK, node)
}

// isJSON takes a request without a type for JSON: older faas-cli send none.
func isJSON(r *http.Request) bool {
	declared := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(declared)
	return declared == "" || err == nil && kind == "application/json"
}

// readJSON reads one value of exactly that shape.
func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if !isJSON(r) {
		return errContentType
	}
	return decodeJSON(http.MaxBytesReader(w, r.Body, maxJSON), into)
}

func decodeJSON(body io.Reader, into any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: read the body: %w", manager.ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: read the body: something follows the JSON value", manager.ErrInvalid)
	}
	return nil
}

// writeJSON encodes before it answers, so that an encoding failure can still be answered as an error.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
	return nil
}
