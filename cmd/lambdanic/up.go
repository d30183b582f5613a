package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/ui"
)

type upFlags struct {
	interfaces, addresses []string
	mode, unknown, listen string
	budget, bandwidth     string
	etcd                  store.Remote
	detach, verbose       bool
	readyFD               int
}

func upCommand(o *options) *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring an instance up: a NIC, and the daemon that looks after it",
		Long: "Bring an instance up: a NIC, and the daemon that looks after it. Without --nic, the NIC is virtual: a veth pair whose far\n" +
			"end has a namespace and an address of its own. What an earlier daemon left serving is taken over. When the daemon ends,\n" +
			"NIC and processes serve on; down removes them.",
		Example: "  sudo lambdanic up -d\n" +
			"  sudo lambdanic up --nic eth1 --mode native\n" +
			"  sudo lambdanic up --nic eth1 --nic-budget 80% --nic-bandwidth 8Gbit\n" +
			"  sudo lambdanic up --name test --listen 127.0.0.1:0\n" +
			"  sudo lambdanic up --etcd https://etcd:2379 --etcd-cacert ca.crt --etcd-cert node.crt --etcd-key node.key",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config(o)
			if err != nil {
				return err
			}
			if flags.detach {
				end := ui.Progress(cmd.ErrOrStderr(), "bringing instance "+cfg.Instance+" up")
				node, err := daemon.Detach(cmd.Context(), cfg.Paths, os.Args[1:])
				end()
				if err != nil {
					return err
				}
				return sayUp(cmd, o.json, node)
			}
			cfg.Log = logger(cmd.ErrOrStderr(), flags.level())
			ready := func(node *api.Node) error { return sayUp(cmd, o.json, node) }
			if err := daemon.Run(cmd.Context(), cfg, flags.readyFD, ready); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "the daemon has ended; NIC and processes serve on until `%s`\n", cfg.Command("down"))
			return nil
		},
	}
	set := cmd.Flags()
	nameInstance(cmd, o)
	set.StringSliceVar(&flags.interfaces, "nic", nil, "attach to these interfaces instead of making a virtual NIC")
	set.StringSliceVar(&flags.addresses, "address", nil, "serve requests to these addresses too, as a balancer's virtual ones")
	set.StringVar(&flags.mode, "mode", string(nic.ModeAuto), "how to attach: auto, native, generic, or offload for native with a lambda on the card")
	set.StringVar(&flags.unknown, "unknown", "host", "who answers unknown workload IDs: host, or error for an error packet")
	set.StringVar(&flags.budget, "nic-budget", noLimit, "how much of each CPU's time namespaces may have on the NIC, in `percent`: shared out by their weights")
	set.StringVar(&flags.bandwidth, "nic-bandwidth", noLimit, "how much the NICs may send for namespaces, as a `rate` like 8Gbit: shared out by their weights")
	set.StringVar(&flags.listen, "listen", "127.0.0.1:8080", "address of the gateway, \"\" for the socket alone")
	set.StringSliceVar(&flags.etcd.Endpoints, "etcd", nil, "keep the store in this etcd instead of in the daemon: `URL` of its members")
	set.StringVar(&flags.etcd.CA, "etcd-cacert", "", "`file` of the CAs of the etcd's certificate, in place of the system's")
	set.StringVar(&flags.etcd.Certificate, "etcd-cert", "", "`file` of the certificate that etcd asks for")
	set.StringVar(&flags.etcd.Key, "etcd-key", "", "`file` of the key of --etcd-cert")
	set.BoolVarP(&flags.detach, "detach", "d", false, "return once it serves, and leave the daemon in the background")
	set.BoolVarP(&flags.verbose, "verbose", "v", false, "log more")
	set.IntVar(&flags.readyFD, daemon.ReadyFlag, -1, "")
	_ = set.MarkHidden(daemon.ReadyFlag)
	return cmd
}

func (f *upFlags) config(o *options) (daemon.Config, error) {
	p, err := o.paths()
	cfg := daemon.Config{Paths: p, NIC: nics.Options{Interfaces: f.interfaces, Mode: nic.Mode(f.mode)}, Listen: f.listen, Version: version(), Commit: commit}
	if err != nil {
		return cfg, err
	}
	switch cfg.NIC.Mode {
	case nic.ModeAuto, nic.ModeNative, nic.ModeGeneric, nic.ModeOffload:
	default:
		return cfg, fmt.Errorf("mode %q is unknown: use auto, native, generic or offload", f.mode)
	}
	if f.listen != "" {
		if _, _, err := net.SplitHostPort(f.listen); err != nil {
			return cfg, fmt.Errorf("--listen %q: write HOST:PORT, or \"\" for none", f.listen)
		}
	}
	for _, a := range f.addresses {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			return cfg, fmt.Errorf("--address %q is not an IP address", a)
		}
		cfg.NIC.Addresses = append(cfg.NIC.Addresses, addr)
	}
	if cfg.Budget.Time, err = parseBudget(f.budget); err != nil {
		return cfg, fmt.Errorf("--nic-budget: %w", err)
	}
	if cfg.Budget.Bandwidth, err = parseBandwidth(f.bandwidth); err != nil {
		return cfg, fmt.Errorf("--nic-bandwidth: %w", err)
	}
	if cfg.Etcd = f.etcd; len(f.etcd.Endpoints) == 0 && f.etcd.CA+f.etcd.Certificate+f.etcd.Key != "" {
		return cfg, errors.New("--etcd-cacert, --etcd-cert and --etcd-key are for --etcd: give that, too")
	}
	if err := cfg.Etcd.Check(); err != nil {
		return cfg, fmt.Errorf("--etcd: %w", err)
	}
	switch f.unknown {
	case "host":
	case "error":
		cfg.NIC.UnknownError = true
	default:
		return cfg, fmt.Errorf("--unknown %q: use host or error", f.unknown)
	}
	return cfg, nil
}

// level is how much is logged: in the background also what users of the command line do.
func (f *upFlags) level() slog.Level {
	switch {
	case f.verbose:
		return slog.LevelDebug
	case f.readyFD >= 0:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

func logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// sayUp says what came up, and in one line each what did not come up and why.
func sayUp(cmd *cobra.Command, asJSON bool, node *api.Node) error {
	out := cmd.OutOrStdout()
	if asJSON {
		return ui.JSON(out, node)
	}
	fmt.Fprintf(out, "instance %s is %s\n", node.Instance, ui.Colour(out, ui.Green, "up"))
	for _, t := range node.Targets {
		if t.Available {
			fmt.Fprintf(out, "  target %-8s %s\n", t.Target, t.Detail)
		} else {
			fmt.Fprintf(out, "  target %-8s %s: %s\n", t.Target, ui.Colour(out, ui.Yellow, "not available"), ui.Printable(t.Reason))
		}
	}
	if strings.HasPrefix(node.Store, "etcd") {
		fmt.Fprintf(out, "  store           %s\n", node.Store)
	}
	if node.Budget.Time > 0 {
		fmt.Fprintf(out, "  NIC budget      %s of each CPU\n", percent(node.Budget.Time))
	}
	if node.Bandwidth > 0 {
		fmt.Fprintf(out, "  NIC bandwidth   %s\n", humanize.SI(float64(node.Bandwidth), "bit/s"))
	}
	if node.Listen != "" {
		fmt.Fprintf(out, "  gateway         http://%s/function/NAME\n", strings.TrimPrefix(node.Listen, "http://"))
	}
	return nil
}
