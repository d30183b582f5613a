package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/compiler/report"
	"github.com/lambdanic/lambdanic/compiler/target"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// buildFlags select what build does instead of printing an image.
type buildFlags struct {
	report, verbose, fused bool
	emit, target           string
}

func buildCommand(o *options) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [DIR...]",
		Short: "Compile a lambda and print its image",
		Long: "Compile a lambda, the one in this directory by default, and print its image, which deploy takes. No daemon is needed.\n" +
			"With --report, --emit, --target, --verbose or --fused, print details of the result instead.",
		Example: "  lambdanic build lambdas/web_server\n  lambdanic build --report lambdas/web_server\n  lambdanic build --target nfp lambdas/web_server\n" +
			"  lambdanic build --fused lambdas/*",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.fused {
				return cobra.MinimumNArgs(1)(cmd, args)
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.fused {
				return buildFused(cmd.Context(), cmd.OutOrStdout(), o, args)
			}
			if f != (buildFlags{}) {
				return f.run(cmd, o, dirArg(args))
			}
			p, err := o.paths()
			if err != nil {
				return err
			}
			end := ui.Progress(cmd.ErrOrStderr(), "compiling")
			a, err := daemon.Build(cmd.Context(), p, dirArg(args))
			end()
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), a)
			}
			fmt.Fprint(cmd.ErrOrStderr(), a.Log)
			sayNotBuilt(cmd, a)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), a.Image)
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.report, "report", false, "say what the compiler made of the lambda and why (as root, with the kernel's verifier)")
	flags.StringVar(&f.emit, "emit", "", "print an intermediate form: "+compiler.FormNames())
	flags.StringVar(&f.target, "target", "", "say what keeps the lambda off a card's processor: nfp, an Agilio CX")
	flags.BoolVar(&f.verbose, "verbose", false, "load the lambda and print the kernel's verifier's whole log (needs root)")
	flags.BoolVar(&f.fused, "fused", false, "make one program of several lambdas, and say how it becomes smaller step by step")
	cmd.MarkFlagsMutuallyExclusive("report", "emit", "target", "verbose", "fused")
	return cmd
}

// sayNotBuilt names the targets that a compiled lambda was not built for.
func sayNotBuilt(cmd *cobra.Command, a *api.Artifact) {
	warn := ui.Colour(cmd.ErrOrStderr(), ui.Yellow, "warning:")
	for _, r := range a.Refused {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s %s is not built for %s, and will run elsewhere: %s\n", warn, a.Spec.Name, r.Target, r.Reason)
	}
}

// dirArg is the lambda's directory, by default the current one.
func dirArg(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func (f *buildFlags) run(cmd *cobra.Command, o *options, dir string) error {
	source, err := compiler.PackSource(dir)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case f.report:
		r, err := report.Make(cmd.Context(), source, report.Options{Verify: os.Geteuid() == 0})
		if err != nil {
			return err
		}
		if o.json {
			return ui.JSON(out, r)
		}
		return r.Text(out)
	case f.emit != "":
		text, err := compiler.Emit(cmd.Context(), source, compiler.Form(f.emit))
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	if f.target != "" {
		return f.checkTarget(cmd.Context(), out, o, source)
	}
	a, err := compiler.BuildSource(cmd.Context(), source, compiler.Options{})
	if err != nil {
		return err
	}
	object, err := a.Object(api.TargetNIC)
	if err != nil {
		return err
	}
	return printLog(out, o, object)
}

// printLog prints the verifier's log, whether it accepts the program or not.
func printLog(w io.Writer, o *options, object []byte) error {
	v, err := report.Verify(object, true)
	var objection *diagnose.Objection
	var log []string
	switch {
	case err == nil:
		log = v.Log
	case errors.As(err, &objection):
		log = objection.Log
	default:
		return err
	}
	if o.json {
		return errors.Join(err, ui.JSON(w, log))
	}
	for _, line := range log {
		fmt.Fprintln(w, ui.Printable(line))
	}
	return err
}

// errOffload is the result of a check that found something.
var errOffload = errors.New("the lambda does not run there")

func (f *buildFlags) checkTarget(ctx context.Context, w io.Writer, o *options, source []byte) error {
	if f.target != "nfp" {
		return fmt.Errorf("%w: --target %q: there is nfp", target.ErrUnknown, f.target)
	}
	found, err := report.Offload(ctx, source)
	if err != nil {
		return err
	}
	if o.json {
		if err := ui.JSON(w, found); err != nil {
			return err
		}
	} else {
		for _, v := range found {
			fmt.Fprintln(w, ui.Printable(v.String()))
		}
	}
	if len(found) > 0 {
		return errOffload
	}
	if !o.json {
		fmt.Fprintln(w, "nothing that is known of the card keeps the lambda off it")
	}
	return nil
}
