package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/apps/othello"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ikernel"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// completionPatience is how long a shell waits for names.
const completionPatience = 2 * time.Second

// completeFunctions offers the names of deployed functions for up to most arguments, 0 for any number. Where no daemon
// answers, it offers none.
func completeFunctions(o *options, most int) cobra.CompletionFunc {
	return completeNames(most, func(cmd *cobra.Command) (names []cobra.Completion, err error) {
		namespace := ""
		if f := cmd.Flags().Lookup("namespace"); f != nil {
			namespace = f.Value.String()
		}
		list, err := deployed(cmd.Context(), o, namespace)
		for _, f := range list {
			if namespace == "" && f.Namespace != api.DefaultNamespace {
				f.Name += "." + f.Namespace
			}
			names = append(names, f.Name)
		}
		return names, err
	})
}

// completeIkernels offers the names of attached ikernels, as completeFunctions those of functions.
func completeIkernels(o *options, most int) cobra.CompletionFunc {
	return completeNames(most, func(cmd *cobra.Command) (names []cobra.Completion, err error) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		list, err := ikernels(ctx, o)
		for _, i := range list {
			if i.Application == nil || most == 0 { // what others have is not to be detached
				names = append(names, i.Name)
			}
		}
		return names, err
	})
}

// completeBefore offers the names of attached ikernels for a flag.
func completeBefore(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeIkernels(o, 0)(cmd, nil, text)
	}
}

