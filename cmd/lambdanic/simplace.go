package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// simPlace is what `lambdanic sim place` is asked for.
type simPlace struct {
	topology, placed, policy, explain string
	seed                              uint64
	timeout                           time.Duration
}

const (
	explainAll = "all"
	// maxPlacementFile bounds a file that is read: a topology of 100,000 nodes has 20 MB.
	maxPlacementFile = 64 << 20
)

func simPlaceCommand(o *options) *cobra.Command {
	p := new(simPlace)
	cmd := &cobra.Command{
		Use:   "place APP.yml...",
		Short: "Place applications of your own on the hosts and SmartNICs of a cluster of your own",
		Long: "Place the microservices of applications on the hosts and SmartNICs of a cluster, both described in files of YAML or JSON, and say\n" +
			"which goes where, why, and what it costs. Applications are placed in the order given; what is pinned to a node goes first.\n" +
			"With --placed, what an earlier result has stays where it is, and only what is new is placed.\n\n" +
			"hcm is E3's Algorithm 1, which places each microservice near the one that calls it. anneal and ilp minimise the cost: interference\n" +
			"of microservices on one node, and communication; spread minimises interference alone. The ILP needs a solver, highs or cbc.",
		Example: "  lambdanic sim place --topology racks.yml shop.yml\n" +
			"  lambdanic sim place --topology racks.yml shop.yml --policy anneal --explain=cart\n" +
			"  lambdanic sim place --topology racks.yml shop.yml --json > placed.json\n" +
			"  lambdanic sim place --topology racks.yml shop.yml search.yml --placed placed.json",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, o, args) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeFiles(cmd, args, prefix)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.topology, "topology", "", "file with the cluster's groups and nodes")
	f.StringVar(&p.policy, "policy", string(cluster.HCM), "policy: hcm, spread, anneal or ilp")
	f.StringVar(&p.explain, "explain", "", "say what each node was refused for, of all microservices, or with --explain=NAME of one")
	f.Lookup("explain").NoOptDefVal = explainAll
	f.StringVar(&p.placed, "placed", "", "earlier result (--json) whose microservices stay where they are")
	f.Uint64Var(&p.seed, "seed", 1, "of annealing")
	f.DurationVar(&p.timeout, "timeout", placement.DefaultTimeout, "of the ILP's solver")
	_ = cmd.MarkFlagRequired("topology")
	return cmd
}

func (p *simPlace) run(cmd *cobra.Command, o *options, files []string) error {
	policy, err := cluster.ParsePolicy(p.policy)
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	plan, err := p.read(cmd, files)
	if err != nil {
		return err
	}
	plan.how = cluster.How{Policy: policy, Seed: p.seed, Timeout: p.timeout}
	if err := plan.explains(p.explain); err != nil {
		return err
	}
	progress, end := watch(cmd, "applications")
	err = plan.place(cmd.Context(), progress)
	end()
	if err != nil {
		return err
	}
	if o.json {
		return ui.JSON(cmd.OutOrStdout(), plan.result())
	}
	return plan.print(cmd.OutOrStdout())
}

// read reads all files.
func (p *simPlace) read(cmd *cobra.Command, files []string) (*placePlan, error) {
	data, err := readPlacementFile(p.topology)
	if err != nil {
		return nil, fmt.Errorf("--topology: %w", err)
	}
	topo, err := placement.ReadTopology(data)
	if err != nil {
		return nil, fmt.Errorf("--topology %s: %w", p.topology, err)
	}
	var before placeResult
	if p.placed != "" {
		if before, err = readPlaced(p.placed); err != nil {
			return nil, fmt.Errorf("--placed %s: %w", p.placed, err)
		}
	}
	var apps []*placement.App
	for _, file := range files {
		app, err := p.readApp(file)
		if err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	plan, gone, err := newPlacePlan(topo, apps, &before)
	if err != nil && p.placed != "" {
		return nil, fmt.Errorf("with --placed %s: %w", p.placed, err)
	}
	for _, name := range gone {
		warn(cmd, "--placed %s: its microservice %s is in no application any more", p.placed, name)
	}
	return plan, err
}

func (p *simPlace) readApp(file string) (*placement.App, error) {
	data, err := readPlacementFile(file)
	if errors.Is(err, os.ErrNotExist) && p.explain == explainAll {
		return nil, fmt.Errorf("application: %w: to explain a microservice of that name, write --explain=%s", err, file)
	}
	if err != nil {
		return nil, fmt.Errorf("application: %w", err)
	}
	app, err := placement.ReadApp(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return app, nil
}

func readPlacementFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlacementFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPlacementFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxPlacementFile)
	}
	return data, nil
}

func readPlaced(name string) (r placeResult, err error) {
	data, err := readPlacementFile(name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("it has to be what an earlier --json printed: %w", err)
	}
	if len(r.Apps) == 0 {
		return r, errors.New("it has no applications: it has to be what an earlier --json printed")
	}
	return r, nil
}
