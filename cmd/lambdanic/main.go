// Command lambdanic runs lambdas in the network data path, and manages them.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func main() {
	keepFromChildren()
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(os.Stderr, "%s %v\n", ui.Colour(os.Stderr, ui.Red, "lambdanic:"), err)
		stop()
		os.Exit(1)
	}
}

// keepFromChildren keeps files that our caller left open from our children: these are compilers of untrusted sources, and
// processes that outlive us. It may fail on kernels before 5.11: the children also close the files they know of.
func keepFromChildren() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

// options are the flags that every subcommand has.
type options struct {
	instance, dataDir, runDir string
	json                      bool
}

func (o *options) paths() (daemon.Paths, error) {
	return daemon.NewPaths(o.instance, o.dataDir, o.runDir)
}

func (o *options) client() (*daemon.Client, error) {
	p, err := o.paths()
	if err != nil {
		return nil, err
	}
	return daemon.NewClient(p), nil
}

func root() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:           "lambdanic",
		Short:         "Run small functions in the network data path",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		// Without RunE, cobra does not check arguments.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if cmd.Name() == cobra.ShellCompRequestCmd {
				plainUsages(cmd.Root())
			}
		},
	}
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetVersionTemplate("{{.Version}}\n")
	flags := cmd.PersistentFlags()
	instance := os.Getenv("LAMBDANIC_INSTANCE")
	if instance == "" {
		instance = daemon.DefaultInstance
	}
	flags.StringVar(&o.instance, "instance", instance, "which instance to speak to (or LAMBDANIC_INSTANCE)")
	flags.StringVar(&o.dataDir, "data-dir", "", "where instances keep what must survive (/var/lib/lambdanic for root)")
	flags.StringVar(&o.runDir, "run-dir", "", "where instances keep sockets and records (/run/lambdanic for root)")
	flags.BoolVar(&o.json, "json", false, "print results as JSON")
	cmd.AddCommand(upCommand(o), downCommand(o), buildCommand(o), deployCommand(o), invokeCommand(o), listCommand(o),
		describeCommand(o), removeCommand(o), statsCommand(o), logsCommand(o), newCommand(o), testCommand(o), doctorCommand(o), benchCommand(o), demoCommand(o),
		versionCommand(o), objectCommand(o), namespaceCommand(o), rdmaCommand(o), ikCommand(o), simCommand(o), othelloCommand(o))
	for _, c := range cmd.Commands() {
		c.Args = explained(c.Args)
	}
	refuseUnknown(cmd)
	completeFlags(cmd, flagCompletions(o))
	return cmd
}

// nameInstance gives a command --name, another name of --instance.
func nameInstance(cmd *cobra.Command, o *options) {
	cmd.Flags().StringVar(&o.instance, "name", o.instance, "the instance, as --instance")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("name") && cmd.Flags().Changed("instance") {
			return errors.New("--name and --instance are one and the same: leave one of them out")
		}
		return nil
	}
}

// refuseUnknown has a command that groups others, and takes no arguments itself, refuse what is none of them.
func refuseUnknown(cmd *cobra.Command) {
	if cmd.HasSubCommands() && cmd.Args == nil {
		cmd.Args = knownCommand
	}
	for _, c := range cmd.Commands() {
		refuseUnknown(c)
	}
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q: did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q: `%s --help` names them all", args[0], cmd.CommandPath())
}

// commit is the commit that was built. The linker sets it (Makefile).
var commit string

// next is the release that this source becomes.
const next = "0.1.0"

// version is the built version, by semantic versioning: a release, or a commit before the next release.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") && !strings.HasPrefix(info.Main.Version, "v0.0.0-") {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	if commit == "" {
		return next + "-dev"
	}
	return next + "-dev+" + commit[:min(12, len(commit))]
}

// explained adds the command's usage to errors about arguments, none of which may be empty.
func explained(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: write `%s`", err, cmd.UseLine())
		}
		if slices.Contains(args, "") { // as from an unset variable
			return fmt.Errorf("an argument is empty: write `%s`", cmd.UseLine())
		}
		return nil
	}
}
