package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func logsCommand(o *options) *cobra.Command {
	var r logs.Request
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "logs [NAME[.NAMESPACE]]",
		Short: "Show what the daemon said, of one function or of all",
		Long: "Show what the daemon said since it came up: what was deployed, refused and removed, and which functions failed, how often and why.\n" +
			"Without a name, it shows the messages of all functions, and of the daemon itself. Those of an earlier daemon are in daemon.log in the data\n" +
			"directory, if it ran in the background. A name that no function has or had is an error, unless --follow waits for it.",
		Example:           "  lambdanic logs\n  lambdanic logs web_server --since 10m\n  lambdanic logs --tail 20 --follow",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeFunctions(o, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Tail < 0 || since < 0 {
				return errors.New("--tail and --since cannot be negative")
			}
			c, err := o.client()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				r.Name, r.Namespace = qualified(args[0], r.Namespace)
				switch err := heardOf(cmd.Context(), c, r); {
				case err != nil && r.Follow && errors.Is(err, store.ErrNotFound): // it may come
					fmt.Fprintf(cmd.ErrOrStderr(), "%s %v\n", ui.Colour(cmd.ErrOrStderr(), ui.Yellow, "waiting:"), err)
				case err != nil:
					return err
				}
			}
			if since > 0 {
				from := time.Now().Add(-since)
				r.Since = &from
			}
			return showLogs(cmd, c, r, o.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.Namespace, "namespace", "n", "", "only this namespace")
	flags.IntVar(&r.Tail, "tail", 0, "only the last so many existing lines; 0 for all")
	flags.DurationVar(&since, "since", 0, "only what was said in the last `duration`, as 90s or 10m; 0s for all")
	flags.BoolVarP(&r.Follow, "follow", "f", false, "go on with new messages, until ^C")
	return cmd
}

// heardOf checks that the function that r names exists, or that the daemon still has records of it.
func heardOf(ctx context.Context, c *daemon.Client, r logs.Request) error {
	in := cmp.Or(r.Namespace, api.DefaultNamespace)
	list, err := c.List(ctx, in)
	if err != nil || slices.ContainsFunc(list, func(f api.Function) bool { return f.Name == r.Name }) {
		return err
	}
	said := false
	last := logs.Request{Name: r.Name, Namespace: r.Namespace, Tail: 1}
	if err := c.Logs(ctx, last, func(logs.Message) error { said = true; return nil }); err != nil || said {
		return err
	}
	return fmt.Errorf("%w: %s/%s, and nothing was said of one: `lambdanic list` names them all", store.ErrNotFound, in, r.Name)
}

// showLogs prints what r asks for. With --follow, it asks for another stream when one ends.
func showLogs(cmd *cobra.Command, c *daemon.Client, r logs.Request, asJSON bool) error {
	out := cmd.OutOrStdout()
	for {
		err := c.Logs(cmd.Context(), r, func(m logs.Message) error {
			next := m.Timestamp.Add(time.Nanosecond)
			r.Since, r.Tail = &next, 0
			if asJSON {
				return json.NewEncoder(out).Encode(m)
			}
			_, err := fmt.Fprintf(out, "%s %s\n", m.Timestamp.Local().Format("2006-01-02 15:04:05.000"), m.Text)
			return err
		})
		switch {
		case cmd.Context().Err() != nil:
			return nil // ^C
		case !r.Follow, err != nil && !errors.Is(err, io.ErrUnexpectedEOF): // the error of a broken stream
			return err
		}
	}
}
