package api

import "net/netip"

// RDMA into lambdas' memory (docs/rdma.md). POST /system/function/NAME/rdma/regions and .../queue-pairs take the first of each pair of
// types and answer the second, GET lists the second, and DELETE with a key or number appended removes one.

// RegionRequest asks for a region. The zero value asks for the size of the lambda's largest message.
type RegionRequest struct {
	Length Bytes  `json:"length,omitempty"`
	Method uint32 `json:"method,omitempty"` // of messages that come without a number
}

// Region is memory of a lambda that peers write to by RDMA.
type Region struct {
	RKey     uint32 `json:"rkey"`
	Address  uint64 `json:"address"` // for peers; below 2^47
	Length   uint32 `json:"length"`
	Method   uint32 `json:"method"`
	Revision uint32 `json:"revision"` // that owns the memory
	Runs     uint64 `json:"runs"`     // of the lambda on the region
}

// Transport is the transport service of a queue pair.
type Transport string

// The transports.
const (
	TransportRC Transport = "rc" // reliable connection: what is lost comes again
	TransportUC Transport = "uc" // unreliable connection: a message that misses a packet is lost
)

// ICRC says what the NIC does with the packets' own checksums.
type ICRC string

// The uses of checksums.
const (
	ICRCCheck ICRC = "check"
	ICRCTrust ICRC = "trust" // that the link's checksum is enough
)

// QueuePairRequest is the peer's half of a connection.
type QueuePairRequest struct {
	Transport Transport  `json:"transport,omitempty"` // rc
	Peer      netip.Addr `json:"peer"`
	PeerQPN   uint32     `json:"peer_qpn"`
	PSN       uint32     `json:"psn"`           // of the peer's first packet
	MTU       int        `json:"mtu,omitempty"` // of payload in a packet: 256, 512, 1024, 2048 or 4096; 1024
	ICRC      ICRC       `json:"icrc,omitempty"`
	Receive   uint32     `json:"receive,omitempty"` // the key of the region that SENDs go to
}

// QueuePair is a connection's responder on the NIC.
type QueuePair struct {
	QueuePairRequest
	QPN     uint32     `json:"qpn"`
	Address netip.Addr `json:"address"` // of the NIC
	Broken  bool       `json:"broken"`  // it refused a message, and takes no more

	NextPSN  uint32 `json:"next_psn"`
	Packets  uint64 `json:"packets"` // taken in
	Bytes    uint64 `json:"bytes"`
	Messages uint64 `json:"messages"`
	Repeated uint64 `json:"repeated"` // packets that had arrived before
	NAKs     uint64 `json:"naks"`     // sent
	Dropped  uint64 `json:"dropped"`  // packets
}
