package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

func simClusterCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Simulate microservices on clusters of servers with SmartNICs: throughput, latency and energy",
		Long: "Simulate microservices on clusters of servers with SmartNICs, after E3 (Energy-Efficient Microservices on\n" +
			"SmartNIC-Accelerated Servers, ATC 2019): throughput, latency and energy, and how placement decides them.",
		Example: "  lambdanic sim cluster run --app IOT-TS --cluster 3xType1-SmartNIC\n  lambdanic sim cluster paper table5",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(simClusterRunCommand(o), simClusterPlaceCommand(o), simClusterPaperCommand(o))
	return cmd
}

// clusterRun is what `lambdanic sim cluster run` is asked for.
type clusterRun struct {
	app, cluster, services, systems, times string
	policies, loads                        []string
	backups, requests                      int
	fill                                   float64
	seed                                   uint64
	timeout                                time.Duration
	out                                    simOutput
}

func simClusterRunCommand(o *options) *cobra.Command {
	r := new(clusterRun)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Simulate the requests of one application on a cluster",
		Long: "Simulate the requests of one application on a cluster, whose microservices are placed by one or more policies.\n" +
			"Requests come by chance (Poisson). A load is in requests/s, or a share of the peak, like 50%: the most that the\n" +
			"placement's busiest node can serve; \"peak\" is 90% of it, since queues have no end where a node is always busy.\n\n" +
			"An application is one of E3's, or " + cluster.Syntax + ".\n\n" +
			"HOPS are links of the cluster's tree that a request crosses. KRPJ is thousands of requests per joule: of ACTIVE power,\n" +
			"which requests take beyond what idle servers do, or of WALL power, which is all that the servers take.",
		Example: "  lambdanic sim cluster run --app IOT-TS --cluster 3xType1-SmartNIC --policy hcm,spread --load 20%,50%,90% --plot iot.svg\n" +
			"  lambdanic sim cluster run --app 'API gw*2@host > KVS*4 > Count*4:0.5' --cluster 2xType1-SmartNIC+1xBeefy --load 200000",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&r.app, "app", "NFV-FIN", "application: a name, or a graph")
	f.StringVar(&r.cluster, "cluster", "3xType1-SmartNIC", "servers, like 2xBeefy+2xWimpy")
	f.StringSliceVar(&r.policies, "policy", []string{string(cluster.HCM)}, "policies: hcm, spread, anneal, ilp")
	f.StringSliceVar(&r.loads, "load", []string{"peak"}, "loads: requests/s, shares of the peak, or peak")
	f.Float64Var(&r.fill, "fill", 1, fillUsage)
	f.IntVar(&r.backups, "backups", 1, "replicas of each microservice that stand by on other servers")
	f.StringVar(&r.times, "times", "exponential", "how a microservice's times are spread about their mean: exponential, or fixed")
	f.IntVar(&r.requests, "requests", 100_000, "requests that are measured, of each load")
	f.StringVar(&r.services, "services", "", "CSV with services of your own")
	f.StringVar(&r.systems, "systems", "", "CSV with servers of your own")
	f.DurationVar(&r.timeout, "timeout", 10*time.Second, "of the ILP's solver")
	f.Uint64Var(&r.seed, "seed", 1, "of all loads, and of annealing")
	r.out.flags(cmd)
	return cmd
}

const fillUsage = "share of the most load for which HCM finds room that the application is placed for"

func checkFill(fill float64) error {
	if !(fill > 0 && fill <= 1) {
		return fmt.Errorf("--fill %v: it has to be above 0 and at most 1", fill)
	}
	return nil
}

