package gateway

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// Every endpoint has one λ-RPC client, which all requests share. A client that was not used for a while is closed: processes come
// and go, and each has its own port.
const clientIdle = time.Minute

type clients struct {
	mu   sync.Mutex
	open map[netip.AddrPort]*sharedClient
}

type sharedClient struct {
	*lambdanic.Client
	calls int       // in flight
	used  time.Time // last
}

// get returns the client for an endpoint. Call release when done with it.
func (c *clients) get(endpoint netip.AddrPort) (client *lambdanic.Client, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	s, ok := c.open[endpoint]
	if !ok {
		c.closeIdle(now)
		dialled, err := lambdanic.Dial(endpoint.String())
		if err != nil {
			return nil, nil, fmt.Errorf("reach %v: %w", endpoint, err)
		}
		s = &sharedClient{Client: dialled}
		if c.open == nil {
			c.open = make(map[netip.AddrPort]*sharedClient)
		}
		c.open[endpoint] = s
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
	for endpoint, s := range c.open {
		if s.calls == 0 && now.Sub(s.used) > clientIdle {
			_ = s.Close()
			delete(c.open, endpoint)
		}
	}
}

func (c *clients) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for endpoint, s := range c.open {
		_ = s.Close()
		delete(c.open, endpoint)
	}
}
