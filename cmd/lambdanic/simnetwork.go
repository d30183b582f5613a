package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
)

// simNetwork are the links and the switch that take messages.
type simNetwork struct {
	transport string
	rate      float64
	mtu       int
	needs     []string // flags that do nothing without --network
}

// flags adds the flags; needs are further ones that belong to them.
func (n *simNetwork) flags(cmd *cobra.Command, needs ...string) {
	f := cmd.Flags()
	f.StringVar(&n.transport, "network", "", "send over links and a switch: queued, ndp or homa (without limit)")
	f.Float64Var(&n.rate, "rate", 100, "Gbit/s of a link (--network)")
	f.IntVar(&n.mtu, "mtu", 1500, "bytes of payload in a packet (--network)")
	n.needs = append([]string{"rate", "mtu"}, needs...)
}

// config is what the flags say; nil without --network.
func (n *simNetwork) config(cmd *cobra.Command, hop event.Time) (*network.Config, error) {
	if n.transport == "" {
		for _, name := range n.needs {
			if cmd.Flags().Changed(name) {
				return nil, fmt.Errorf("--%s is for links and a switch: give --network, too", name)
			}
		}
		return nil, nil
	}
	c := &network.Config{Rate: int64(n.rate * 1e9), Hop: hop, MTU: n.mtu}
	var err error
	if c.Transport, err = network.ParseTransport(n.transport); err != nil {
		return nil, fmt.Errorf("--network: %w", err)
	}
	return c, nil
}
