package gateway

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// Every endpoint has one λ-RPC client, and one for each key, which all requests share. A client that was not used for a while is closed: processes come
// and go, and each has its own port.
const clientIdle = time.Minute

type clients struct {
	mu   sync.Mutex
	open map[destination]*sharedClient
}

// A destination is an endpoint, and the key of those whose calls are tagged.
type destination struct {
	endpoint netip.AddrPort
	key      api.Key
}

type sharedClient struct {
	*lambdanic.Client
	calls int       // in flight
	used  time.Time // last
}

// get returns the client for an endpoint, which tags its calls if there is a key. Call release when done with it.
func (c *clients) get(endpoint netip.AddrPort, key *api.Key) (client *lambdanic.Client, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	to := destination{endpoint: endpoint}
	var opts []lambdanic.Option
	if key != nil {
		to.key = *key
		opts = append(opts, lambdanic.WithKey(*key))
	}
	s, ok := c.open[to]
	if !ok {
		c.closeIdle(now)
		dialled, err := lambdanic.Dial(endpoint.String(), opts...)
		if err != nil {
			return nil, nil, fmt.Errorf("reach %v: %w", endpoint, err)
		}
		s = &sharedClient{Client: dialled}
		if c.open == nil {
			c.open = make(map[destination]*sharedClient)
		}
		c.open[to] = s
	}
	s.calls++
	return s.Client, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.calls--
		s.used = time.Now()
	}, nil
}

func (c *clients) closeIdle(now time.Time) {
	for to, s := range c.open {
		if s.calls == 0 && now.Sub(s.used) > clientIdle {
			_ = s.Close()
			delete(c.open, to)
		}
	}
}

func (c *clients) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for to, s := range c.open {
		_ = s.Close()
		delete(c.open, to)
	}
}
