package golden

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// The packets, which a program in another language packed after docs/protocol.md, are what package api takes them for.
func TestGolden(t *testing.T) {
	packets, err := Packets()
	if err != nil {
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
	for code := range uint8(api.CodeDeadline) {
		if !codes[code+1] {
			t.Errorf("no packet has error %d", code+1)
		}
	}
	if len(types) != int(api.TypeError) || flags != 2*api.FlagOnce-1 {
		t.Errorf("types %v and flags %b are not all", types, flags)
	}
}
func (g *Packet) check(t *testing.T) {
	h, payload, err := api.ParsePacket(g.Hex)
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
	if want := g.Header.Unpack(); h != want {
		t.Errorf("header\n%+v, want\n%+v", h, want)
	}
	if padding := len(g.Hex) - api.RPCHeaderLen - len(payload); !bytes.Equal(payload, g.Payload) || padding != g.Padding {
		t.Errorf("payload %x with %d bytes of padding", payload, padding)
	}
	if again := append(h.Append(nil), payload...); !bytes.HasPrefix(g.Hex, again) {
		t.Errorf("written back as %x", again)
	}
}
