// Package golden checks api against the golden packets, which a program in another language packed after docs/protocol.md.
package golden

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

type hex64 uint64

func (v *hex64) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	*v = hex64(n)
	return err
}

type golden struct {
	Name    string `json:"name"`
	Hex     string `json:"hex"`
	Error   string `json:"error"`
	Payload string `json:"payload"`
	Padding int    `json:"padding"`
	Header  struct {
		Magic         uint16   `json:"magic"`
		Version       uint8    `json:"version"`
		Type          api.Type `json:"type"`
		Flags         api.Flag `json:"flags"`
		Code          uint8    `json:"code"`
		Length        uint16   `json:"length"`
		Workload      uint32   `json:"workload"`
		Revision      uint32   `json:"revision"`
		Request       hex64    `json:"request"`
		Index         uint32   `json:"index"`
		Count         uint32   `json:"count"`
		MessageLength uint32   `json:"message_length"`
		Method        uint32   `json:"method"`
		DeadlineUS    uint32   `json:"deadline_us"`
		Client        uint32   `json:"client"`
		Sequence      uint32   `json:"sequence"`
		Reserved      uint32   `json:"reserved"`
		Tag           hex64    `json:"tag"`
	} `json:"header"`
}

func TestGolden(t *testing.T) {
	text, err := os.ReadFile("packets.json")
	if err != nil {
		t.Fatal(err)
	}
	var packets []golden
	if err := json.Unmarshal(text, &packets); err != nil {
		t.Fatal(err)
	}
	types, codes, flags := map[api.Type]bool{}, map[uint8]bool{}, api.Flag(0)
	for _, g := range packets {
		t.Run(g.Name, func(t *testing.T) { g.check(t) })
		if g.Error == "" {
			types[g.Header.Type] = true
			flags |= g.Header.Flags
			codes[g.Header.Code] = codes[g.Header.Code] || g.Header.Type == api.TypeError
		}
	}
	for code := range uint8(api.CodeStale) {
		if !codes[code+1] {
			t.Errorf("no packet has error %d", code+1)
		}
	}
	if len(types) != int(api.TypeError) || flags != 2*api.FlagResend-1 {
		t.Errorf("types %v and flags %b are not all", types, flags)
	}
}

func (g *golden) check(t *testing.T) {
	wire, err := hex.DecodeString(g.Hex)
	if err != nil {
		t.Fatal(err)
	}
	h, payload, err := api.ParsePacket(wire)
	if err == nil && (h.Type == api.TypeRequest || h.Type == api.TypeResponse) {
		_, _, err = h.Placement()
	}
	switch g.Error {
	case "not λ-RPC":
		if !errors.Is(err, api.ErrNotRPC) {
			t.Errorf("error %v", err)
		}
		return
	case "malformed":
		if !errors.Is(err, api.ErrMalformed) {
			t.Errorf("error %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	w := g.Header
	want := api.Header{
		Magic: w.Magic, Version: w.Version, Type: w.Type, Flags: w.Flags, Code: w.Code, Length: w.Length, Workload: w.Workload,
		Revision: w.Revision, Request: uint64(w.Request), Index: w.Index, Count: w.Count, MessageLen: w.MessageLength,
		Method: w.Method, DeadlineUS: w.DeadlineUS, Client: w.Client, Sequence: w.Sequence, Reserved: w.Reserved, Tag: uint64(w.Tag),
	}
	if h != want {
		t.Errorf("header\n%+v, want\n%+v", h, want)
	}
	if hex.EncodeToString(payload) != g.Payload || len(wire)-api.RPCHeaderLen-len(payload) != g.Padding {
		t.Errorf("payload %x with %d bytes of padding", payload, len(wire)-api.RPCHeaderLen-len(payload))
	}
	if again := append(h.Append(nil), payload...); hex.EncodeToString(again) != g.Hex[:2*len(again)] {
		t.Errorf("written back as %x", again)
	}
}
