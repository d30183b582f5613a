package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"github.com/openfaas/faas-provider/types"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// ErrDown says that no daemon answers.
var ErrDown = errors.New("is not up")

// Client speaks to the daemon of an instance by its private socket.
type Client struct {
	paths Paths
	http  *http.Client
}

// NewClient returns a client of the instance with those paths.
func NewClient(p Paths) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p.Socket())
	}
	return &Client{paths: p, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}}}
}

// Do sends a request. The caller closes the body of the answer, whatever its status.
func (c *Client) Do(ctx context.Context, method, path string, body io.Reader, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://lambdanic"+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	answer, err := c.http.Do(r)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		if c.paths.mayBeRoots() {
			return nil, fmt.Errorf("%w, or, if it is root's, run as root", c.down())
		}
		return nil, c.down()
	case errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("instance %s belongs to another user: run as root", c.paths.Instance)
	case err != nil:
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	return answer, nil
}

// down says how to start the instance.
func (c *Client) down() error {
	return fmt.Errorf("instance %s %w: start it with `%s`", c.paths.Instance, ErrDown, c.paths.Command("up -d"))
}

// call sends a request and decodes its answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body, out any) error {
	raw, isBytes := body.([]byte)
	var header http.Header
	if body != nil && !isBytes {
		header = http.Header{"Content-Type": {"application/json"}}
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("ask the daemon: %w", err)
		}
	}
	answer, err := c.Do(ctx, method, path, bytes.NewReader(raw), header)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return answerError(answer)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	return nil
}

// answerError is the daemon's error, in JSON or plain text.
func answerError(answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	var e api.Error
	if json.Unmarshal(raw, &e) == nil && e.Error != "" {
		return errors.New(e.Error)
	}
	return errors.New(strings.TrimSpace(string(raw)))
}

// Build has the daemon compile a packed source.
func (c *Client) Build(ctx context.Context, source []byte) (*api.Artifact, error) {
	a := new(api.Artifact)
	return a, c.call(ctx, http.MethodPost, "/system/artifacts", source, a)
}

// Deploy deploys and returns when the function serves.
func (c *Client) Deploy(ctx context.Context, r types.FunctionDeployment) (*api.Function, error) {
	f := new(api.Function)
	return f, c.call(ctx, http.MethodPost, "/system/functions", r, f)
}

// DeployFused deploys functions as one program on the NIC, and returns when all of them serve.
func (c *Client) DeployFused(ctx context.Context, rs []types.FunctionDeployment) ([]api.Function, error) {
	var list []api.Function
	return list, c.call(ctx, http.MethodPost, "/system/fused", api.FusedDeployment{Functions: rs}, &list)
}

// Remove ends a function.
func (c *Client) Remove(ctx context.Context, namespace, name string) error {
	return c.call(ctx, http.MethodDelete, "/system/functions", types.DeleteFunctionRequest{FunctionName: name, Namespace: namespace}, nil)
}

// List describes the functions of a namespace, all where it is "".
func (c *Client) List(ctx context.Context, namespace string) ([]api.Function, error) {
	var list []api.Function
	return list, c.call(ctx, http.MethodGet, "/system/functions?namespace="+url.QueryEscape(namespace), nil, &list)
}

// Describe describes one function.
func (c *Client) Describe(ctx context.Context, namespace, name string) (*api.Function, error) {
	f := new(api.Function)
	path := "/system/function/" + url.PathEscape(name) + "?namespace=" + url.QueryEscape(namespace)
	return f, c.call(ctx, http.MethodGet, path, nil, f)
}

// Namespaces describes all namespaces, by name.
func (c *Client) Namespaces(ctx context.Context) ([]api.Namespace, error) {
	var list []api.Namespace
	return list, c.call(ctx, http.MethodGet, "/system/namespaces/details", nil, &list)
}

// NamespaceNames lists the names of all namespaces.
func (c *Client) NamespaceNames(ctx context.Context) ([]string, error) {
	var names []string
	return names, c.call(ctx, http.MethodGet, "/system/namespaces", nil, &names)
}

// Namespace describes one namespace.
func (c *Client) Namespace(ctx context.Context, name string) (*api.Namespace, error) {
	n := new(api.Namespace)
	return n, c.call(ctx, http.MethodGet, "/system/namespace/"+url.PathEscape(name), nil, n)
}

