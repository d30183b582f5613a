package metrics

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A FunctionCounter is one of the counters of a function's running revision: what it is called, and what it counts. `lambdanic stats`,
// GET /metrics and the documentation have it from here.
type FunctionCounter struct {
	Column string // its heading in `lambdanic stats`; "" where it has none there
	Name   string // in GET /metrics
	Help   string
	Value  func(*api.Stats) uint64
}

// faults is the counter that GET /metrics splits by cause.
const faults = "lambdanic_function_faults_total"

// FunctionCounters are all of them, in the order of `lambdanic stats`.
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
		"Packets answered with an error, be it a refusal, a fault or a time-out. A message that is refused before it begins counts once, by its first packet.",
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
		"Faults: runs that the lambda gave up, or that ended for what it did. A packet that comes again and is told so again counts again.",
		func(s *api.Stats) uint64 { return s.Faults },
	},
	{
		"LATE", "lambdanic_function_late_total",
		"Requests that were not served because their client's deadline was over. Each is among the errors, too.",
		func(s *api.Stats) uint64 { return s.Late },
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
const RunTime = "How long runs of the function took, of which every 64th is measured. Receiving, answering, and copying a message of mode assemble are not in it."

// A nicCounter is one of the counters that a NIC has of its own.
type nicCounter struct {
	name, help string
	value      func(*backend.NICCounters) uint64
}

var nicCounters = []nicCounter{
	{"passed", "λ-RPC packets handed to the host.", func(c *backend.NICCounters) uint64 { return c.Passed }},
	{"unknown", "Packets for no lambda that is here.", func(c *backend.NICCounters) uint64 { return c.Unknown }},
	{"malformed", "Packets that contradict themselves.", func(c *backend.NICCounters) uint64 { return c.Malformed }},
	{"checksum", "Packets with a wrong UDP checksum.", func(c *backend.NICCounters) uint64 { return c.Checksum }},
	{
		"busy", "Packets refused or dropped for want of a free message or call record, or of room to wait.",
		func(c *backend.NICCounters) uint64 { return c.Busy },
	},
	{"stray", "Replies that no external call waits for.", func(c *backend.NICCounters) uint64 { return c.Stray }},
	{"forged", "Replies to an external call that are not its server's.", func(c *backend.NICCounters) uint64 { return c.Forged }},
	{"retries", "External calls that were sent again.", func(c *backend.NICCounters) uint64 { return c.Retries }},
	{"timeouts", "External calls, and waits for the host, that expired.", func(c *backend.NICCounters) uint64 { return c.Timeouts }},
	{"astray", "Packets of a match stage to where its spec lets it send none.", func(c *backend.NICCounters) uint64 { return c.Astray }},
	{
		"copies", "Packets that their clones left behind, as pacer was slow or they were long.",
		func(c *backend.NICCounters) uint64 { return c.Copies },
	},
	{"alien", "RDMA packets from others than their queue pair's peer.", func(c *backend.NICCounters) uint64 { return c.Alien }},
}
