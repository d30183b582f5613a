package api

import (
	"net/netip"
	"time"

	"github.com/openfaas/faas-provider/types"
)

// The HTTP API. /function/NAME and /system/functions have OpenFaaS's shape: their bodies are the types of
// github.com/openfaas/faas-provider, and Function below is a FunctionStatus with more fields.

// DefaultNamespace is the namespace of functions that name none.
const DefaultNamespace = "default"

// Annotations by which a deploy overrides the spec. OpenFaaS's clients can send them too.
const (
	// AnnotationPrefix begins our annotations; others with it are refused.
	AnnotationPrefix = "lambdanic."
	// AnnotationTargets lists targets in order of preference, with commas between them.
	AnnotationTargets = "lambdanic.targets"
	// AnnotationService and a service's name give that service's address, IP:PORT or host:PORT; several are separated by spaces.
	AnnotationService = "lambdanic.service."
)

// Headers of requests to functions and their answers.
const (
	HeaderMethod    = "X-Method"           // request: the λ-RPC method; the query parameter "method" does the same
	HeaderTimeout   = "X-Timeout"          // request: how long the caller waits, as Go writes durations
	HeaderCallID    = "X-Call-Id"          // answer: the caller's own where it sent one, else a new UUID
	HeaderServedBy  = "X-Served-By"        // answer: NODE/TARGET
	HeaderStartTime = "X-Start-Time"       // answer: when the gateway had the request, in Unix nanoseconds
	HeaderDuration  = "X-Duration-Seconds" // answer: how long the gateway took
	HeaderRevision  = "X-Revision"         // answer: the revision that answered
)

// State says whether a function serves.
type State string

// The states.
const (
	StateReady State = "ready" // the wanted revision serves
	StateError State = "error" // it does not serve; the reason says why
)

// Refusal says why a target that comes earlier in a function's list does not run it.
type Refusal struct {
	Target Target `json:"target"`
	Reason string `json:"reason"`
}

// Function is what /system/function/NAME answers: OpenFaaS's fields, and ours.
type Function struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	Image             string            `json:"image"` // NAME@sha256:..., the artifact
	EnvVars           map[string]string `json:"envVars,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	InvocationCount   float64           `json:"invocationCount,omitempty"`
	Replicas          uint64            `json:"replicas"`
	AvailableReplicas uint64            `json:"availableReplicas"`
	CreatedAt         time.Time         `json:"createdAt"`

	UpdatedAt time.Time      `json:"updatedAt"`
	Workload  uint32         `json:"workload"`
	Revision  uint32         `json:"revision"`
	Target    Target         `json:"target"`
	Endpoint  netip.AddrPort `json:"endpoint"` // where its λ-RPC requests go
	State     State          `json:"state"`
	Reason    string         `json:"reason,omitempty"`
	Refused   []Refusal      `json:"refused,omitempty"`
	Fused     *Fused         `json:"fused,omitempty"` // where it shares a program with others
	Memory    uint64         `json:"memory"`          // bytes that count for its namespace's quota
	Spec      Spec           `json:"spec"`
}

// Fused names the program that serves several functions.
type Fused struct {
	Image string   `json:"image"` // of the program
	With  []string `json:"with"`  // the others that it serves: NAME, or NAME.NAMESPACE in another namespace
}

// FusedDeployment is the body of POST /system/fused: OpenFaaS's requests for functions that are to be one program on the NIC. The
// answer lists the functions.
type FusedDeployment struct {
	Functions []types.FunctionDeployment `json:"functions"`
}

// Artifact is what POST /system/artifacts answers.
type Artifact struct {
	Image string `json:"image"`
	Spec  Spec   `json:"spec"`
	Log   string `json:"log,omitempty"` // the compiler's warnings

	Refused []Refusal `json:"refused,omitempty"` // targets of the spec that it was not built for
}

// FunctionStats are one function's counters: GET /system/stats answers a list.
type FunctionStats struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Workload  uint32 `json:"workload"`
	Revision  uint32 `json:"revision"`
	Target    Target `json:"target"`
	Stats
}

// Stats are counters since a revision was loaded. docs/operations.md says what each counts.
type Stats struct {
	Requests  uint64   `json:"requests"` // begun: a message of many packets counts once, a refused request does not count
	Replies   uint64   `json:"replies"`  // likewise
	Errors    uint64   `json:"errors"`   // packets
	Drops     uint64   `json:"drops"`
	Calls     uint64   `json:"calls"`
	Faults    uint64   `json:"faults"`
	FaultsBy  FaultsBy `json:"faults_by"`  // the causes of the faults
	Late      uint64   `json:"late"`       // not answered: the client's deadline was over
	OverQuota uint64   `json:"over_quota"` // packets that were refused because the namespace could do no more at the time
	OverShare uint64   `json:"over_share"` // packets that were refused because the NIC had no time left, and the namespace had its share
	// OverBandwidth counts packets that were refused because the NICs had sent what they may, and the namespace had its share of that.
	OverBandwidth uint64     `json:"over_bandwidth"`
	BadTags       uint64     `json:"bad_tags"` // packets that were refused because their tag was missing or wrong
	Replayed      uint64     `json:"replayed"` // packets that were dropped because their sequence number had been used, or was too old to tell
	BytesIn       uint64     `json:"bytes_in"`
	BytesOut      uint64     `json:"bytes_out"`
	Samples       uint64     `json:"samples"`    // runs whose time was measured
	SampledNS     uint64     `json:"sampled_ns"` // their time together
	Histogram     [32]uint64 `json:"histogram"`  // of the samples: bucket i counts [2^i, 2^(i+1)) ns
}

// Object is a global variable of a running lambda that the host can read and write: GET /system/function/NAME/objects answers a list.
// GET and PUT of /system/function/NAME/objects/OBJECT have its value as the body, as the machine has it in memory.
type Object struct {
	Name string `json:"name"`
	Size uint32 `json:"size"` // bytes
}

// Node is what GET /system/node answers.
type Node struct {
	Name     string       `json:"name"`
	Instance string       `json:"instance"`
	Version  string       `json:"version"`
	PID      int          `json:"pid"`
	Targets  []NodeTarget `json:"targets"`
	Store    string       `json:"store"`            // where it is, for people
	Listen   string       `json:"listen,omitempty"` // of the gateway, HOST:PORT
	Budget
}

// Budget is what of a node's NICs its namespaces share by weight (Quota). What is 0 is not shared: packets are served as they come.
type Budget struct {
	// Time is how many nanoseconds of each second each CPU may spend on packets of namespaces.
	Time uint64 `json:"nic_budget,omitempty"`
	// Bandwidth is how many bits a second the NICs send for namespaces, all together.
	Bandwidth uint64 `json:"nic_bandwidth,omitempty"`
}

// NodeTarget is one place of a node where lambdas can run, or the reason why they cannot.
type NodeTarget struct {
	Target    Target `json:"target"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`
	Detail    string `json:"detail,omitempty"` // interface and mode, for instance
	// Interfaces are those by which packets come to its lambdas.
	Interfaces []string `json:"interfaces,omitempty"`
	Lambdas    int      `json:"lambdas"`
}

// Error is the body of an answer that reports an error.
type Error struct {
	Error string `json:"error"`
}
