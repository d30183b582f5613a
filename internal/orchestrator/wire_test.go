package orchestrator

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// The bytes are written out by hand from the layout.
func TestWire(t *testing.T) {
	for text, want := range map[string]Heartbeat{
		"1abcde" + "1234" + "5678" + "64" + "0007" + "2710" + "1fffffff": {
			NIC: 0xabcde, Sequence: 0x1234, Queue: 0x5678, Link: 100, Service: 7, CPU: AllCPU, Time: MaxTime,
		},
		"100000" + "0000" + "0000" + "00" + "0000" + "0000" + "00000000": {},
		"1fffff" + "ffff" + "ffff" + "00" + "ffff" + "0000" + "00000000": {NIC: MaxNIC, Sequence: 0xffff, Queue: 0xffff, Service: NoService},
		"100001" + "0002" + "0003" + "04" + "0005" + "0006" + "00000007": {NIC: 1, Sequence: 2, Queue: 3, Link: 4, Service: 5, CPU: 6, Time: 7},
	} {
		b, _ := hex.DecodeString(text)
		if got, err := Decode(b); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		out := make([]byte, Size)
		if err := want.Encode(out); err != nil || !bytes.Equal(out, b) {
			t.Errorf("%+v: %x, %v, want %s", want, out, err, text)
		}
	}
}

func TestBadWire(t *testing.T) {
	for text, want := range map[string]error{
		"":                                   errSize,
		"10000000000000000000000000000000ff": errSize,
		"100000000000000000000000000000":     errSize,
		"00000000000000000000000000000000":   errVersion,
		"20000000000000000000000000000000":   errVersion,
		"10000000000000650000000000000000":   errLink,
		"10000000000000000000271100000000":   errCPU,
		"10000000000000000000000020000000":   errTime,
		"1000000000000000ffff000000000001":   errNone,
		"1000000000000000ffff000100000000":   errNone,
	} {
		b, _ := hex.DecodeString(text)
		if _, err := Decode(b); err != want || !errors.Is(err, ErrHeartbeat) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for want, h := range map[error]Heartbeat{errNIC: {NIC: MaxNIC + 1}, errLink: {Link: 101}, errCPU: {CPU: AllCPU + 1}, errTime: {Time: MaxTime + 1}} {
		if err := h.Encode(make([]byte, Size)); err != want {
			t.Errorf("%+v: %v, want %v", h, err, want)
		}
	}
	if err := new(Heartbeat).Encode(make([]byte, Size-1)); err != errSize {
		t.Error(err)
	}
}

// Whatever is a heartbeat has one form, and no bytes disturb a controller.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrHeartbeat) {
				t.Errorf("%x: %v", b, err)
			}
			return
		}
		out := make([]byte, Size)
		if err := h.Encode(out); err != nil || !bytes.Equal(out, b) {
			t.Errorf("%x became %+v, and that %x, %v", b, h, out, err)
		}
		c, err := New(Default(), []NIC{{Services: 3}, {}})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if d, ok := c.Observe(h, 0); ok && (d.NIC > 1 || d.Service > 2) {
				t.Errorf("%+v: %+v", h, d)
			}
			h.Sequence++
		}
	})
}
