package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func rdmaCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rdma",
		Short: "Let peers write into a lambda's memory by RDMA (RoCEv2)",
		Long: "Let peers write into the memory of a lambda on the NIC by RDMA (RoCEv2). A region is that memory; a queue pair is a connection\n" +
			"by which one peer may write to the lambda's regions. docs/rdma.md says how to set the peer up.",
		Example: "  lambdanic rdma region add image_transformer --method 1\n  lambdanic rdma qp add image_transformer --peer 192.0.2.7 --peer-qpn 0x11 --psn 0\n" +
			"  lambdanic rdma write image_transformer image.rgba --method 1",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var namespace string
	cmd.PersistentFlags().StringVarP(&namespace, "namespace", "n", "", "the function's namespace")
	group := func(use, short, example string, of ...*cobra.Command) *cobra.Command {
		g := &cobra.Command{Use: use, Short: short, Example: example, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
		for _, c := range of {
			c.Args = explained(c.Args)
			c.ValidArgsFunction = completeFunctions(o, 1)
		}
		g.AddCommand(of...)
		return g
	}
	write := rdmaWriteCommand(o, &namespace)
	write.Args = explained(write.Args)
	cmd.AddCommand(
		group("region", "Register, list and revoke memory for peers", "  lambdanic rdma region list image_transformer",
			regionAddCommand(o, &namespace), regionListCommand(o, &namespace),
			rdmaRemoveCommand(o, &namespace, "RKEY", "Revoke a region: what is being written to it is refused", "  lambdanic rdma region remove image_transformer 0x5f3a2c00", (*daemon.Client).RemoveRegion)),
		group("qp", "Make, list and remove queue pairs", "  lambdanic rdma qp list image_transformer",
			queuePairAddCommand(o, &namespace), queuePairListCommand(o, &namespace),
			rdmaRemoveCommand(o, &namespace, "QPN", "Remove a queue pair", "  lambdanic rdma qp remove image_transformer 0x2f4401", (*daemon.Client).RemoveQueuePair)),
		write)
	return cmd
}

func regionAddCommand(o *options, namespace *string) *cobra.Command {
	var r api.RegionRequest
	cmd := &cobra.Command{
		Use:   "add NAME[.NAMESPACE]",
		Short: "Register memory of a lambda's running revision",
		Long: "Register memory of a lambda's running revision for peers to write a message to. The spec says how many there may be\n" +
			"(message.regions). Deploying another revision revokes them.",
		Example: "  lambdanic rdma region add image_transformer --method 1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			region, err := c.AddRegion(cmd.Context(), in, name, r)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), region)
			}
			return regionTable(cmd, *region)
		},
	}
	cmd.Flags().TextVar(&r.Length, "length", api.Bytes(0), "a `size` as 64KiB or 16MiB; 0: the lambda's longest message")
	cmd.Flags().Uint32Var(&r.Method, "method", 0, "method of messages that come without immediate data")
	return cmd
}

func regionListCommand(o *options, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list NAME[.NAMESPACE]",
		Short:   "List a lambda's regions",
		Example: "  lambdanic rdma region list image_transformer --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			list, err := c.Regions(cmd.Context(), in, name)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			return regionTable(cmd, list...)
		},
	}
}

func regionTable(cmd *cobra.Command, list ...api.Region) error {
	var rows [][]string
	for _, r := range list {
		rows = append(rows, []string{fmt.Sprintf("%#x", r.RKey), fmt.Sprintf("%#x", r.Address), fmt.Sprint(r.Length), fmt.Sprint(r.Method), fmt.Sprint(r.Revision), fmt.Sprint(r.Runs)})
	}
	return ui.Table(cmd.OutOrStdout(), []string{"RKEY", "ADDRESS", "BYTES", "METHOD", "REVISION", "RUNS"}, rows)
}

// A number24 is a number of a queue pair or packet, decimal or with 0x before it.
type number24 uint32

func (n *number24) String() string { return fmt.Sprintf("%#x", uint32(*n)) }
func (n *number24) Type() string   { return "number" }
func (n *number24) Set(s string) error {
	v, err := strconv.ParseUint(s, 0, 24)
	if err != nil {
		return errors.New("it has to be a number of 24 bits, as 17 or 0x11")
	}
	*n = number24(v)
	return nil
}

