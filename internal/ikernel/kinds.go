package ikernel

import (
	"maps"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels/coapjwt"
	"github.com/lambdanic/lambdanic/ikernels/memcached"
	"github.com/lambdanic/lambdanic/ikernels/sourcefilter"
	"github.com/lambdanic/lambdanic/internal/demux"
)

// An Instance is an ikernel in front of one server.
type Instance interface {
	// Attachment says where it gets packets; nil: nowhere.
	Attachment() *demux.Attachment
	Counters() ([]api.Counter, error)
	// Close detaches it: the server gets all packets again.
	Close() error
}

// A keyed ikernel checks requests by keys.
type keyed interface {
	// SetKeys replaces the keys in one step; undo brings the former ones back.
	SetKeys([]api.IkernelKey) (undo func() error, err error)
}

// A losing ikernel may find that it has to be attached anew.
type losing interface {
	Lost() error // why; nil: it has not
}

// An ailing ikernel may be unable to do for its server what it is for.
type ailing interface {
	Ails() error // why; nil: it is able
}

// A kind says what there is to know of an ikernel.
type kind struct {
	// attach is called on a thread of the server's network namespace.
	attach func(r *api.IkernelRequest, to demux.Server, on *Config) (Instance, error)
	keyed  bool // its instances are keyed
	keeps  bool // it has memory for what it keeps
	limits bool // it has prefixes of sources, and a rate
}

// Kinds names all ikernels.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// kinds are all ikernels, by name. A new one takes a package below ikernels/ and an entry here.
var kinds = map[string]kind{
	"memcached-cache": {keeps: true, attach: func(r *api.IkernelRequest, to demux.Server, on *Config) (Instance, error) {
		c, err := memcached.Attach(memcached.Options{Server: to, Memory: int(r.Memory), Observer: on.observer})
		if err != nil {
			return nil, err // not a Cache that is nil
		}
		return c, nil
	}},
	"coap-jwt": {keyed: true, attach: func(r *api.IkernelRequest, to demux.Server, _ *Config) (Instance, error) {
		g, err := coapjwt.Attach(coapjwt.Options{Server: to, Keys: r.Keys})
		if err != nil {
			return nil, err
		}
		return g, nil
	}},
	"source-filter": {limits: true, attach: func(r *api.IkernelRequest, to demux.Server, _ *Config) (Instance, error) {
		allow, err := sourcefilter.ParsePrefixes(r.Allow)
		if err != nil {
			return nil, err
		}
		f, err := sourcefilter.Attach(sourcefilter.Options{Server: to, Allow: allow, Rate: r.Rate})
		if err != nil {
			return nil, err
		}
		return f, nil
	}},
}
