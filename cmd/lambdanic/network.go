package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ethtool"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func namespaceNetworkCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Give a namespace virtual networks, by which alone its functions are reached",
		Long: "Give a namespace virtual networks: VLANs and VXLANs. On a NIC, packets in a network reach only the functions of its namespace, and the\n" +
			"functions of a namespace that has networks are reached by packets in these alone. A network belongs to one namespace.",
		Example: "  lambdanic namespace network add tenant vlan:100\n  lambdanic namespace network remove tenant vlan:100",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(networkAddCommand(o), networkRemoveCommand(o))
	return cmd
}

func networkAddCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "add NAMESPACE vlan:ID|vxlan:ID",
		Short: "Give a namespace a network",
		Long: "Give a namespace a network. From its first one on, its functions are reached by its networks alone: make sure that their clients are there.\n" +
			"A namespace that there is not is made. It can have " + fmt.Sprint(api.MaxNamespaceNetworks) + " networks.",
		Example:           "  lambdanic namespace network add tenant vlan:100\n  lambdanic namespace network add tenant vxlan:5001",
		Args:              explained(cobra.ExactArgs(2)),
		ValidArgsFunction: completeNewNetwork(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			network, c, err := o.network(args[1])
			if err != nil {
				return err
			}
			n, err := c.AddNetwork(cmd.Context(), args[0], network)
			if err != nil {
				return err
			}
			if node, err := c.Node(cmd.Context()); err == nil && network.Kind == api.NetworkVLAN {
				warnOfStripping(cmd.ErrOrStderr(), node.Targets, ethtool.StripsVLAN)
			}
			return o.printNetworks(cmd, n)
		},
	}
}

// warnOfStripping names the interfaces of the NIC whose programs see no VLAN tags. Where that cannot be told, it names none.
func warnOfStripping(w io.Writer, targets []api.NodeTarget, strips func(iface string) (bool, error)) {
	for _, t := range targets {
		for _, iface := range t.Interfaces {
			if on, err := strips(iface); err == nil && on {
				fmt.Fprintf(w, "warning: %s takes VLAN tags out of packets before the NIC program sees them: turn that off with `ethtool -K %s rxvlan off`\n", iface, iface)
			}
		}
	}
}

func networkRemoveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAMESPACE vlan:ID|vxlan:ID",
		Aliases:           []string{"rm"},
		Short:             "Take a network from a namespace",
		Long:              "Take a network from a namespace. Without its last one, its functions are reached by packets in no network, as those of any other namespace.",
		Example:           "  lambdanic namespace network remove tenant vlan:100",
		Args:              explained(cobra.ExactArgs(2)),
		ValidArgsFunction: completeOwned(o, networksOf),
		RunE: func(cmd *cobra.Command, args []string) error {
			network, c, err := o.network(args[1])
			if err != nil {
				return err
			}
			n, err := c.RemoveNetwork(cmd.Context(), args[0], network)
			if err != nil {
				return err
			}
			return o.printNetworks(cmd, n)
		},
	}
}

// network reads a network's text, and gives the daemon's client.
func (o *options) network(text string) (network api.Network, c *daemon.Client, err error) {
	if network, err = api.ParseNetwork(text); err == nil {
		c, err = o.client()
	}
	return network, c, err
}

// printNetworks says by which networks a namespace's functions are reached now.
func (o *options) printNetworks(cmd *cobra.Command, n *api.Namespace) error {
	if o.json {
		return ui.JSON(cmd.OutOrStdout(), n)
	}
	if len(n.Networks) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "namespace %s has no networks: packets in no network reach its functions; give it one with `lambdanic namespace network add %s vlan:ID`\n", n.Name, n.Name)
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "the functions of namespace %s on the NIC are reached by %s alone; see `lambdanic namespace show %s`\n", n.Name, shownNetworks(n.Networks), n.Name)
	return nil
}

// shownNetworks are a namespace's networks in a table.
func shownNetworks(list []api.Network) string {
	if len(list) == 0 {
		return "none"
	}
	var texts []string
	for _, n := range list {
		texts = append(texts, n.String())
	}
	return strings.Join(texts, ", ")
}