func queuePairAddCommand(o *options, namespace *string) *cobra.Command {
	var r api.QueuePairRequest
	var receive, transport, icrc string
	cmd := &cobra.Command{
		Use:   "add NAME[.NAMESPACE] --peer ADDRESS --peer-qpn NUMBER --psn NUMBER",
		Short: "Make the NIC's half of a connection",
		Long:  "Make the NIC's half of a connection to a lambda. Give what it prints to the peer: see docs/rdma.md.",
		Example: "  lambdanic rdma qp add image_transformer --peer 192.0.2.7 --peer-qpn 0x11 --psn 0x123456 --mtu 1024\n" +
			"  lambdanic rdma qp add image_transformer --peer 2001:db8::7 --peer-qpn 17 --transport uc --icrc trust --json",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if receive != "" {
				key, err := strconv.ParseUint(receive, 0, 32)
				if err != nil {
					return fmt.Errorf("--receive %q: give a region's RKEY", receive)
				}
				r.Receive = uint32(key)
			}
			r.Transport, r.ICRC = api.Transport(transport), api.ICRC(icrc)
			name, in := qualified(args[0], *namespace)
			q, err := c.AddQueuePair(cmd.Context(), in, name, r)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), q)
			}
			return queuePairTable(cmd, *q)
		},
	}
	f := cmd.Flags()
	f.TextVar(&r.Peer, "peer", netip.Addr{}, "the peer's IP `address`")
	f.Var((*number24)(&r.PeerQPN), "peer-qpn", "the number of the peer's queue pair")
	f.Var((*number24)(&r.PSN), "psn", "the sequence number of the peer's first packet")
	f.IntVar(&r.MTU, "mtu", 1024, "payload of a packet: 256, 512, 1024, 2048 or 4096")
	f.StringVar(&transport, "transport", "rc", "rc (reliable) or uc (unreliable)")
	f.StringVar(&icrc, "icrc", "check", "check the packets' ICRC, or trust the link's checksum")
	f.StringVar(&receive, "receive", "", "RKEY of the region that SENDs go to")
	for _, name := range []string{"peer", "peer-qpn"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func queuePairListCommand(o *options, namespace *string) *cobra.Command {
	return &cobra.Command{
		Use:     "list NAME[.NAMESPACE]",
		Short:   "List a lambda's queue pairs and their counters",
		Example: "  lambdanic rdma qp list image_transformer --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			list, err := c.QueuePairs(cmd.Context(), in, name)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			return queuePairTable(cmd, list...)
		},
	}
}

func queuePairTable(cmd *cobra.Command, list ...api.QueuePair) error {
	var rows [][]string
	for _, q := range list {
		state := "ready"
		if q.Broken {
			state = "broken"
		}
		rows = append(rows, []string{
			fmt.Sprintf("%#x", q.QPN), q.Address.String(), cmp.Or(string(q.Transport), "rc"), fmt.Sprint(q.MTU), string(q.ICRC), q.Peer.String(),
			fmt.Sprintf("%#x", q.PeerQPN), fmt.Sprintf("%#x", q.NextPSN), state, fmt.Sprint(q.Messages), fmt.Sprint(q.Bytes),
		})
	}
	return ui.Table(cmd.OutOrStdout(), []string{"QPN", "ADDRESS", "TYPE", "MTU", "ICRC", "PEER", "PEER-QPN", "NEXT-PSN", "STATE", "MESSAGES", "BYTES"}, rows)
}

func rdmaRemoveCommand(o *options, namespace *string, what, short, example string,
	remove func(*daemon.Client, context.Context, string, string, uint32) error,
) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME[.NAMESPACE] " + what,
		Short:   short,
		Example: example,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[1], 0, 32)
			if err != nil {
				return fmt.Errorf("%q is no %s: write it as `list` shows it", args[1], what)
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], *namespace)
			if err := remove(c, cmd.Context(), in, name, uint32(number)); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]any{"removed": number})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %#x of %s is gone\n", what, number, args[0])
			return err
		},
	}
}
