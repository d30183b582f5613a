package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/examples"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func testCommand(o *options) *cobra.Command {
	var services map[string]string
	var targets []string
	cmd := &cobra.Command{
		Use:   "test [DIR...]",
		Short: "Test lambdas with the requests and replies of their examples.yml",
		Long: "Build lambdas, the one in this directory by default, deploy each to those of the targets nic and process that its spec names,\n" +
			"send it the requests of its examples.yml, and compare the answers. Running instances are left alone.",
		Example: "  sudo lambdanic test hello\n" +
			"  sudo lambdanic test lambdas/web_server lambdas/image_transformer --target nic\n" +
			"  sudo lambdanic test lambdas/kv_client --service memcached=host:11211",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			opts := examples.Options{
				Services: services,
				Progress: func(what string) func() { return ui.Progress(cmd.ErrOrStderr(), what) },
				Log:      func(text string) { fmt.Fprint(cmd.ErrOrStderr(), text) },
			}
			for _, t := range targets {
				opts.Targets = append(opts.Targets, api.Target(t))
			}
			results, err := examples.Run(cmd.Context(), args, opts)
			if err != nil {
				return err
			}
			if o.json {
				err = ui.JSON(cmd.OutOrStdout(), results)
			} else {
				err = writeResults(cmd.OutOrStdout(), results)
			}
			return errors.Join(err, examples.Failed(results))
		},
	}
	cmd.Flags().StringSliceVar(&targets, "target", nil, "where to run, in place of the spec's targets: nic, process, or both with a comma between")
	cmd.Flags().StringToStringVar(&services, "service", nil, "address of an external service: `NAME=IP:PORT` or NAME=host:PORT")
	return cmd
}

func writeResults(w io.Writer, results []examples.Result) error {
	for _, r := range results {
		line := fmt.Sprintf("ok    %s on %s: %s", r.Lambda, r.Target, r.Example)
		switch {
		case r.Skipped != "":
			line = fmt.Sprintf("skip  %s on %s: %s", r.Lambda, r.Target, r.Skipped)
		case r.Error != "":
			line = fmt.Sprintf("FAIL  %s on %s: %s: %s", r.Lambda, r.Target, r.Example, r.Error)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
