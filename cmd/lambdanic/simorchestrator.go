package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/sim/heartbeats"
)

// simOrchestrator is what `lambdanic sim orchestrator` is asked for.
type simOrchestrator struct {
	fleet            heartbeats.Fleet
	servers, lambdas []int
	out              simOutput
}

func simOrchestratorCommand(o *options) *cobra.Command {
	s := new(simOrchestrator)
	cmd := &cobra.Command{
		Use:   "orchestrator",
		Short: "Measure how long an orchestrator takes to find overloaded SmartNICs by their heartbeats",
		Long: "Measure how long an orchestrator takes to find overloaded SmartNICs by their heartbeats, of 16 bytes every 50 ms, on one core of this\n" +
			"machine. It is that of E3 (Liu, Peter, Krishnamurthy, Phothilimthana, ATC 2019), and this is the experiment of its Figure 11, where a\n" +
			"decision takes far less than a migration's tens to hundreds of milliseconds, whatever the number of lambdas.\n\n" +
			"NEEDED/S is how many heartbeats the NICs send; TAKEN IN/S how many one core takes in if those of all NICs come at once, and ALL ms\n" +
			"how long that lasts. P50 and P99 are of heartbeats that come one by one, and of those that bring a decision.\n" +
			"Heartbeats and decisions are the same for each seed; times are not.",
		Example: "  lambdanic sim orchestrator --plot figure11.svg\n  lambdanic sim orchestrator --servers 50000 --lambdas 1,10,100,1000 --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd, o) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&s.servers, "servers", []int{1000, 10_000, 50_000}, "servers")
	f.IntVar(&s.fleet.NICs, "nics", 4, "SmartNICs of each")
	f.IntSliceVar(&s.lambdas, "lambdas", []int{1, 100}, "lambdas on each SmartNIC")
	f.Float64Var(&s.fleet.Overloaded, "overloaded", 0.01, "share of SmartNICs that become overloaded: half starve their hosts, on half lambdas slow down")
	f.Float64Var(&s.fleet.Silent, "silent", 0.001, "share of SmartNICs that send no more heartbeats")
	f.IntVar(&s.fleet.Intervals, "intervals", 10, "intervals of 50 ms that are simulated")
	f.Uint64Var(&s.fleet.Seed, "seed", 1, "of the heartbeats")
	s.out.flags(cmd)
	return cmd
}

// simOrchestratorRow is a line of results. Times are on one core of this machine.
type simOrchestratorRow struct {
	Servers     int            `json:"servers"`
	NICs        int            `json:"nics"` // of all servers
	Lambdas     int            `json:"lambdas_per_nic"`
	Needed      float64        `json:"needed_per_second"`
	Rate        float64        `json:"taken_in_per_second"`
	Burst       float64        `json:"all_ms"`
	P50         int64          `json:"heartbeat_p50_ns"`
	P99         int64          `json:"heartbeat_p99_ns"`
	DecisionP50 int64          `json:"decision_p50_ns"` // 0: none was timed
	DecisionP99 int64          `json:"decision_p99_ns"`
	Decisions   map[string]int `json:"decisions"` // by reason; the same for each seed, as all below
	Silent      uint64         `json:"silent"`
	Digest      string         `json:"digest"`   // of all decisions and silent NICs in their order
	Clock       int64          `json:"clock_ns"` // one reading of the clock, which the times of single heartbeats include
}

var simOrchestratorHead = []column{
	{"SERVERS", "servers"}, {"NICS", "nics"}, {"LAMBDAS", "lambdas_per_nic"}, {"NEEDED/S", "needed_per_second"}, {"TAKEN IN/S", "taken_in_per_second"},
	{"ALL ms", "all_ms"}, {"P50 ns", "heartbeat_p50_ns"}, {"P99 ns", "heartbeat_p99_ns"}, {"DECISIONS", "decisions"},
	{"DECISION P50 ns", "decision_p50_ns"}, {"DECISION P99 ns", "decision_p99_ns"},
}

func (s *simOrchestrator) run(cmd *cobra.Command, o *options) error {
	if err := s.out.check(o); err != nil {
		return err
	}
	var fleets []heartbeats.Fleet
	for _, servers := range s.servers {
		for _, lambdas := range s.lambdas {
			f := s.fleet
			f.Servers, f.Lambdas = servers, lambdas
			fleets = append(fleets, f)
		}
	}
	progress, end := watch(cmd, "runs")
	outcomes, err := heartbeats.Sweep(cmd.Context(), fleets, progress)
	end()
	if err != nil {
		return err
	}
	var rows []simOrchestratorRow
	var cells [][]string
	for _, outcome := range outcomes {
		r := newSimOrchestratorRow(outcome)
		rows = append(rows, r)
		cells = append(cells, r.cells(outcome))
	}
	return s.out.write(cmd, o, rows, simOrchestratorHead, cells, func(w io.Writer) error { return heartbeats.Draw(w, outcomes) })
}

func newSimOrchestratorRow(o *heartbeats.Outcome) simOrchestratorRow {
	return simOrchestratorRow{
		Servers: o.Servers, NICs: o.AllNICs(), Lambdas: o.Lambdas, Needed: o.Needed(), Rate: o.Rate(), Burst: o.Burst().Seconds() * 1e3,
		P50: o.Heartbeat.ValueAtQuantile(50), P99: o.Heartbeat.ValueAtQuantile(99), DecisionP50: o.Decision.ValueAtQuantile(50), DecisionP99: o.Decision.ValueAtQuantile(99),
		Decisions: o.Reasons, Silent: o.Counters.Silent, Digest: fmt.Sprintf("%016x", o.Digest), Clock: o.Clock.Nanoseconds(),
	}
}

func (r *simOrchestratorRow) cells(o *heartbeats.Outcome) []string {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	p50, p99 := "", ""
	if o.Decision.TotalCount() > 0 {
		p50, p99 = integer(r.DecisionP50), integer(r.DecisionP99)
	}
	return []string{
		strconv.Itoa(r.Servers), strconv.Itoa(r.NICs), strconv.Itoa(r.Lambdas), whole(r.Needed), whole(r.Rate), twoDigits(r.Burst), integer(r.P50), integer(r.P99),
		strconv.FormatUint(o.Counters.Decisions, 10), p50, p99,
	}
}