// clusterRow is a line of results.
type clusterRow struct {
	Policy      string            `json:"policy"`
	Load        string            `json:"load"`
	Rate        float64           `json:"requests_per_second"` // that came
	Peak        float64           `json:"peak_requests_per_second"`
	Bottleneck  string            `json:"bottleneck"`
	Throughput  float64           `json:"replies_per_second"`
	Hops        float64           `json:"hops"`
	Mean        float64           `json:"mean_us"`
	P50         float64           `json:"p50_us"`
	P99         float64           `json:"p99_us"`
	Active      float64           `json:"active_watts"`
	ActiveKRPJ  float64           `json:"active_krpj"`
	Wall        float64           `json:"wall_watts"`
	WallKRPJ    float64           `json:"wall_krpj"`
	Arrived     int               `json:"arrived"`
	Answered    int               `json:"answered"`
	InFlight    int               `json:"in_flight"`
	Parts       []cluster.PartUse `json:"microservices"`
	Nodes       []cluster.NodeUse `json:"nodes"`
	Warning     string            `json:"warning,omitempty"`
	Utilisation float64           `json:"-"` // of the node that is used most
}

var clusterHead = []column{
	{"POLICY", "policy"}, {"LOAD", "load"}, {"REPLIES/S", "replies_per_second"}, {"HOPS", "hops"}, {"MEAN µs", "mean_us"}, {"P50 µs", "p50_us"},
	{"P99 µs", "p99_us"}, {"BUSIEST %", "busiest_percent"}, {"ACTIVE W", "active_watts"}, {"ACTIVE KRPJ", "active_krpj"}, {"WALL W", "wall_watts"},
	{"WALL KRPJ", "wall_krpj"},
}

// setup makes what the flags say.
func (r *clusterRun) setup(cmd *cobra.Command) (*cluster.Setup, error) {
	c := cluster.Default()
	for _, own := range []struct {
		flag, file string
		read       func(io.Reader) error
	}{{"services", r.services, c.ReadServices}, {"systems", r.systems, c.ReadSystems}} {
		if own.file == "" {
			continue
		}
		f, err := os.Open(own.file)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", own.flag, err)
		}
		err = own.read(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %w", own.flag, own.file, err)
		}
		for _, name := range c.Replaced {
			warn(cmd, "--%s %s: its %s takes the place of the paper's", own.flag, own.file, name)
		}
		c.Replaced = nil
	}
	app, err := c.Application(r.app)
	if err != nil {
		return nil, err
	}
	servers, err := c.Cluster(r.cluster)
	if err != nil {
		return nil, err
	}
	return &cluster.Setup{Application: app, Cluster: servers, Backups: r.backups}, nil
}

func (r *clusterRun) run(cmd *cobra.Command, o *options) error {
	if err := r.out.check(o); err != nil {
		return err
	}
	if err := checkFill(r.fill); err != nil {
		return err
	}
	if r.times != "exponential" && r.times != "fixed" {
		return fmt.Errorf("--times %s: it has to be exponential or fixed", r.times)
	}
	setup, err := r.setup(cmd)
	if err != nil {
		return err
	}
	rows, err := r.rows(cmd, setup)
	if err != nil {
		return err
	}
	return r.out.write(cmd, o, rows, clusterHead, clusterCells(rows), func(w io.Writer) error { return drawCluster(w, rows) })
}

func (r *clusterRun) rows(cmd *cobra.Command, setup *cluster.Setup) (rows []clusterRow, err error) {
	progress, end := watch(cmd, "runs")
	defer end()
	for _, name := range r.policies {
		policy, err := cluster.ParsePolicy(name)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		progress(len(rows), len(r.policies)*len(r.loads))
		p, err := setup.Place(cmd.Context(), cluster.How{Policy: policy, Fill: r.fill, Seed: r.seed, Timeout: r.timeout})
		if err != nil {
			return nil, err
		}
		for _, text := range r.loads {
			row, err := r.simulate(cmd, p, text)
			if err != nil {
				return nil, fmt.Errorf("--load %s: %w", text, err)
			}
			row.Policy = string(policy)
			if row.Warning != "" && len(rows) == 0 { // it is of the services and servers, and the same for all loads
				warn(cmd, "%s, %s: %s", policy, text, row.Warning)
			}
			rows = append(rows, row)
			progress(len(rows), len(r.policies)*len(r.loads))
		}
	}
	if rows == nil {
		return nil, errors.New("there is nothing to simulate: give at least one --policy and one --load")
	}
	return rows, nil
}

