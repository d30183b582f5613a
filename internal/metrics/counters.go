package metrics

import "github.com/lambdanic/lambdanic/api"

// A FunctionCounter is one of the counters of a function's running revision: its name, and what it counts. `lambdanic stats`,
// GET /metrics and the documentation use it.
type FunctionCounter struct {
	Column string // its heading in `lambdanic stats`; "" if it has no column
	Name   string // in GET /metrics
	Help   string
	Value  func(*api.Stats) uint64
}

// faults is the counter that GET /metrics splits by cause.
const faults = "lambdanic_function_faults_total"

// FunctionCounters are all counters, in the order of `lambdanic stats`.
var FunctionCounters = []FunctionCounter{
	{
		"REQUESTS", "lambdanic_function_requests_total",
		"Requests begun. A message of many packets counts once, one of a single packet each time that it runs. What is refused before it runs does not count.",
		func(s *api.Stats) uint64 { return s.Requests },
	},
	{
		"REPLIES", "lambdanic_function_replies_total",
		"Replies sent. One of many packets counts once, and a remembered one that is sent again does not.",
		func(s *api.Stats) uint64 { return s.Replies },
	},
	{
		"ERRORS", "lambdanic_function_errors_total",
		"Packets answered with an error of λ-RPC: a refusal, a fault or a time-out. A reply whose status the lambda set is none of them. A message that is refused before it begins counts once, by its first packet.",
		func(s *api.Stats) uint64 { return s.Errors },
	},
	{
		"DROPS", "lambdanic_function_drops_total",
		"Packets that the lambda left without an answer (RETURN_DROP), or that its match stage let go no further.",
		func(s *api.Stats) uint64 { return s.Drops },
	},
	{
		"CALLS", "lambdanic_function_external_calls_total",
		"External calls begun. Sending one again, for want of an answer, does not count.",
		func(s *api.Stats) uint64 { return s.Calls },
	},
	{
		"FAULTS", faults,
		"Faults: runs that the lambda gave up, or that ended for what it did. A packet that is sent again, and answered with the fault again, counts again.",
		func(s *api.Stats) uint64 { return s.Faults },
	},
	{
		"LATE", "lambdanic_function_late_total",
		"Requests that got no answer before their client's deadline: they came too late, or a service answered too late. Each is among the errors, too.",
		func(s *api.Stats) uint64 { return s.Late },
	},
	{
		"OVER QUOTA", "lambdanic_function_over_quota_total",
		"Packets refused because the namespace's quota of requests or of NIC time was used up. Those that were answered with the error are among the errors, too.",
		func(s *api.Stats) uint64 { return s.OverQuota },
	},
	{
		"OVER SHARE", "lambdanic_function_over_share_total",
		"Packets refused because the CPU had spent its budget, and the namespace had its share of it. Those that were answered with the error busy are among the errors, too.",
		func(s *api.Stats) uint64 { return s.OverShare },
	},
	{
		"OVER BANDWIDTH", "lambdanic_function_over_bandwidth_total",
		"Packets refused because the NICs had sent what they may, and the namespace had its share of it. Those that were answered with the error busy are among the errors, too.",
		func(s *api.Stats) uint64 { return s.OverBandwidth },
	},
	{
		"BAD TAGS", "lambdanic_function_bad_tags_total",
		"Packets refused because their tag was wrong, or missing where the namespace requires one. Those that were answered with the error bad tag are among the errors, too.",
		func(s *api.Stats) uint64 { return s.BadTags },
	},
	{
		"REPLAYED", "lambdanic_function_replayed_total",
		"Packets with the right tag that were dropped because their client's sequence number had been used, or was too old to tell.",
		func(s *api.Stats) uint64 { return s.Replayed },
	},
	{
		"", "lambdanic_function_received_bytes_total",
		"Bytes that arrived: the payload of λ-RPC packets, those sent again too, and of RDMA; for a match stage, datagrams with their UDP headers.",
		func(s *api.Stats) uint64 { return s.BytesIn },
	},
	{
		"", "lambdanic_function_sent_bytes_total",
		"Bytes of replies: the payload of λ-RPC packets; for a match stage, whole frames.",
		func(s *api.Stats) uint64 { return s.BytesOut },
	},
}

// RunTime says what is measured of runs: MEAN, P50 and P99 of `lambdanic stats`, and a histogram.
const RunTime = "How long runs of the function took, of which one in 64 is measured. Receiving, answering, and copying a message of mode assemble are not in it."
