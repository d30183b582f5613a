package api

// Ikernels: accelerators in front of running servers. POST /system/ikernels takes an IkernelRequest and answers with an Ikernel, GET lists those
// of the node, and DELETE /system/ikernels/NAME detaches one.

// IkernelRequest asks for an ikernel in front of the server at a port.
type IkernelRequest struct {
	Ikernel    string   `json:"ikernel"`              // which one, as "memcached-cache"
	Name       string   `json:"name,omitempty"`       // what it is called from now on; default: IKERNEL-PORT
	Port       uint16   `json:"port"`                 // at which the server listens
	PID        int      `json:"pid,omitempty"`        // a process in the server's network namespace; when it ends, the ikernel is detached
	Netns      string   `json:"netns,omitempty"`      // or that namespace's name; default: the daemon's own
	Interfaces []string `json:"interfaces,omitempty"` // whose packets it sees; default: those by which the server is reached
	Mode       string   `json:"mode,omitempty"`       // how XDP is attached: auto (default), native or generic
	Memory     Bytes    `json:"memory,omitempty"`     // for what it keeps; 0: as much as the ikernel takes by default
}

// IkernelState says whether an ikernel serves.
type IkernelState string

// The states.
const (
	IkernelAttached IkernelState = "attached"
	IkernelWaiting  IkernelState = "waiting" // it could not be attached when the daemon started, and is tried again
)

// Ikernel is an ikernel in front of a server.
type Ikernel struct {
	IkernelRequest
	State    IkernelState       `json:"state"`
	Reason   string             `json:"reason,omitempty"` // why it waits
	Attached []IkernelInterface `json:"attached"`
	Counters []Counter          `json:"counters"` // since it was attached last
}

// IkernelInterface is an interface whose packets an ikernel sees.
type IkernelInterface struct {
	Interface string `json:"interface"`
	Mode      string `json:"mode"` // native or generic
}

// Counter is a number that only grows.
type Counter struct {
	Name  string `json:"name"` // in snake_case, as in GET /metrics
	Value uint64 `json:"value"`
	Help  string `json:"help"`
}