// completeKeys offers the keys of the ikernel that is named before.
func completeKeys(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		list, err := ikernels(ctx, o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, i := range list {
			for _, k := range i.Keys {
				if len(args) == 1 && i.Name == args[0] {
					names = append(names, k.Name())
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames offers those of the names that are not given yet, for up to most arguments, 0 for any number.
func completeNames(most int, list func(*cobra.Command) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := list(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		given := func(name cobra.Completion) bool { return slices.Contains(args, name) }
		return slices.DeleteFunc(names, given), cobra.ShellCompDirectiveNoFileComp
	}
}

// deployed lists functions, for as long as a shell waits.
func deployed(ctx context.Context, o *options, namespace string) ([]api.Function, error) {
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	return c.List(ctx, namespace)
}

// completeFlags has each flag of cmd, and of the commands below it, complete its value.
func completeFlags(cmd *cobra.Command, known map[string]cobra.CompletionFunc) {
	each := func(f *pflag.Flag) {
		complete, ok := known[cmd.Name()+" --"+f.Name]
		if !ok {
			complete, ok = known[f.Name]
		}
		if ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails for a missing flag, and for one that has a completion
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(each)
	cmd.PersistentFlags().VisitAll(each)
	for _, sub := range cmd.Commands() {
		completeFlags(sub, known)
	}
}

// flagCompletions says what the flags can be, by name, or by command and name.
func flagCompletions(o *options) map[string]cobra.CompletionFunc {
	var forms []string
	for _, f := range compiler.Forms {
		forms = append(forms, string(f))
	}
	var names []string
	for _, t := range api.Targets() {
		names = append(names, string(t))
	}
	targets := oneOf(names...)
	known := map[string]cobra.CompletionFunc{
		"instance": completeInstances(o), "up --name": completeInstances(o), "down --name": completeInstances(o),
		"namespace": completeNamespaces(o), "nic": completeInterfaces,
		"target": targets, "targets": targets, "build --target": oneOf("nfp"), "emit": oneOf(forms...),
		"mode":               oneOf(string(nic.ModeAuto), string(nic.ModeNative), string(nic.ModeGeneric), string(nic.ModeOffload)),
		"attach --interface": completeInterfaces, "attach --mode": oneOf(string(nic.ModeAuto), string(nic.ModeNative), string(nic.ModeGeneric)),
		"netns":  completeNetworkNamespaces,
		"before": completeBefore(o), "allow": cobra.NoFileCompletions,
		"key": completeFiles, "keys --add": completeFiles, "keys --remove": completeKeys(o),
		"unknown": oneOf("host", "error"),
		"mtu":     oneOf("256", "512", "1024", "2048", "4096"), "transport": oneOf("rc", "uc"), "icrc": oneOf("check", "trust"),
		"search --transport": oneOf("udp", "queues"), "colour": oneOf(othello.Black.String(), othello.White.String()),
		"etcd-cacert": completeFiles, "etcd-cert": completeFiles, "etcd-key": completeFiles, "file": completeFiles, "out": completeFiles, "plot": completeFiles,
		"demo --out": completeDirs,
		"interface":  oneOf("dma", "ddio", "lnic:200ns"), "map": oneOf(measured, "1us", "exponential:1us", "bimodal:500ns,20us,0.01"),
		"branches": oneOf(measured), "dispatch": oneOf("rss", "random", "round-robin", "jbsq:2", "central"), "network": oneOf("queued", "ndp", "homa"),
		"app": completeApplications, "cluster": oneOf("3xType1-SmartNIC", "2xType2-SmartNIC", "4xBeefy", "4xWimpy", "2xBeefy+2xWimpy", "1xSuperBeefy"),
		"policy": oneOf("hcm", "spread", "anneal", "ilp"), "times": oneOf("exponential", "fixed"), "fill": oneOf("0.1", "0.5", "1"), "load": oneOf("peak", "50%"),
		"services": completeFiles, "systems": completeFiles, "topology": completeFiles, "placed": completeFiles,
		"set --lambdas": oneOf(noLimit), "set --memory": oneOf(noLimit), "set --requests": oneOf(noLimit), "set --nic-time": oneOf(noLimit), "set --weight": cobra.NoFileCompletions, "nic-bandwidth": oneOf("1Gbit", "8Gbit", noLimit), "nic-budget": oneOf("50%", "80%"),
		"orchestrator --lambdas": cobra.NoFileCompletions, "orchestrator --silent": cobra.NoFileCompletions,
		"orchestrator --servers": cobra.NoFileCompletions, "orchestrator --nics": cobra.NoFileCompletions,
		"orchestrator --overloaded": cobra.NoFileCompletions, "orchestrator --intervals": cobra.NoFileCompletions,
		"dir": completeDirs, "data-dir": completeDirs, "run-dir": completeDirs, "lambdas": completeDirs, "plots": completeDirs,
	}
	for _, name := range []string{ // what only the caller knows
		"address", "annotation", "backups", "clients", "cores", "data", "depth", "distributed", "env", "etcd", "explain", "flows", "hosts", "image", "label",
		"length", "listen", "memory", "message-bytes", "method", "microservices", "name", "packets-method", "peer", "peer-qpn", "pid", "port", "positions", "psn", "quantum", "rate", "receive", "reduce",
		"reply-bytes", "request-bytes", "requests", "rounds", "runs", "seed", "senders", "servers", "service", "shards", "since", "switch", "tail", "think",
		"timeout", "utilisation", "wire",
	} {
		known[name] = cobra.NoFileCompletions
	}
	return known
}

// completeApplications offers those that the cluster simulator has.
func completeApplications(*cobra.Command, []string, string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, a := range cluster.Default().Applications {
		names = append(names, a.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func oneOf(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

func completeFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func completeDirs(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeNamespaces offers the names of namespaces for a flag.
func completeNamespaces(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completeNames(0, listNamespaces(o))(cmd, nil, text)
	}
}

// listNamespaces lists the names of namespaces, for as long as a shell waits.
func listNamespaces(o *options) func(*cobra.Command) ([]cobra.Completion, error) {
	return func(cmd *cobra.Command) ([]cobra.Completion, error) {
		c, err := o.client()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		return c.NamespaceNames(ctx)
	}
}

// completeNewNetwork offers namespaces, and then the kinds of networks, whose IDs only the caller knows.
func completeNewNetwork(o *options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return []cobra.Completion{string(api.NetworkVLAN) + ":", string(api.NetworkVXLAN) + ":"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return completeNames(1, listNamespaces(o))(cmd, args, text)
	}
}

// completeOwned offers namespaces, and then what the one that is named before has.
func completeOwned(o *options, list func(*api.Namespace) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return completeNames(1, listNamespaces(o))(cmd, args, text)
		}
		c, err := o.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		n, err := c.Namespace(ctx, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list(n), cobra.ShellCompDirectiveNoFileComp
	}
}

func networksOf(n *api.Namespace) (names []cobra.Completion) {
	for _, network := range n.Networks {
		names = append(names, network.String())
	}
	return names
}

func keysOf(n *api.Namespace) (numbers []cobra.Completion) {
	if n.Keys == nil {
		return nil
	}
	for _, key := range n.Keys.Keys {
		numbers = append(numbers, number(uint64(key.Number)))
	}
	return numbers
}

// plainUsages has shells show what flags are for as --help does: without the quotes around the names of their values.
func plainUsages(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) }
	cmd.LocalFlags().VisitAll(plain)
	for _, sub := range cmd.Commands() {
		plainUsages(sub)
	}
}

// completeInstances offers instances that run, or left their records.
func completeInstances(o *options) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		paths, err := daemon.NewPaths(daemon.DefaultInstance, o.dataDir, o.runDir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		dirs, _ := os.ReadDir(filepath.Dir(paths.Run)) // if it is missing, nothing runs
		for _, d := range dirs {
			names = append(names, d.Name())
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func completeNetworkNamespaces(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	files, _ := os.ReadDir(veth.Namespaces) // if it is missing, there are none
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeInterfaces offers the interfaces of the network namespace that --pid or --netns names, where the command has these, or of the caller's own. It
// leaves the loopback out.
func completeInterfaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	pid, _ := cmd.Flags().GetInt("pid") // 0 and "" where the command lacks the flag
	name, _ := cmd.Flags().GetString("netns")
	list, err := interfacesOf(pid, name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func interfacesOf(pid int, name string) (list []net.Interface, err error) {
	if pid == 0 && name == "" {
		return net.Interfaces() // to enter a namespace, even one's own, takes root
	}
	ns, err := ikernel.OpenNamespace(pid, name)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	err = veth.In(ns, func() (err error) {
		list, err = net.Interfaces()
		return err
	})
	return list, err
}
