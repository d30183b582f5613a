package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openfaas/faas-provider/types"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

type deployFlags struct {
	file, name, namespace, image string
	fused                        bool
	targets                      []string
	services, env                map[string]string
	labels, annotations          map[string]string
}

func deployCommand(o *options) *cobra.Command {
	var flags deployFlags
	cmd := &cobra.Command{
		Use:   "deploy [DIR...]",
		Short: "Compile lambdas and make them serve",
		Long: "Compile lambdas, the one in this directory by default, and make each serve. A new revision takes over from the one that\n" +
			"serves without losing a packet; when no target takes it, the one that serves goes on.\n" +
			"With --fused, several lambdas become one program on the NIC, and serve as functions of their own, all of them or none.",
		Example: "  lambdanic deploy lambdas/web_server\n" +
			"  lambdanic deploy lambdas/web_server lambdas/image_transformer\n" +
			"  lambdanic deploy lambdas/web_server --name web_server-process --target process\n" +
			"  lambdanic deploy lambdas/kv_client --service memcached=192.0.2.7:11211\n" +
			"  lambdanic deploy -f stack.yml\n" +
			"  lambdanic deploy --fused lambdas/web_server lambdas/kv_client",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("target") && cmd.Flags().Changed("targets") {
				return errors.New("--target and --targets both say where the function is to run: leave one of them out")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.paths()
			if err != nil {
				return err
			}
			wanted, err := flags.functions(args)
			if err != nil {
				return err
			}
			if flags.fused {
				return deployFused(cmd, o, p, wanted)
			}
			var deployed []*api.Function
			for _, fn := range wanted {
				end := ui.Progress(cmd.ErrOrStderr(), "deploying "+fn.Service)
				f, log, err := deploy(cmd.Context(), p, fn)
				end()
				fmt.Fprint(cmd.ErrOrStderr(), log)
				if err != nil {
					return err
				}
				deployed = append(deployed, f)
				if !o.json {
					sayDeployed(cmd, f)
				}
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), deployed)
			}
			return nil
		},
	}
	set := cmd.Flags()
	set.BoolVar(&flags.fused, "fused", false, "make one program of several lambdas, for the NIC, and have each serve from it")
	set.StringVarP(&flags.file, "file", "f", "", "deploy the functions of a stack.yml")
	set.StringVar(&flags.name, "name", "", "name to deploy under (the lambda's own)")
	set.StringVarP(&flags.namespace, "namespace", "n", "", "namespace to deploy in")
	set.StringVar(&flags.image, "image", "", "deploy what build printed, in place of a directory")
	set.StringSliceVar(&flags.targets, "targets", nil, "targets in order of preference, in place of the spec's: nic,process")
	set.StringSliceVar(&flags.targets, "target", nil, "one target, in place of the spec's: nic or process")
	set.StringToStringVar(&flags.services, "service", nil, "address of an external service: `NAME=IP:PORT` or NAME=host:PORT, several in quotes with spaces between")
	set.StringToStringVarP(&flags.env, "env", "e", nil, "variables to keep with the function: `NAME=VALUE`")
	set.StringToStringVarP(&flags.labels, "label", "l", nil, "labels: `NAME=VALUE`")
	set.StringToStringVar(&flags.annotations, "annotation", nil, "annotations: `NAME=VALUE`")
	return cmd
}

// function is what to deploy: a lambda's directory, or a built image.
type function struct {
	types.FunctionDeployment
	dir  string   // "" where Image is set
	spec api.Spec // once it is built
}

