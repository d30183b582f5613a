package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSimClusterRun(t *testing.T) {
	args := []string{"cluster", "run", "--app", "BM25", "--cluster", "1xWimpy", "--backups", "0", "--load", "50%,peak", "--policy", "hcm,spread", "--requests", "20000"}
	var rows []clusterRow
	if simulated(t, &rows, "of wall power", args...); len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	for i, share := range []float64{0.5, 0.9, 0.5, 0.9} {
		// A NIC's 12 cores serve 394.1 thousand a second, for 19.2 W; Wimpy has 32.
		peak := 394.1e3 * 32 / 12
		r := &rows[i]
		for what, is := range map[string][2]float64{
			"peak": {r.Peak, peak}, "rate": {r.Rate, share * peak}, "throughput": {r.Throughput, share * peak}, "active": {r.Active, share * 32 / 12 * 19.2},
			"active KRPJ": {r.ActiveKRPJ, 394.1 / 19.2}, "wall": {r.Wall, 79 + 16*share}, "wall KRPJ": {r.WallKRPJ, share * peak / (79 + 16*share) / 1000},
			"utilisation": {r.Nodes[0].Utilisation, share},
		} {
			if is[0] < 0.97*is[1] || is[0] > 1.03*is[1] {
				t.Errorf("%s of %s: %s is %v, want %v", r.Load, r.Policy, what, is[0], is[1])
			}
		}
		if len(r.Parts) != 1 || r.Parts[0].NICs != 1 || r.Nodes[0].Shards["BM25"] != 1 {
			t.Errorf("it went to %+v, %+v", r.Parts, r.Nodes)
		}
		if r.Bottleneck != "server0/nic0" || r.Arrived != r.Answered+r.InFlight || r.P50 > r.P99 {
			t.Errorf("%+v", r)
		}
	}
	if got, _, err := simulateBoth(t, append(args, "--csv")...); err != nil || strings.Count(got, "\n") != 5 || !strings.HasPrefix(got, "policy,load,replies_per_second,") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// Servers of one's own that disagree with the paper's services are warned of, as is a row that takes the place of the paper's.
func TestSimClusterWarns(t *testing.T) {
	servers := filepath.Join(t.TempDir(), "servers.csv")
	text := "system,usd,idle_watts,peak_watts,gbps,host_cores,host_speed,host_gib,nics,nic_cores,nic_gib\nMine,6000,90,260,100,16,1.2,128,2,16,16\nBeefy,1,1,2,1,1,1,1,0,0,0\n"
	if err := os.WriteFile(servers, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := simulate(t, "cluster", "run", "--systems", servers, "--cluster", "10xMine", "--app", "KVS*60", "--load", "50%,peak", "--requests", "1000")
	for _, want := range []string{"warning: --systems " + servers + ": its Beefy takes the place of the paper's\n", "warning: hcm, 50%: requests take ", "by the services' watts (ACTIVE)"} {
		if err != nil || strings.Count(got, want) != 1 {
			t.Errorf("%v, %s, want once %s", err, got, want)
		}
	}
	if got, err := simulate(t, "cluster", "run", "--app", "BM25", "--cluster", "2xBeefy", "--requests", "1000"); err != nil || strings.Contains(got, "warning") {
		t.Errorf("%v, %s", err, got)
	}
}

// Each experiment has as many lines as the paper's has numbers, and draws.
func TestSimClusterPaper(t *testing.T) {
	for args, want := range map[string]struct {
		lines int
		match string
	}{
		"paper table5":                    {1 + 15, `4xBeefy +RTA-SHM .* 1\.9\n`},
		"paper figure10":                  {1 + 3*5*6, `NFV-FIN +2xType2-SmartNIC +5 +\d+ +1\.00\n`},
		"paper figure6 --requests 1000":   {1 + 8*3, `IOT-TS +anneal`},
		"paper table6 --servers 100,1000": {1 + 2, `hcm +1000 +10\d\d\d +\S+ +263\.46\n`},
		"place --servers 50 --microservices 100 --policy hcm,anneal": {1 + 2, `anneal +50 +132 +\S+ +-\n`},
	} {
		plot := filepath.Join(t.TempDir(), "plot.svg")
		got, err := simulate(t, append([]string{"cluster"}, append(strings.Fields(args), "--plot", plot)...)...)
		if err != nil || strings.Count(got, "\n") != want.lines || !regexp.MustCompile(want.match).MatchString(got) {
			t.Errorf("%s: %v\n%s", args, err, got)
		}
		if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "</svg>") {
			t.Errorf("%s: the plot: %v", args, err)
		}
	}
}

func TestSimClusterRefuses(t *testing.T) {
	for want, args := range map[string]string{
		`experiment "figure7": there are table5, figure6, table6, figure10`:  "paper figure7",
		`policy "best": it has to be hcm, spread, anneal or ilp`:             "run --policy best",
		`--load fast: it has to be peak, a share of it like 50%`:             "run --load fast",
		`--load -5: load: -5 requests/s are not positive`:                    "run --load=-5",
		`--load 100%: load: 4.29`:                                            "run --load 100%",
		`--times normal: it has to be exponential or fixed`:                  "run --times normal",
		`neither one of NFV-FIN, `:                                           "run --app NFV",
		`--servers: table5 has the paper's setup alone`:                      "paper table5 --servers 3",
		`--policy: figure10 has the paper's setup alone`:                     "paper figure10 --policy ilp",
		`--servers: figure6 takes only --policy, --fill`:                     "paper figure6 --servers 3",
		`--shards: table6 takes only --policy, --servers`:                    "paper table6 --shards 3",
		`KVS*12@nic: after @ there can only be host`:                         "run --app KVS*12@nic",
		`even without requests: app`:                                         "run --app KVS*64 --cluster 1xWimpy --backups 0 --load 1 --systems small.csv",
		`cluster "3xType9": server "Type9": it has to be one of`:             "run --cluster 3xType9",
		`--fill 0: it has to be above 0 and at most 1`:                       "run --fill 0",
		`--fill NaN: it has to be`:                                           "paper figure6 --fill NaN",
		`backups: 99 is not between`:                                         "run --backups 99",
		`requests: 0 is not between`:                                         "run --requests 0",
		`--services: open /no/such/file`:                                     "run --services /no/such/file",
		`there is nothing to simulate`:                                       "run --policy=",
		`there is nothing to compare`:                                        "paper figure6 --policy=",
		`there is nothing to place`:                                          "place --policy=",
		`no node fits microservice "0/KVS/31": all 1 node: 1 refused by mem`: "run --app KVS*32 --cluster 1xWimpy --backups 0 --load 1 --systems small.csv",
		`hcm on 0 servers: servers: 0 is not between 1 and`:                  "place --servers 0",
		`shards: 0 is not between`:                                           "paper figure6 --shards 0",
		`an ILP of 72 microservices on 6 nodes`:                              "paper figure6 --policy ilp",
		`--plot x.png: it is drawn as SVG`:                                   "paper table5 --plot x.png",
	} {
		if strings.Contains(args, "small.csv") {
			small := filepath.Join(t.TempDir(), "small.csv")
			text := "system,usd,idle_watts,peak_watts,gbps,host_cores,host_speed,host_gib,nics,nic_cores,nic_gib\nWimpy,1,1,2,20,0,0,0,1,32,1.94\n"
			if err := os.WriteFile(small, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args = strings.Replace(args, "small.csv", small, 1)
		}
		if got, err := simulate(t, append([]string{"cluster"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %s, want %s", args, err, got, want)
		}
	}
}