// SetQuota changes a namespace's quota, and makes the namespace if there is none of that name.
func (c *Client) SetQuota(ctx context.Context, name string, change api.QuotaChange) (*api.Namespace, error) {
	n := new(api.Namespace)
	return n, c.call(ctx, http.MethodPatch, "/system/namespace/"+url.PathEscape(name)+"/quota", change, n)
}

// RemoveNamespace forgets a namespace without functions, with its quota and its counters.
func (c *Client) RemoveNamespace(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/system/namespace/"+url.PathEscape(name), nil, nil)
}

// AddKey makes a new key for a namespace, which is made if there is none of that name.
func (c *Client) AddKey(ctx context.Context, namespace string) (*api.NewKey, error) {
	k := new(api.NewKey)
	return k, c.call(ctx, http.MethodPost, "/system/namespace/"+url.PathEscape(namespace)+"/keys", nil, k)
}

// RemoveKey ends a key of a namespace.
func (c *Client) RemoveKey(ctx context.Context, namespace string, number uint32) error {
	return c.call(ctx, http.MethodDelete, "/system/namespace/"+url.PathEscape(namespace)+"/keys/"+strconv.FormatUint(uint64(number), 10), nil, nil)
}

// RequireTags has the lambdas of a namespace serve tagged packets alone, or others, too.
func (c *Client) RequireTags(ctx context.Context, namespace string, required bool) (*api.Namespace, error) {
	n := new(api.Namespace)
	return n, c.call(ctx, http.MethodPut, "/system/namespace/"+url.PathEscape(namespace)+"/tags", api.Tags{Required: &required}, n)
}

// AddNetwork gives a network to a namespace, which is made if there is none of that name.
func (c *Client) AddNetwork(ctx context.Context, namespace string, network api.Network) (*api.Namespace, error) {
	n := new(api.Namespace)
	return n, c.call(ctx, http.MethodPost, "/system/namespace/"+url.PathEscape(namespace)+"/networks", api.NewNetwork{Network: network}, n)
}

// RemoveNetwork takes a network from a namespace.
func (c *Client) RemoveNetwork(ctx context.Context, namespace string, network api.Network) (*api.Namespace, error) {
	n := new(api.Namespace)
	return n, c.call(ctx, http.MethodDelete, "/system/namespace/"+url.PathEscape(namespace)+"/networks/"+url.PathEscape(network.String()), nil, n)
}

func objectPath(namespace, name, object string) string {
	path := "/system/function/" + url.PathEscape(name) + "/objects"
	if object != "" {
		path += "/" + url.PathEscape(object)
	}
	return path + "?namespace=" + url.QueryEscape(namespace)
}

// Objects lists the objects of a function's lambda.
func (c *Client) Objects(ctx context.Context, namespace, name string) ([]api.Object, error) {
	var list []api.Object
	return list, c.call(ctx, http.MethodGet, objectPath(namespace, name, ""), nil, &list)
}

// ReadObject returns an object as the machine has it in memory.
func (c *Client) ReadObject(ctx context.Context, namespace, name, object string) ([]byte, error) {
	answer, err := c.Do(ctx, http.MethodGet, objectPath(namespace, name, object), nil, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, answerError(answer)
	}
	return io.ReadAll(answer.Body)
}

// WriteObject writes an object.
func (c *Client) WriteObject(ctx context.Context, namespace, name, object string, value []byte) error {
	return c.call(ctx, http.MethodPut, objectPath(namespace, name, object), value, nil)
}

func rdmaPath(namespace, name, what string, number ...uint32) string {
	path := "/system/function/" + url.PathEscape(name) + "/rdma/" + what
	for _, n := range number {
		path += fmt.Sprintf("/%#x", n)
	}
	return path + "?namespace=" + url.QueryEscape(namespace)
}

// Ikernels lists the node's ikernels.
func (c *Client) Ikernels(ctx context.Context) ([]api.Ikernel, error) {
	var list []api.Ikernel
	return list, c.call(ctx, http.MethodGet, "/system/ikernels", nil, &list)
}

