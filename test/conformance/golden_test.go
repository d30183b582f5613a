package conformance

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/lambdanic/lambdanic/test/golden"
)

// Every client takes the golden packets apart, refuses those that break a rule, and makes the same bytes of what the others say.
func TestGoldenPackets(t *testing.T) {
	packets, err := golden.Packets()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, d *driver) {
		for _, p := range packets {
			d.decodes(t, p)
			if p.Error == "" {
				d.encodes(t, p)
			}
		}
	})
}

func (d *driver) decodes(t *testing.T, p golden.Packet) {
	t.Helper()
	var got golden.Meaning
	d.do(map[string]any{"do": "decode", "packet": p.Hex}, &got)
	if got.Error != p.Error || !reflect.DeepEqual(got.Header, p.Header) || !bytes.Equal(got.Payload, p.Payload) || got.Padding != p.Padding {
		t.Errorf("%s: taken for %+v %+v, is %+v %+v", p.Name, got, got.Header, p.Meaning, p.Header)
	}
}

// encodes checks all but the padding's bytes, which nobody reads.
func (d *driver) encodes(t *testing.T, p golden.Packet) {
	t.Helper()
	var got struct {
		Packet golden.HexBytes `json:"packet"`
	}
	d.do(map[string]any{"do": "encode", "header": p.Header, "payload": p.Payload, "padding": p.Padding}, &got)
	message := p.Hex[:len(p.Hex)-p.Padding]
	if !bytes.HasPrefix(got.Packet, message) || len(got.Packet) != len(p.Hex) {
		t.Errorf("%s: encoded as %x, want %x", p.Name, []byte(got.Packet), []byte(p.Hex))
	}
}
