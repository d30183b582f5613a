// Package suite has the benchmark suites of `lambdanic bench`: what the NIC does for a user's functions.
package suite

import (
	"context"

	"github.com/lambdanic/lambdanic/bench/coap"
	"github.com/lambdanic/lambdanic/bench/ikernel"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// All lists the suites.
func All() []measure.Suite {
	return []measure.Suite{
		{Name: "echo", About: "the limit: a bare XDP_TX echo on the NIC's own pair", Run: runEcho},
		{Name: "dispatch", About: "a packet's cost with 1,000 lambdas deployed against one", Run: runDispatch},
		{Name: "shares", About: "tenants that ask for more than there is: their shares of the NIC's time, by weight and over time", Run: runShares},
		{
			Name: "isolation", About: "a tenant's latency beside one that asks for 10 times its share; datagrams that pass the NIC program; what a CPU can refuse",
			Benchmarks: isolationBenchmarks, Run: runIsolation,
		},
		{Name: "deploy", About: "from source to the first answer: compiler and NIC alone, and by the API of a daemon", Run: runDeploy},
		{Name: "swap", About: "from one built revision to the next: the NIC alone, and by the API of a daemon", Run: runSwap},
		{Name: "gateway", About: "HTTP: web_server on the NIC through the gateway, a bare net/http server and nginx", Run: runGateway},
		{Name: "clients", About: "what the clients in C, Go, Python and Node.js add to a bare socket", Run: runClients},
		{Name: "rdma", About: "1 MiB into a lambda's memory: by RDMA against λ-RPC", Run: runRDMA},
		{
			Name: "placement", About: "10,000 microservices onto clusters of up to 100,000 servers with SmartNICs, beside the E3 paper's Table 6",
			Benchmarks: placementBenchmarks(), Run: runPlacement,
		},
		{
			Name: "orchestrator", About: "heartbeats of 200,000 NICs and decisions on them, with up to 1,000 lambdas a NIC",
			Run: runOrchestrator(largestFleet, 1, 10, 100, 1000),
		},
		{Name: "web_server", About: "pages: the NIC against a process", Run: compare(measure.WebServer)},
		{Name: "kv_client", About: "memcached: the NIC against a process", Run: compare(measure.KVClient)},
		{
			Name: "memcached", About: "memcached-cache: a memcached with it against the same one alone",
			Benchmarks: ikernel.Benchmarks, Run: runMemcached,
		},
		{
			Name: "coap-jwt", About: "coap-jwt: a CoAP server for Node.js with it against the same one alone, while forged requests come; tenants' shares",
			Benchmarks: coap.Benchmarks, Run: runCoAP,
		},
		{Name: "image_transformer", About: "256x256 images: the NIC against a process", Run: compare(measure.ImageTransformer)},
		{Name: "othello", About: "Othello on one core: positions counted as published, to depth 12, against plain bitboards; searches of depth 5", Run: runOthello},
		{Name: "simulators", About: "messages simulated a second; JBSQ(2) against RSS; searches of depths 5 and 6 against the L-NIC paper's simulator", Run: runSimulators},
	}
}

func runMemcached(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	return ikernel.Run(ctx, s.Plain, o, ikernel.Full)
}

func runCoAP(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	return coap.Run(ctx, s.Plain, o, coap.Full)
}

func runEcho(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	var rates report.Samples
	for round := range o.Rounds {
		o.Log("echo: round %d of %d", round+1, o.Rounds)
		r, err := measure.EchoRate(ctx, s)
		if err != nil {
			return nil, err
		}
		rates = append(rates, r)
	}
	return []report.Result{report.Compare("xdp_tx_pps", "1/s", report.Higher, measure.SourceOpen, rates, nil)}, nil
}

// compare makes a suite of one work.
func compare(work func() measure.Work) func(context.Context, *stand.Stand, measure.Options) ([]report.Result, error) {
	return func(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
		w := work()
		a, err := s.Build(ctx, w.Lambda)
		if err != nil {
			return nil, err
		}
		m, err := measure.Compare(ctx, s, a, w, o.Rounds, o.Log)
		if err != nil {
			return nil, err
		}
		return m.Results(), nil
	}
}
