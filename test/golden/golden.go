// Package golden has packets as λ-RPC wants them on the wire (README.md).
package golden

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/lambdanic/lambdanic/api"
)

//go:embed packets.json
var text []byte

// A Packet is one UDP payload.
type Packet struct {
	Name string   `json:"name"`
	Hex  HexBytes `json:"hex"`
	Meaning
}

// Meaning is what a packet says, or why it is refused.
type Meaning struct {
	Error   string   `json:"error,omitempty"`
	Header  *Header  `json:"header,omitempty"`
	Payload HexBytes `json:"payload,omitempty"`
	Padding int      `json:"padding,omitempty"`
}

// Header is api.Header as the packets' JSON has it.
type Header struct {
	Magic         uint16   `json:"magic"`
	Version       uint8    `json:"version"`
	Type          api.Type `json:"type"`
	Flags         api.Flag `json:"flags"`
	Code          uint8    `json:"code"`
	Length        uint16   `json:"length"`
	Workload      uint32   `json:"workload"`
	Revision      uint32   `json:"revision"`
	Request       Hex64    `json:"request"`
	Index         uint32   `json:"index"`
	Count         uint32   `json:"count"`
	MessageLength uint32   `json:"message_length"`
	Method        uint32   `json:"method"`
	DeadlineUS    uint32   `json:"deadline_us"`
	Client        uint32   `json:"client"`
	Sequence      uint32   `json:"sequence"`
	Grant         uint32   `json:"grant"`
	Tag           Hex64    `json:"tag"`
}

// Pack is the inverse of Unpack.
func Pack(h *api.Header) *Header {
	return &Header{
		Magic: h.Magic, Version: h.Version, Type: h.Type, Flags: h.Flags, Code: h.Code, Length: h.Length, Workload: h.Workload,
		Revision: h.Revision, Request: Hex64(h.Request), Index: h.Index, Count: h.Count, MessageLength: h.MessageLen,
		Method: h.Method, DeadlineUS: h.DeadlineUS, Client: h.Client, Sequence: h.Sequence, Grant: h.Grant, Tag: Hex64(h.Tag),
	}
}

// Unpack gives the header that h describes.
func (h *Header) Unpack() api.Header {
	return api.Header{
		Magic: h.Magic, Version: h.Version, Type: h.Type, Flags: h.Flags, Code: h.Code, Length: h.Length, Workload: h.Workload,
		Revision: h.Revision, Request: uint64(h.Request), Index: h.Index, Count: h.Count, MessageLen: h.MessageLength,
		Method: h.Method, DeadlineUS: h.DeadlineUS, Client: h.Client, Sequence: h.Sequence, Grant: h.Grant, Tag: uint64(h.Tag),
	}
}

// Hex64 is a number of which JSON's have too few bits.
type Hex64 uint64

// MarshalText writes 0x and 16 digits.
func (v Hex64) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%016x", uint64(v)), nil }

// UnmarshalText reads what MarshalText writes.
func (v *Hex64) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	*v = Hex64(n)
	return err
}

// HexBytes are bytes that JSON has in hexadecimal.
type HexBytes []byte

// MarshalText writes them.
func (b HexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText reads them.
func (b *HexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(nil, text)
	return err
}

// Packets are those of packets.json.
func Packets() (packets []Packet, err error) {
	if err := json.Unmarshal(text, &packets); err != nil {
		return nil, fmt.Errorf("read golden packets: %w", err)
	}
	return packets, nil
}
