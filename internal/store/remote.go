package store

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Remote says where an etcd is that somebody else runs, and which of its keys belong to this instance.
type Remote struct {
	Endpoints   []string `json:"endpoints"`             // of its members: http://HOST:PORT or https://HOST:PORT
	CA          string   `json:"ca,omitempty"`          // file of those who may sign its certificate; "": the system's
	Certificate string   `json:"certificate,omitempty"` // file of this client's; "": none
	Key         string   `json:"key,omitempty"`         // file of the certificate's key

	Instance string       `json:"-"` // whose keys they are
	Node     string       `json:"-"` // this node, which serves the instance
	Log      *slog.Logger `json:"-"`
}

// ErrAway says that an external etcd does not answer.
var ErrAway = errors.New("the store does not answer")

const (
	remoteRoot  = root + "instances/" // then the instance
	answerLimit = 5 * time.Second     // for etcd to answer a read, or to say its version
)

// Check finds mistakes without asking the etcd.
func (r Remote) Check() error {
	for _, endpoint := range r.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
			return fmt.Errorf("%q is not where an etcd listens: write http://HOST:PORT or https://HOST:PORT", endpoint)
		}
		if u.Scheme == "http" && (r.CA != "" || r.Certificate != "") {
			return fmt.Errorf("%q uses no certificates: write https://%s, or leave them out", endpoint, u.Host)
		}
	}
	if (r.Certificate == "") != (r.Key == "") {
		return errors.New("a certificate and its key go together: give both, or none")
	}
	return nil
}

// String names the etcd.
func (r Remote) String() string { return strings.Join(r.Endpoints, ", ") }

func (r Remote) tls() (*tls.Config, error) {
	info := transport.TLSInfo{TrustedCAFile: r.CA, CertFile: r.Certificate, KeyFile: r.Key}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates for %v: %w", r, err)
	}
	return config, nil
}

// Connect opens the instance's store on an external etcd, as the instance's only daemon (owner). It takes over from an earlier
// daemon of this node at once, and waits for another node's lease to end.
func Connect(ctx context.Context, r Remote) (*Store, error) {
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	if err := r.ask(ctx, config); err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: r.Endpoints, TLS: config, Context: context.WithoutCancel(ctx), DialTimeout: answerLimit,
		DialKeepAliveTime: 2 * answerLimit, DialKeepAliveTimeout: answerLimit, Logger: zap.New(newLogCore(r.Log)),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", r, err)
	}
	s := newStore(client, remoteRoot+r.Instance+"/", answerLimit, newFailure())
	s.remedy = "see to etcd at " + r.String()
	if err := s.own(ctx, r); err != nil {
		_ = client.Close()
		return nil, err
	}
	return s, nil
}

// ask asks the members for their version until one answers. This reports wrong addresses and certificates, which the
// client would silently retry for ever.
func (r Remote) ask(ctx context.Context, config *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	var errs []error
	for _, endpoint := range r.Endpoints {
		err := askOne(ctx, client, endpoint)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("connect to etcd: %w: see that it runs there, and to --etcd, --etcd-cacert, --etcd-cert and --etcd-key", errors.Join(errs...))
}

func askOne(ctx context.Context, client http.Client, endpoint string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint, "/")+"/version", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err // it names the URL
	}
	defer response.Body.Close()
	var version struct {
		Server string `json:"etcdserver"`
	}
	if err := json.NewDecoder(response.Body).Decode(&version); err != nil || version.Server == "" {
		return fmt.Errorf("%s: what answers there is no etcd", endpoint)
	}
	return nil
}

// Forget removes all that an external etcd keeps for the instance, whose daemon is gone.
func Forget(ctx context.Context, r Remote) error {
	s, err := Connect(ctx, r)
	if err != nil {
		return err
	}
	_, err = s.client.Delete(ctx, "", clientv3.WithPrefix()) // of the instance's keys
	if err != nil {
		err = fmt.Errorf("remove what etcd at %v keeps for instance %s: %w", r, r.Instance, err)
	}
	return errors.Join(err, s.Close())
}