func (r *clusterRun) simulate(cmd *cobra.Command, p *cluster.Placed, text string) (row clusterRow, err error) {
	row.Load = text
	row.Peak, row.Bottleneck = p.Peak()
	if row.Rate, err = loadOf(text, row.Peak); err != nil {
		return row, err
	}
	out, err := p.Run(cmd.Context(), cluster.Load{Rate: row.Rate, Requests: r.requests, Fixed: r.times == "fixed", Seed: r.seed})
	if err != nil {
		return row, err
	}
	if beyond, much := p.Disagree(out.Power); much {
		row.Warning = fmt.Sprintf("requests take %.0f W by the services' watts (ACTIVE), but these servers only %.0f W beyond idle (WALL), so one of the two is wrong: "+
			"peak_watts is with all cores at work, and host_watts and nic_watts are of host_cores and nic_cores", out.Active, beyond)
	}
	row.Hops, row.Throughput, row.Parts = p.Hops(), out.Throughput, p.Parts()
	row.Mean, row.P50, row.P99 = out.Latency.Mean()/1000, float64(out.Latency.ValueAtQuantile(50))/1000, float64(out.Latency.ValueAtQuantile(99))/1000
	row.Active, row.ActiveKRPJ, row.Wall, row.WallKRPJ = out.Active, out.ActiveKRPJ(), out.Wall, out.WallKRPJ()
	row.Arrived, row.Answered, row.InFlight, row.Nodes = out.Arrived, out.Answered, out.InFlight, out.Nodes
	for _, n := range out.Nodes {
		row.Utilisation = max(row.Utilisation, n.Utilisation)
	}
	return row, nil
}

// loadOf reads a load.
func loadOf(text string, peak float64) (float64, error) {
	if text == "peak" {
		return cluster.Knee * peak, nil
	}
	share, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(share, 64)
	if err != nil {
		return 0, errors.New("it has to be peak, a share of it like 50%, or requests/s")
	}
	if percent {
		x *= peak / 100
	}
	return x, nil
}

func clusterCells(rows []clusterRow) (cells [][]string) {
	for _, r := range rows {
		cells = append(cells, []string{
			r.Policy, r.Load, whole(r.Throughput), twoDigits(r.Hops), twoDigits(r.Mean), twoDigits(r.P50), twoDigits(r.P99), twoDigits(100 * r.Utilisation),
			twoDigits(r.Active), threeDigits(r.ActiveKRPJ), twoDigits(r.Wall), threeDigits(r.WallKRPJ),
		})
	}
	return cells
}

// drawCluster draws latency and energy over the load.
func drawCluster(w io.Writer, rows []clusterRow) error {
	x := chart.Axis{Label: "thousands of requests/s"}
	latency := chart.Chart{Title: "Median (dashed) and 99th percentile", X: x, Y: chart.Axis{Label: "latency (µs)", Log: true}}
	energy := chart.Chart{Title: "Energy efficiency, of wall power", X: x, Y: chart.Axis{Label: "thousands of requests per joule"}}
	for from := 0; from < len(rows); {
		to := from
		var tail, median, krpj []chart.Point
		for ; to < len(rows) && rows[to].Policy == rows[from].Policy; to++ {
			r := &rows[to]
			tail = append(tail, chart.Point{X: r.Throughput / 1000, Y: r.P99})
			median = append(median, chart.Point{X: r.Throughput / 1000, Y: r.P50})
			krpj = append(krpj, chart.Point{X: r.Throughput / 1000, Y: r.WallKRPJ})
			latency.Y.Max = max(latency.Y.Max, 10*r.P99) // room for the legend
		}
		like := 1 + len(energy.Lines)
		latency.Lines = append(latency.Lines, chart.Line{Name: rows[from].Policy, Points: tail, Like: like}, chart.Line{Points: median, Like: like, Dashed: true})
		energy.Lines = append(energy.Lines, chart.Line{Name: rows[from].Policy, Points: krpj, Like: like})
		from = to
	}
	return chart.Draw(w, latency, energy)
}
