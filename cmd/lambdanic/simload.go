package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/nanoservice"
	"github.com/lambdanic/lambdanic/sim/random"
)

// simLoad is what `lambdanic sim nanoservice load` is asked for.
type simLoad struct {
	load                                        nanoservice.Load
	dispatch                                    []string
	utilisation                                 []float64
	clients                                     []int
	service, think, path, wire, quantum, change string
	network                                     simNetwork
	seed                                        uint64
	out                                         simOutput
}

func simLoadCommand(o *options) *cobra.Command {
	s := new(simLoad)
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Simulate requests to hosts with many cores, and how their NICs choose among the cores",
		Long: "Simulate requests of many clients to hosts with many cores, and how the hosts' NICs choose a core for each: by a hash (rss), at\n" +
			"random, by turns (round-robin), by the shortest bounded queue (jbsq:N), or ideally (central: one queue for all cores).\n" +
			"Loads are open (--utilisation) or closed (--clients). Latency is from a client's NIC and back to it.\n\n" +
			"A distribution of times is " + random.Syntax + ".",
		Example: "  lambdanic sim nanoservice load --service bimodal:500ns,50us,0.005 --plot dispatch.svg\n" +
			"  lambdanic sim nanoservice load --dispatch jbsq:2 --clients 1,10,100 --network homa --reply-bytes 10000",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loads, err := s.loads(cmd)
			if err != nil {
				return err
			}
			return s.run(cmd, o, loads)
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.load.Hosts, "hosts", 1, "hosts that serve")
	f.IntVar(&s.load.Machine.Cores, "cores", 16, "cores of each")
	f.StringSliceVar(&s.dispatch, "dispatch", []string{"rss", "jbsq:2", "central"}, "policies: rss, random, round-robin, jbsq:N, central")
	f.StringVar(&s.path, "interface", "lnic:200ns", "path between NIC and core: dma, ddio or lnic:DELAY")
	f.StringVar(&s.service, "service", "exponential:1us", "how long a request runs: a distribution")
	f.Float64SliceVar(&s.utilisation, "utilisation", []float64{0.2, 0.4, 0.6, 0.7, 0.8, 0.9}, "open loads: shares of what the cores can serve")
	f.IntSliceVar(&s.clients, "clients", nil, "closed loads instead: clients with one request each at a time")
	f.StringVar(&s.think, "think", "0", "time between an answer and the client's next request: a distribution")
	f.IntVar(&s.load.Flows, "flows", 10000, "flows that requests belong to (rss)")
	f.StringVar(&s.quantum, "quantum", "0", "time after which a core changes to another request, if one waits; 0: never")
	f.StringVar(&s.change, "switch", "100ns", "time that such a change takes")
	f.StringVar(&s.wire, "wire", "1us", "time from NIC to NIC; with --network, from a host to the switch")
	s.network.flags(cmd, "senders", "request-bytes", "reply-bytes")
	f.IntVar(&s.load.Senders, "senders", 20, "machines that the clients are on (--network)")
	f.IntVar(&s.load.Request, "request-bytes", 64, "of a request (--network)")
	f.IntVar(&s.load.Reply, "reply-bytes", 64, "of a reply (--network)")
	f.IntVar(&s.load.Requests, "requests", 300_000, "requests that are measured, of each load")
	f.Uint64Var(&s.seed, "seed", 1, "of all loads")
	s.out.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("utilisation", "clients")
	return cmd
}

// idle refuses flags that would do nothing.
func (s *simLoad) idle(set *pflag.FlagSet) error {
	if set.Changed("think") && s.clients == nil {
		return errors.New("--think is for closed loads: give --clients, too")
	}
	for _, n := range s.clients {
		if n < 1 {
			return fmt.Errorf("--clients: %d is not positive", n)
		}
	}
	return nil
}

