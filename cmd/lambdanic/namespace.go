package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func namespaceCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namespace",
		Short: "Share the NIC among tenants: quotas and counters of namespaces",
		Long: "Share the NIC among tenants. Each has a namespace, with quotas and counters of its own. A namespace comes to be with its first function,\n" +
			"ikernel, quota, key or network, and stays until it is removed.",
		Example: "  lambdanic namespace set tenant --lambdas 10 --memory 64MiB\n  lambdanic namespace list\n  lambdanic namespace show tenant",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(namespaceSetCommand(o), namespaceListCommand(o), namespaceShowCommand(o), namespaceRemoveCommand(o),
		namespaceKeyCommand(o), namespaceTagsCommand(o), namespaceNetworkCommand(o))
	return cmd
}

func namespaceSetCommand(o *options) *cobra.Command {
	var flags quotaFlags
	cmd := &cobra.Command{
		Use:   "set NAME [--lambdas NUMBER] [--memory SIZE] [--requests NUMBER] [--nic-time PERCENT] [--weight NUMBER]",
		Short: "Set a namespace's quotas",
		Long: "Set how much may be deployed in a namespace, and how much its lambdas on the NIC may do. The namespace is made if there is none of that\n" +
			"name. A quota without a flag stays as it is. A quota below what is deployed already removes nothing: what would take more is refused from\n" +
			"then on, and the command says so. Requests over quota are refused with an error. Where `up --nic-budget` and `up --nic-bandwidth`\n" +
			"share the NIC out, a namespace gets its part by weight.",
		Example: "  lambdanic namespace set tenant --lambdas 10 --memory 64MiB\n" +
			"  lambdanic namespace set tenant --requests 50000 --nic-time 10%\n" +
			"  lambdanic namespace set tenant --weight 40               # of --nic-budget and --nic-bandwidth\n" +
			"  lambdanic namespace set tenant --memory none             # no limit\n" +
			"  lambdanic namespace set tenant --lambdas 0               # nothing new",
		Args:              explained(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNames(1, listNamespaces(o)),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := flags.change(cmd)
			if err != nil {
				return err
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			n, err := c.SetQuota(cmd.Context(), args[0], change)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), n)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "namespace %s has %s, %s of memory; requests/s %s, NIC time/s %s, weight %d\n", n.Name,
				lambdasOfQuota(n), ofQuota(n.Use.Memory, n.Quota.Memory, humanize.IBytes),
				atMost(n.Quota.Requests, number), atMost(n.Quota.NICTime, percent), n.Quota.ShareWeight())
			for _, text := range n.Over {
				fmt.Fprintf(cmd.OutOrStdout(), "warning: %s\n", ui.Printable(text))
			}
			return nil
		},
	}
	flags.define(cmd)
	return cmd
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// ofQuota is what is used, of what may be.
func ofQuota(used uint64, quota *uint64, show func(uint64) string) string {
	if quota == nil {
		return show(used)
	}
	return show(used) + " of " + show(*quota)
}

// lambdasOfQuota has the word agree with the number before it.
func lambdasOfQuota(n *api.Namespace) string {
	last := n.Use.Lambdas
	if n.Quota.Lambdas != nil {
		last = *n.Quota.Lambdas
	}
	return ofQuota(n.Use.Lambdas, n.Quota.Lambdas, number) + " " + english.PluralWord(int(last), "lambda", "")
}

// atMost is a limit of what is done per second.
func atMost(quota *uint64, show func(uint64) string) string {
	if quota == nil {
		return "unlimited"
	}
	return "<= " + show(*quota)
}

func namespaceListCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List namespaces with their quotas and counters",
		Long: "List namespaces: what they use of their quotas, what they may do per second, and what their lambdas on the NIC counted together, with\n" +
			"those that were removed. NIC TIME is about how long the lambdas ran, from one run in 64; NIC TIME/S is in % of one CPU.",
		Example: "  lambdanic namespace list\n  lambdanic namespace list --json | jq '.[] | select(.over).name'",
		Args:    explained(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			list, err := c.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			var rows [][]string
			for i := range list {
				n := &list[i]
				row := []string{
					n.Name, ofQuota(n.Use.Lambdas, n.Quota.Lambdas, number), ofQuota(n.Use.Memory, n.Quota.Memory, humanize.IBytes),
					atMost(n.Quota.Requests, number), atMost(n.Quota.NICTime, percent), number(n.Quota.ShareWeight()),
				}
				rows = append(rows, append(row, counted(n.Stats)...))
			}
			return ui.Table(cmd.OutOrStdout(), append([]string{"NAME", "LAMBDAS", "MEMORY", "REQUESTS/S", "NIC TIME/S", "WEIGHT"}, countedHead...), rows)
		},
	}
}

var countedHead = []string{"REQUESTS", "REPLIES", "ERRORS", "OVER QUOTA", "OVER SHARE", "OVER BANDWIDTH", "BAD TAGS", "REPLAYED", "DROPS", "NIC TIME"}

// counted are the cells below countedHead.
func counted(s *api.Stats) []string {
	if s == nil {
		return slices.Repeat([]string{"-"}, len(countedHead))
	}
	return []string{
		number(s.Requests), number(s.Replies), number(s.Errors), number(s.OverQuota), number(s.OverShare), number(s.OverBandwidth),
		number(s.BadTags), number(s.Replayed), number(s.Drops),
		s.RunTime().Round(time.Microsecond).String(),
	}
}

func namespaceShowCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a namespace's quotas, counters, functions and ikernels",
		Example:           "  lambdanic namespace show tenant\n  lambdanic namespace show tenant --json | jq .use.memory",
		Args:              explained(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNames(1, listNamespaces(o)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			n, err := c.Namespace(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), n)
			}
			functions, err := c.List(cmd.Context(), n.Name)
			if err != nil {
				return err
			}
			list, err := c.Ikernels(cmd.Context())
			if err != nil {
				return err
			}
			return ui.Table(cmd.OutOrStdout(), nil, namespaceRows(n, functions, list))
		},
	}
}

// namespaceRows has a row for all that keeps the namespace from being removed, too. Of the ikernels, it takes those of the namespace.
func namespaceRows(n *api.Namespace, functions []api.Function, ikernels []api.Ikernel) [][]string {
	rows := [][]string{
		{"name", n.Name},
		{"number", number(uint64(n.Number))},
		{"lambdas", ofQuota(n.Use.Lambdas, n.Quota.Lambdas, number)},
		{"memory", ofQuota(n.Use.Memory, n.Quota.Memory, humanize.IBytes)},
		{"requests/s", atMost(n.Quota.Requests, number)},
		{"NIC time/s", atMost(n.Quota.NICTime, percent)},
		{"weight", number(n.Quota.ShareWeight())},
		{"keys", shownKeys(n.Keys)},
		{"networks", shownNetworks(n.Networks)},
	}
	for i, cell := range counted(n.Stats) {
		rows = append(rows, []string{strings.Replace(strings.ToLower(countedHead[i]), "nic", "NIC", 1), cell})
	}
	for _, text := range n.Over {
		rows = append(rows, []string{"warning", text})
	}
	for i := range functions {
		rows = append(rows, []string{"function " + functions[i].Name, humanize.IBytes(functions[i].Memory)})
	}
	for i := range ikernels {
		if ikernels[i].Namespace != n.Name {
			continue
		}
		whose := ikernels[i].Ikernel
		if a := ikernels[i].Application; a != nil { // which is to end before the namespace is removed
			whose = a.String()
		}
		rows = append(rows, []string{"ikernel " + ikernels[i].Name, whose})
	}
	return rows
}

func namespaceRemoveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME...",
		Aliases:           []string{"rm"},
		Short:             "Forget namespaces without functions and ikernels, with their quotas, keys, networks and counters",
		Long:              "Forget namespaces, with their quotas, keys, networks and counters. A namespace that has functions or ikernels, and the default one, cannot be removed.",
		Example:           "  lambdanic namespace remove tenant",
		Args:              explained(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeNames(0, listNamespaces(o)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			return o.removeEach(cmd, args, "namespace ", func(name string) error { return c.RemoveNamespace(cmd.Context(), name) })
		},
	}
}