// AttachIkernel attaches an ikernel to a running server, and returns when it serves.
func (c *Client) AttachIkernel(ctx context.Context, r api.IkernelRequest) (*api.Ikernel, error) {
	out := new(api.Ikernel)
	return out, c.call(ctx, http.MethodPost, "/system/ikernels", r, out)
}

// DetachIkernel detaches an ikernel by its name.
func (c *Client) DetachIkernel(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, "/system/ikernels/"+url.PathEscape(name), nil, nil)
}

// ChangeIkernelKeys changes the keys of an ikernel in one step, and returns when no others count.
func (c *Client) ChangeIkernelKeys(ctx context.Context, name string, r api.IkernelKeysRequest) (*api.Ikernel, error) {
	out := new(api.Ikernel)
	return out, c.call(ctx, http.MethodPost, "/system/ikernels/"+url.PathEscape(name)+"/keys", r, out)
}

// AddRegion registers memory of a function's lambda for peers to write to.
func (c *Client) AddRegion(ctx context.Context, namespace, name string, r api.RegionRequest) (*api.Region, error) {
	out := new(api.Region)
	return out, c.call(ctx, http.MethodPost, rdmaPath(namespace, name, "regions"), r, out)
}

// Regions lists a function's regions.
func (c *Client) Regions(ctx context.Context, namespace, name string) ([]api.Region, error) {
	var list []api.Region
	return list, c.call(ctx, http.MethodGet, rdmaPath(namespace, name, "regions"), nil, &list)
}

// RemoveRegion revokes a region.
func (c *Client) RemoveRegion(ctx context.Context, namespace, name string, key uint32) error {
	return c.call(ctx, http.MethodDelete, rdmaPath(namespace, name, "regions", key), nil, nil)
}

// AddQueuePair makes the NIC's half of a connection to a function's lambda.
func (c *Client) AddQueuePair(ctx context.Context, namespace, name string, r api.QueuePairRequest) (*api.QueuePair, error) {
	out := new(api.QueuePair)
	return out, c.call(ctx, http.MethodPost, rdmaPath(namespace, name, "queue-pairs"), r, out)
}

// QueuePairs lists a function's queue pairs.
func (c *Client) QueuePairs(ctx context.Context, namespace, name string) ([]api.QueuePair, error) {
	var list []api.QueuePair
	return list, c.call(ctx, http.MethodGet, rdmaPath(namespace, name, "queue-pairs"), nil, &list)
}

// RemoveQueuePair takes a queue pair away.
func (c *Client) RemoveQueuePair(ctx context.Context, namespace, name string, qpn uint32) error {
	return c.call(ctx, http.MethodDelete, rdmaPath(namespace, name, "queue-pairs", qpn), nil, nil)
}

// Stats returns every function's counters.
func (c *Client) Stats(ctx context.Context) ([]api.FunctionStats, error) {
	var stats []api.FunctionStats
	return stats, c.call(ctx, http.MethodGet, "/system/stats", nil, &stats)
}

// Logs calls each with every message of the daemon that r asks for, until there are no more.
func (c *Client) Logs(ctx context.Context, r logs.Request, each func(logs.Message) error) error {
	q := url.Values{"name": {r.Name}, "namespace": {r.Namespace}, "tail": {strconv.Itoa(r.Tail)}, "follow": {strconv.FormatBool(r.Follow)}}
	if r.Since != nil {
		q.Set("since", r.Since.Format(time.RFC3339Nano))
	}
	answer, err := c.Do(ctx, http.MethodGet, "/system/logs?"+q.Encode(), nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answerError(answer)
	}
	for lines := json.NewDecoder(answer.Body); ; {
		var m logs.Message
		switch err := lines.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the daemon's log: %w", err)
		}
		if err := each(m); err != nil {
			return err
		}
	}
}

// Node describes the instance.
func (c *Client) Node(ctx context.Context) (*api.Node, error) {
	n := new(api.Node)
	return n, c.call(ctx, http.MethodGet, "/system/node", nil, n)
}

// Invoke calls a function, NAME or NAME.NAMESPACE. The caller closes the body of the answer, whatever its status.
func (c *Client) Invoke(ctx context.Context, name string, method uint32, body io.Reader, header http.Header) (*http.Response, error) {
	return c.Do(ctx, http.MethodPost, fmt.Sprintf("/function/%s?method=%d", url.PathEscape(name), method), body, header)
}