// loads are those that the flags ask for.
func (s *simLoad) loads(cmd *cobra.Command) (loads []nanoservice.LoadCase, err error) {
	if err := s.idle(cmd.Flags()); err != nil {
		return nil, err
	}
	base := s.load
	if base.Machine.Interface, err = nanoservice.ParseInterface(s.path); err != nil {
		return nil, fmt.Errorf("--interface: %w", err)
	}
	for _, t := range []struct {
		flag, text string
		into       *event.Time
	}{{"wire", s.wire, &base.Wire}, {"quantum", s.quantum, &base.Machine.Quantum}, {"switch", s.change, &base.Machine.Switch}} {
		if *t.into, err = random.ParseFixed(t.text); err != nil {
			return nil, fmt.Errorf("--%s: %w", t.flag, err)
		}
	}
	if base.Service, err = random.ParseTime(s.service); err != nil {
		return nil, fmt.Errorf("--service: %w", err)
	}
	if base.Think, err = random.ParseTime(s.think); err != nil {
		return nil, fmt.Errorf("--think: %w", err)
	}
	if base.Network, err = s.network.config(cmd, base.Wire); err != nil {
		return nil, err
	}
	for _, text := range s.dispatch {
		l := base
		if l.Machine.Dispatch, err = nanoservice.ParseDispatch(text); err != nil {
			return nil, fmt.Errorf("--dispatch: %w", err)
		}
		for _, n := range s.clients {
			l.Clients = n
			loads = append(loads, nanoservice.LoadCase{Name: text, Load: l})
		}
		for _, u := range s.utilisation {
			if s.clients == nil {
				l.Utilisation = u
				loads = append(loads, nanoservice.LoadCase{Name: text, Load: l})
			}
		}
	}
	return loads, nil
}

// simLoadRow is a line of results; times are in µs.
type simLoadRow struct {
	Dispatch    string  `json:"dispatch"`
	Load        string  `json:"load"`
	Mean        float64 `json:"mean_us"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	P999        float64 `json:"p999_us"`
	Throughput  float64 `json:"replies_per_second"`
	Utilisation float64 `json:"utilisation"`
	Overload    float64 `json:"overload,omitempty"`
}

var simLoadHead = []column{
	{"DISPATCH", "dispatch"}, {"LOAD", "load"}, {"MEAN µs", "mean_us"}, {"P50 µs", "p50_us"}, {"P99 µs", "p99_us"}, {"P99.9 µs", "p999_us"},
	{"REPLIES/S", "replies_per_second"}, {"CPU %", "utilisation_percent"},
}

func (s *simLoad) run(cmd *cobra.Command, o *options, loads []nanoservice.LoadCase) error {
	if err := s.out.check(o); err != nil {
		return err
	}
	progress, end := watch(cmd, "runs")
	sweep := &nanoservice.Sweep{Loads: loads, Seed: s.seed, Progress: progress}
	served, err := sweep.Run(cmd.Context())
	end()
	if err != nil {
		return err
	}
	var rows []simLoadRow
	var cells [][]string
	for i := range served {
		r := newSimLoadRow(&served[i])
		if rows = append(rows, r); r.Overload > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s at load %s: requests come faster than they are served, and queues grow for ever. "+
				"Latency says only for how long was measured. Take less load, a higher N of jbsq, a faster --interface, or faster links\n", r.Dispatch, r.Load)
		}
		cells = append(cells, []string{
			r.Dispatch, r.Load, twoDigits(r.Mean), twoDigits(r.P50), twoDigits(r.P99), twoDigits(r.P999),
			strconv.FormatFloat(r.Throughput, 'f', 0, 64), twoDigits(100 * r.Utilisation),
		})
	}
	return s.out.write(cmd, o, rows, simLoadHead, cells, func(w io.Writer) error { return nanoservice.DrawLoads(w, served) })
}

func newSimLoadRow(s *nanoservice.Served) simLoadRow {
	micros := func(percent float64) float64 { return float64(s.Latency.ValueAtQuantile(percent)) / 1000 }
	r := simLoadRow{
		Dispatch: s.Name, Load: strconv.FormatFloat(s.Load.Utilisation, 'g', -1, 64), Mean: s.Latency.Mean() / 1000, P50: micros(50), P99: micros(99),
		P999: micros(99.9), Throughput: s.Throughput, Utilisation: s.Service.Utilisation, Overload: s.Overload,
	}
	if s.Clients > 0 {
		r.Load = english.Plural(s.Clients, "client", "")
	}
	return r
}
