package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

func ikCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ik",
		Short: "Put accelerators (ikernels) in front of running servers",
		Long: "Put accelerators (ikernels) in front of running servers, which need no change and no restart. An ikernel does in the NIC\n" +
			"what it can; everything else goes to the server as before. There is:\n  " + strings.Join(ikernel.Kinds(), "\n  "),
		Example: "  lambdanic ik attach memcached-cache --port 11211\n  lambdanic ik attach coap-jwt --port 5683 --key /etc/coap/key\n" +
			"  lambdanic ik attach source-filter --port 11211 --allow 10.0.0.0/8 --before memcached-cache-11211\n" +
			"  lambdanic ik stats\n  lambdanic ik detach memcached-cache-11211",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(ikAttachCommand(o), ikDetachCommand(o), ikListCommand(o), ikStatsCommand(o), ikKeysCommand(o))
	return cmd
}

func ikAttachCommand(o *options) *cobra.Command {
	var r api.IkernelRequest
	var keys []string
	cmd := &cobra.Command{
		Use:   "attach IKERNEL --port PORT",
		Short: "Attach an ikernel to a running server",
		Long: "Attach an ikernel to the server that listens at a port. It stays attached until it is detached, and is attached again when the daemon\n" +
			"restarts; with --pid it is detached when that process ends. While no daemon runs, the server gets all packets.",
		Example: "  lambdanic ik attach memcached-cache --port 11211\n" +
			"  lambdanic ik attach memcached-cache --port 11211 --interface eth1 --memory 1GiB\n" +
			"  lambdanic ik attach memcached-cache --port 11211 --pid 4711\n" +
			"  lambdanic ik attach memcached-cache --port 11211 --netns tenant1 --name tenant1 --namespace tenant1\n" +
			"  lambdanic ik attach coap-jwt --port 5683 --key 2026-11=/etc/coap/2026-11.key\n" +
			"  lambdanic ik attach source-filter --port 5683 --allow 192.0.2.0/24,2001:db8::/32 --rate 100 --before coap-jwt-5683",
		Args:      explained(cobra.ExactArgs(1)),
		ValidArgs: ikernel.Kinds(),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("pid") && r.PID <= 0 {
				return fmt.Errorf("%d is not a process: --pid takes the number of one", r.PID)
			}
			r.Ikernel = args[0]
			if r.Keys, err = parseKeys(keys); err != nil {
				return err
			}
			end := ui.Progress(cmd.ErrOrStderr(), "attaching "+r.Ikernel)
			i, err := c.AttachIkernel(cmd.Context(), r)
			end()
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), i)
			}
			return ikTable(cmd, *i)
		},
	}
	f := cmd.Flags()
	f.Uint16Var(&r.Port, "port", 0, "the port at which the server listens")
	f.StringVar(&r.Name, "name", "", "what to call it (default IKERNEL-PORT)")
	f.IntVar(&r.PID, "pid", 0, "the number of the server's process, if it is in another network namespace or for as long as it lives")
	f.StringVar(&r.Netns, "netns", "", "the `name` of the server's network namespace, as ip netns lists it (default the daemon's own)")
	f.StringSliceVar(&r.Interfaces, "interface", nil, "whose packets it sees; several with commas (default those with an address at which the server listens)")
	f.StringVar(&r.Mode, "mode", string(xdp.ModeAuto), "how to attach: auto, native or generic")
	f.TextVar(&r.Memory, "memory", api.Bytes(0), "a `size` as 64MiB or 1GiB for what it keeps (default 64MiB)")
	f.StringVar(&r.Before, "before", "", "the `name` of an ikernel at the same port, which is to get a packet after this one (default: all that are there get it before)")
	f.StringVarP(&r.Namespace, "namespace", "n", "", "the `name` of the namespace in whose share and quotas it is kept (default none: it takes what it needs)")
	f.StringSliceVar(&r.Allow, "allow", nil, "the `prefixes` of sources whose packets pass, as 192.0.2.0/24; several with commas (default all)")
	f.Uint32Var(&r.Rate, "rate", 0, "how many requests a second pass of each source address (default any number)")
	f.StringArrayVar(&keys, "key", nil, "the file of a key by which requests are checked, as `[ID=]FILE`; several by several --key")
	_ = cmd.MarkFlagRequired("port")
	return cmd
}

func ikDetachCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "detach NAME",
		Short:             "Detach an ikernel: the server gets all packets again",
		Example:           "  lambdanic ik detach memcached-cache-11211",
		Args:              explained(cobra.ExactArgs(1)),
		ValidArgsFunction: completeIkernels(o, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			if err := c.DetachIkernel(cmd.Context(), args[0]); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]string{"detached": args[0]})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is detached\n", args[0])
			return err
		},
	}
}

func ikListCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the ikernels and the servers that they are in front of",
		Long: "List the ikernels and the servers that they are in front of, by port, and those that applications have for sockets of their own. Those that share\n" +
			"a port are in the order in which they get a packet. Of an application's it shows the process, the addresses of its sockets, and the fault if the\n" +
			"ikernel gave up; `lambdanic ik stats` counts what became of their datagrams.",
		Example: "  lambdanic ik list\n  lambdanic ik list --json",
		Args:    explained(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ikernels(cmd.Context(), o)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			return ikTable(cmd, list...)
		},
	}
}

// ikernels lists those of the daemon's node.
func ikernels(ctx context.Context, o *options) ([]api.Ikernel, error) {
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	return c.Ikernels(ctx)
}

func ikTable(cmd *cobra.Command, list ...api.Ikernel) error {
	var rows [][]string
	for _, i := range list {
		where := "-"
		switch {
		case i.Application != nil:
			where = i.Application.String()
		case i.PID != 0:
			where = fmt.Sprintf("process %d", i.PID)
		case i.Netns != "":
			where = "netns " + i.Netns
		}
		state := string(i.State)
		if i.Reason != "" {
			state += ": " + i.Reason
		}
		port, order, namespace := "-", "-", cmp.Or(i.Namespace, "-")
		if i.Port != 0 {
			port = fmt.Sprint(i.Port)
		}
		if i.Places > 0 {
			order = fmt.Sprintf("%d of %d", i.Place, i.Places)
		}
		rows = append(rows, []string{i.Name, i.Ikernel, port, order, namespace, where, strings.Join(ikAttachedTo(&i), ", "), state})
	}
	return ui.Table(cmd.OutOrStdout(), []string{"NAME", "IKERNEL", "PORT", "ORDER", "NAMESPACE", "WHERE", "ATTACHED TO", "STATE"}, rows)
}

// ikAttachedTo names interfaces, or an application's sockets.
func ikAttachedTo(i *api.Ikernel) (all []string) {
	for _, a := range i.Attached {
		all = append(all, a.Interface+" ("+a.Mode+")")
	}
	if i.Application == nil {
		return all
	}
	for _, s := range i.Application.Sockets {
		name := s.Protocol + " " + s.Own.String()
		if s.Peer.IsValid() {
			name += " from " + s.Peer.String()
		}
		all = append(all, name)
	}
	return all
}

func ikStatsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "stats [NAME...]",
		Short:             "Show what ikernels have counted since they were attached",
		Long:              "Show what ikernels have counted since they were attached. Without a name, all are shown.",
		Example:           "  lambdanic ik stats\n  watch lambdanic ik stats memcached-cache-11211",
		ValidArgsFunction: completeIkernels(o, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := ikernels(cmd.Context(), o)
			if err != nil {
				return err
			}
			if list, err = chooseIkernels(list, args); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			var rows [][]string
			for _, i := range list {
				for _, n := range i.Counters {
					rows = append(rows, []string{i.Name, cmp.Or(i.Namespace, "-"), n.Name, fmt.Sprint(n.Value), n.Help})
				}
			}
			return ui.Table(cmd.OutOrStdout(), []string{"NAME", "NAMESPACE", "COUNTER", "VALUE", "WHAT IT COUNTS"}, rows)
		},
	}
}

// chooseIkernels returns those of these names, all where there is none.
func chooseIkernels(list []api.Ikernel, names []string) ([]api.Ikernel, error) {
	if len(names) == 0 {
		return list, nil
	}
	chosen := []api.Ikernel{}
	for _, name := range names {
		i := slices.IndexFunc(list, func(i api.Ikernel) bool { return i.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: %s: `lambdanic ik list` shows those that are attached", ikernel.ErrNotFound, name)
		}
		chosen = append(chosen, list[i])
	}
	return chosen, nil
}