// functions says what to deploy: a stack's functions, or those that arguments and flags describe.
func (d *deployFlags) functions(args []string) (list []function, err error) {
	if d.file != "" {
		if len(args) > 0 || d.name != "" || d.image != "" {
			return nil, errors.New("a stack file names its functions: leave out DIR, --name and --image")
		}
		stack, err := api.ReadStack(d.file)
		for _, f := range stack {
			list = append(list, function{dir: f.Dir, FunctionDeployment: d.override(types.FunctionDeployment{
				Service: f.Name, Image: f.Image, Namespace: f.Namespace, EnvVars: f.Environment, Labels: &f.Labels,
				Annotations: &f.Annotations,
			})})
		}
		return list, err
	}
	switch {
	case d.fused && (d.image != "" || d.name != ""):
		return nil, errors.New("with --fused, give directories or a stack file: leave out --name and --image")
	case d.image != "" && len(args) > 0:
		return nil, errors.New("give either directories or --image")
	case d.name != "" && len(args) > 1:
		return nil, errors.New("--name names one function: leave it out, or deploy one directory at a time")
	case d.image != "":
		name, _, _ := strings.Cut(d.image, "@")
		return []function{{FunctionDeployment: d.override(types.FunctionDeployment{Service: cmp.Or(d.name, name), Image: d.image})}}, nil
	case len(args) == 0:
		args = []string{"."}
	}
	for _, dir := range args {
		list = append(list, function{dir: dir, FunctionDeployment: d.override(types.FunctionDeployment{Service: d.name})})
	}
	return list, nil
}

// override replaces fields of f by the flags' values.
func (d *deployFlags) override(f types.FunctionDeployment) types.FunctionDeployment {
	if d.namespace != "" {
		f.Namespace = d.namespace
	}
	f.EnvVars = merge(f.EnvVars, d.env)
	labels, annotations := merge(deref(f.Labels), d.labels), merge(deref(f.Annotations), d.annotations)
	for name, address := range d.services {
		annotations[api.AnnotationService+name] = address
	}
	if len(d.targets) > 0 {
		annotations[api.AnnotationTargets] = strings.Join(d.targets, ",")
	}
	f.Labels, f.Annotations = &labels, &annotations
	return f
}

func merge(base, over map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(over))
	for _, m := range []map[string]string{base, over} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

func deref(m *map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	return *m
}

// build builds fn unless it has an image, and returns the compiler's warnings.
func (fn *function) build(ctx context.Context, p daemon.Paths) (log string, err error) {
	if fn.dir == "" {
		return "", nil
	}
	if _, err := daemon.NewClient(p).Node(ctx); err != nil { // do not compile without a daemon
		return "", err
	}
	a, err := daemon.Build(ctx, p, fn.dir)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", fn.dir, err)
	}
	fn.Image, fn.spec = a.Image, a.Spec
	if fn.Service == "" {
		fn.Service = a.Spec.Name
	}
	return a.Log, nil
}

// deploy builds fn unless it has an image, deploys it, and returns the compiler's warnings too.
func deploy(ctx context.Context, p daemon.Paths, fn function) (f *api.Function, log string, err error) {
	if log, err = fn.build(ctx, p); err != nil {
		return nil, log, err
	}
	if f, err = daemon.NewClient(p).Deploy(ctx, fn.FunctionDeployment); err != nil {
		return nil, log, fmt.Errorf("deploy %s: %w", fn.Service, err)
	}
	return f, log, nil
}

func sayDeployed(cmd *cobra.Command, f *api.Function) {
	out := cmd.OutOrStdout()
	if f.Spec.P4 != "" {
		fmt.Fprintf(out, "%s serves on %s, revision %d: it %s\n", ui.Colour(out, ui.Green, f.Name), f.Target, f.Revision, askStage(f))
	} else {
		fmt.Fprintf(out, "%s serves on %s, revision %d, workload %#x at %v\n",
			ui.Colour(out, ui.Green, f.Name), f.Target, f.Revision, f.Workload, f.Endpoint)
	}
	warn := ui.Colour(cmd.ErrOrStderr(), ui.Yellow, "warning:")
	for _, r := range f.Refused {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s %s serves on %s rather than %s: %s\n", warn, f.Name, f.Target, r.Target, r.Reason)
	}
}
