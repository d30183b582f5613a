package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// clusterScale is what `place` and `paper table6` are asked for.
type clusterScale struct {
	servers       []int
	microservices int
	policies      []string
	seed          uint64
	timeout       time.Duration
	out           simOutput
}

func (s *clusterScale) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntSliceVar(&s.servers, "servers", []int{100, 200, 400, 600, 800, 1000}, "Type2-SmartNIC servers of the clusters")
	f.IntVar(&s.microservices, "microservices", 10_000, "microservices to place, at least")
	f.StringSliceVar(&s.policies, "policy", []string{string(cluster.HCM)}, "policies: hcm, spread, anneal, ilp")
	f.Uint64Var(&s.seed, "seed", 1, "of annealing")
	f.DurationVar(&s.timeout, "timeout", 10*time.Second, "of the ILP's solver")
}

func simClusterPlaceCommand(o *options) *cobra.Command {
	s := new(clusterScale)
	cmd := &cobra.Command{
		Use:   "place",
		Short: "Place many applications on large clusters, and take the time, beside E3's Table 6",
		Long: "Place E3's applications, one after the other, on clusters of Type2-SmartNIC servers, and take the time for each microservice.\n" +
			"PAPER is E3's Table 6, of another machine and program; it has 10,000 microservices.",
		Example: "  lambdanic sim cluster place --servers 100,1000,100000\n  lambdanic sim cluster place --policy hcm,anneal --microservices 2000 --plot scale.svg",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd, o) },
	}
	s.flags(cmd)
	s.out.flags(cmd)
	return cmd
}

// scaleRow is a line of results.
type scaleRow struct {
	Policy        string   `json:"policy"`
	Servers       int      `json:"servers"`
	Microservices int      `json:"microservices"`
	Each          float64  `json:"ms_per_microservice"`
	Paper         *float64 `json:"paper_ms_per_microservice"` // null: it has none
}

var scaleHead = []column{
	{"POLICY", "policy"}, {"SERVERS", "servers"}, {"MICROSERVICES", "microservices"}, {"MS EACH", "ms_per_microservice"},
	{"PAPER", "paper_ms_per_microservice"},
}

func (s *clusterScale) run(cmd *cobra.Command, o *options) error {
	if err := s.out.check(o); err != nil {
		return err
	}
	rows, err := s.rows(cmd)
	if err != nil {
		return err
	}
	var cells [][]string
	for _, r := range rows {
		paper := "-"
		if r.Paper != nil {
			paper = twoDigits(*r.Paper)
		}
		cells = append(cells, []string{r.Policy, strconv.Itoa(r.Servers), strconv.Itoa(r.Microservices), threeDigits(r.Each), paper})
	}
	return s.out.write(cmd, o, rows, scaleHead, cells, func(w io.Writer) error { return drawScale(w, rows) })
}

func (s *clusterScale) rows(cmd *cobra.Command) (rows []scaleRow, err error) {
	progress, end := watch(cmd, "microservices")
	defer end()
	for _, name := range s.policies {
		policy, err := cluster.ParsePolicy(name)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		for _, servers := range s.servers {
			at := cluster.Scale{Servers: servers, Microservices: s.microservices, How: cluster.How{Policy: policy, Seed: s.seed, Timeout: s.timeout}}
			placed, err := cluster.Default().Place(cmd.Context(), at, progress)
			if err != nil {
				return nil, fmt.Errorf("%s on %d servers: %w", policy, servers, err)
			}
			row := scaleRow{Policy: string(policy), Servers: servers, Microservices: placed.Microservices, Each: placed.PerMicroservice()}
			if ms, ok := cluster.Table6(servers, policy); ok {
				row.Paper = &ms
			}
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return nil, errors.New("there is nothing to place: give at least one of --policy and of --servers")
	}
	return rows, nil
}

func drawScale(w io.Writer, rows []scaleRow) error {
	c := chart.Chart{
		Title: "Placement, and E3's Table 6 (dashed)", X: chart.Axis{Label: "servers", Log: true}, Y: chart.Axis{Label: "ms for a microservice", Log: true},
	}
	for from := 0; from < len(rows); {
		var ours, paper []chart.Point
		to := from
		for ; to < len(rows) && rows[to].Policy == rows[from].Policy; to++ {
			ours = append(ours, chart.Point{X: float64(rows[to].Servers), Y: rows[to].Each})
			if p := rows[to].Paper; p != nil {
				paper = append(paper, chart.Point{X: float64(rows[to].Servers), Y: *p})
			}
		}
		like := 1 + len(c.Lines)
		c.Lines = append(c.Lines, chart.Line{Name: rows[from].Policy, Points: ours, Like: like})
		if paper != nil {
			c.Lines = append(c.Lines, chart.Line{Points: paper, Like: like, Dashed: true})
		}
		from = to
	}
	return chart.Draw(w, c)
}
