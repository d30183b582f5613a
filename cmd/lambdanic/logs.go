package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/daemon"
)

func logsCommand(o *options) *cobra.Command {
	var r logs.Request
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "logs [NAME[.NAMESPACE]]",
		Short: "Show what the daemon said, of one function or of all",
		Long: "Show what the daemon said since it came up: what was deployed, refused and removed, and which functions failed, how often and why.\n" +
			"Without a name, all functions are shown, and what is of none. What an earlier daemon said stands in daemon.log in the data directory, where\n" +
			"it ran in the background.",
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
	flags.IntVar(&r.Tail, "tail", 0, "only the last so many lines of what is there; 0 for all")
	flags.DurationVar(&since, "since", 0, "only what was said in this time")
	flags.BoolVarP(&r.Follow, "follow", "f", false, "go on with what is said from now on, until ^C")
	return cmd
}

// showLogs prints what r asks for. The daemon ends a stream some time; who follows asks for the next.
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
		case !r.Follow, err != nil && !errors.Is(err, io.ErrUnexpectedEOF): // with which the daemon ends a stream that took too long
			return err
		}
	}
}
