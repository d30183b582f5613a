package api

import (
	"cmp"
	"fmt"
	"net/netip"
)

// Ikernels: accelerators in front of running servers. POST /system/ikernels takes an IkernelRequest and answers with an Ikernel, GET lists those
// of the node and those of applications' sockets, and DELETE /system/ikernels/NAME detaches one. POST /system/ikernels/NAME/keys takes an IkernelKeysRequest.

// IkernelRequest asks for an ikernel in front of the server at a port.
type IkernelRequest struct {
	Ikernel    string   `json:"ikernel"`              // which one, as "memcached-cache"
	Name       string   `json:"name,omitempty"`       // what it is called from now on; default: IKERNEL-PORT
	Port       uint16   `json:"port,omitempty"`       // at which the server listens
	PID        int      `json:"pid,omitempty"`        // a process in the server's network namespace; when it ends, the ikernel is detached
	Netns      string   `json:"netns,omitempty"`      // or that namespace's name; default: the daemon's own
	Interfaces []string `json:"interfaces,omitempty"` // whose packets it sees; default: those by which the server is reached
	Mode       string   `json:"mode,omitempty"`       // how XDP is attached: auto (default), native or generic
	Memory     Bytes    `json:"memory,omitempty"`     // for what it keeps; 0: as much as the ikernel takes by default
	Before     string   `json:"before,omitempty"`     // the name of an ikernel at the same port, which it is to be before; default: it comes after all
	Namespace  string   `json:"namespace,omitempty"`  // in whose share and quotas it is kept; default: none

	// Whose packets pass, as prefixes (192.0.2.0/24) and addresses, and how many a second of each address; default: all.
	Allow []string `json:"allow,omitempty"`
	Rate  uint32   `json:"rate,omitempty"`

	// By which requests are checked. The files are read anew whenever the ikernel is attached.
	Keys []IkernelKey `json:"keys,omitempty"`
}

// IkernelState says whether an ikernel serves.
type IkernelState string

// The states.
const (
	IkernelAttached IkernelState = "attached"
	IkernelWaiting  IkernelState = "waiting" // it could not be attached when the daemon started, and is tried again
	IkernelIdle     IkernelState = "idle"    // an application's that has no socket
	IkernelFaulted  IkernelState = "faulted" // an application's that gave up
)

// Ikernel is an ikernel in front of a server.
type Ikernel struct {
	IkernelRequest
	State    IkernelState       `json:"state"`
	Reason   string             `json:"reason,omitempty"` // why it waits, its fault, or why an attached one cannot help its server
	Place    int                `json:"place,omitempty"`  // as which of the ikernels that share the port it gets a packet, from 1
	Places   int                `json:"places,omitempty"` // and of how many
	Attached []IkernelInterface `json:"attached"`
	Counters []Counter          `json:"counters"` // since it was attached last

	// Whose it is; nil: it was attached by POST. An application's has neither port nor interfaces, and ends with the application.
	Application *IkernelApplication `json:"application,omitempty"`
}

// IkernelApplication is a process that has an ikernel for sockets of its own.
type IkernelApplication struct {
	PID     int             `json:"pid"`
	Command string          `json:"command"` // as ps -o comm has it
	Sockets []IkernelSocket `json:"sockets"`
}

// String names the process.
func (a *IkernelApplication) String() string { return fmt.Sprintf("process %d (%s)", a.PID, a.Command) }

// IkernelSocket is a socket that is attached, or several that share their port.
type IkernelSocket struct {
	Protocol string         `json:"protocol"`      // udp or tcp
	Own      netip.AddrPort `json:"own"`           // an unspecified address stands for all
	Peer     netip.AddrPort `json:"peer,omitzero"` // if it is connected
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

// IkernelKey is a key of an ikernel. The secret itself is only in its file, which its owner alone may read.
type IkernelKey struct {
	ID   string `json:"kid,omitempty"` // how tokens name it, as "2026-11"; a key without is for all tokens that name no other
	File string `json:"file"`          // on the daemon's machine, from the root directory
}

// Name tells the keys of an ikernel apart.
func (k IkernelKey) Name() string { return cmp.Or(k.ID, k.File) }

// IkernelKeysRequest changes the keys of an ikernel, all in one step.
type IkernelKeysRequest struct {
	Remove []string     `json:"remove,omitempty"` // the keys of these IDs, or of these files where they have no ID
	Add    []IkernelKey `json:"add,omitempty"`    // one that is there already is read anew
}
