package api

import (
	"fmt"
	"strconv"
	"strings"
)

// NetworkKind is how packets say to which virtual network they belong.
type NetworkKind string

// The kinds: a tag of IEEE 802.1Q, of two the outer one, or the header of RFC 7348.
const (
	NetworkVLAN  NetworkKind = "vlan"
	NetworkVXLAN NetworkKind = "vxlan"
)

// networkIDs are the highest numbers of networks. VLANs 0 and 4095 are none (IEEE 802.1Q), and 0 is left out of the VXLANs.
var networkIDs = map[NetworkKind]uint64{NetworkVLAN: 4094, NetworkVXLAN: 1<<24 - 1}

// A Network is a virtual network. Its text is KIND:ID, such as vlan:100 or vxlan:5001.
type Network struct {
	Kind NetworkKind
	ID   uint32 // from 1
}

// ParseNetwork reads a network's text.
func ParseNetwork(text string) (Network, error) {
	kind, id, _ := strings.Cut(text, ":")
	highest, ok := networkIDs[NetworkKind(kind)]
	n, err := strconv.ParseUint(id, 10, 32)
	switch {
	case !ok:
		return Network{}, fmt.Errorf("network %q: give it as vlan:ID or vxlan:ID", text)
	case err != nil || n == 0 || n > highest:
		return Network{}, fmt.Errorf("network %q: the ID of a %s is a number from 1 to %d", text, kind, highest)
	}
	return Network{NetworkKind(kind), uint32(n)}, nil
}

func (n Network) String() string { return fmt.Sprintf("%s:%d", n.Kind, n.ID) }

// MarshalText gives the network's text.
func (n Network) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads the network's text.
func (n *Network) UnmarshalText(text []byte) (err error) {
	*n, err = ParseNetwork(string(text))
	return err
}
