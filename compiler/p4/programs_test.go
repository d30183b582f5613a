package p4_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

func TestWebServer(t *testing.T) {
	c := program(t, "web_server")
	verdict, out := run(t, c, "lambda", datagram(t, 5000, jobPort, job(0, "who is there")))
	wantVerdict(t, verdict, xdpTX)
	p := dissect(t, out)
	wantTurned(t, p, jobPort, 5000)
	if want := "\x00\x00\x00\x00Hello of two ul\n"; string(p.payload) != want {
		t.Errorf("payload %q, want %q", p.payload, want)
	}
	if p.ip.TTL != 64 || p.ip.Id != 4242 {
		t.Errorf("TTL %d and ID %d, want 64 and 4242", p.ip.TTL, p.ip.Id)
	}
	if p.udp.Checksum == 0 {
		t.Error("the UDP checksum got lost")
	}

	verdict, out = run(t, c, "lambda", datagram(t, 5000, jobPort, job(1, "")))
	wantVerdict(t, verdict, xdpTX)
	p = dissect(t, out)
	if n := binary.BigEndian.Uint32(p.payload[16:]); n != 1 {
		t.Errorf("%d greetings counted, want 1", n)
	}
	if p.ip.TTL != 32 {
		t.Errorf("TTL %d, want the rule's 32", p.ip.TTL)
	}
}

// Bytes after the parsed headers have no effect, and packets that are not for the lambda go to the host unchanged.
func TestWebServerOtherPackets(t *testing.T) {
	c := program(t, "web_server")
	tail := bytes.Repeat([]byte{0xa5}, 301)
	verdict, out := run(t, c, "lambda", datagram(t, 5000, jobPort, append(job(0, ""), tail...)))
	wantVerdict(t, verdict, xdpTX)
	if p := dissect(t, out); !bytes.Equal(p.payload[20:], tail) {
		t.Errorf("the bytes behind the job changed: %x", p.payload[20:])
	}
	broken := datagram(t, 5000, jobPort, job(0, ""))
	broken[14+10] ^= 1
	for name, test := range map[string]struct {
		frame []byte
		want  uint32
	}{
		"another port":        {datagram(t, 5000, 53, job(0, "")), xdpPass},
		"an unknown job":      {datagram(t, 5000, jobPort, job(9, "")), xdpDrop},
		"a short job":         {datagram(t, 5000, jobPort, make([]byte, 19)), xdpPass},
		"a wrong checksum":    {broken, xdpDrop},
		"ARP":                 {append(append(append([]byte{}, clientMAC...), nicMAC...), append([]byte{8, 6}, make([]byte, 46)...)...), xdpPass},
		"fewer than 20 of IP": {datagram(t, 5000, jobPort, job(0, ""))[:30], xdpPass},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, out := run(t, c, "lambda", test.frame)
			wantVerdict(t, verdict, test.want)
			if verdict == xdpPass && !bytes.Equal(out, test.frame) {
				t.Errorf("the packet changed:\n%x\n%x", test.frame, out)
			}
		})
	}
}

func TestKeyValueClient(t *testing.T) {
	c := program(t, "kv_client")
	for number, want := range map[byte]string{2: "get key\r\n", 3: "set key 0 0 4\r\ndata\r\n"} {
		verdict, marked := run(t, c, "lambda", datagram(t, 5000, jobPort, job(number, "")))
		wantVerdict(t, verdict, xdpPass)
		if p := dissect(t, marked); p.udp.DstPort != layers.UDPPort(0x2fff+int(number)) || len(p.payload) != 0 {
			t.Errorf("marked packet to port %#x with %q", p.udp.DstPort, p.payload)
		}
		verdict, out := runClone(t, c, marked)
		wantVerdict(t, verdict, xdpTX)
		p := dissect(t, out)
		wantTurned(t, p, 5000, 11211) // client and server have one address; only the destination port changes
		if frame := "\x00\x01\x00\x00\x00\x01\x00\x00"; string(p.payload) != frame+want {
			t.Errorf("query %q, want %q", p.payload, frame+want)
		}
		if int(p.ip.Length) != 28+len(p.payload) {
			t.Errorf("IPv4 length %d for %d bytes of payload", p.ip.Length, len(p.payload))
		}
	}
	verdict, out := run(t, c, "lambda", datagram(t, 11211, 5000, []byte("\x00\x01\x00\x00\x00\x01\x00\x00STORED\r\n")))
	wantVerdict(t, verdict, xdpTX)
	p := dissect(t, out)
	wantTurned(t, p, 4369, 5000)
	if string(p.payload[8:]) != "STORED\r\n" {
		t.Errorf("answer %q", p.payload)
	}
}

// Adding and removing headers moves what follows them, whatever its length.
func TestKeyValueClientMovesThePayload(t *testing.T) {
	c := program(t, "kv_client")
	for _, n := range []int{0, 1, 255, 256, 257, 1300} {
		tail := make([]byte, n)
		for i := range tail {
			tail[i] = byte(i * 7)
		}
		frame := datagram(t, 5000, jobPort, append(job(2, ""), tail...))
		_, marked := run(t, c, "lambda", frame)
		verdict, out := runClone(t, c, marked)
		wantVerdict(t, verdict, xdpTX)
		if want := len(frame) - 20 + 32; len(out) != want {
			t.Fatalf("%d bytes, want %d", len(out), want)
		}
		if !bytes.Equal(out[len(out)-n:], tail) {
			t.Errorf("%d bytes behind the headers were not moved as they are", n)
		}
	}
}

// A lambda that waits ends its run and leaves the packet unchanged. It continues with the first run after the host wrote.
func TestWaits(t *testing.T) {
	const side = 256
	c := program(t, "image_transformer")
	request := datagram(t, 5000, jobPort, job(0, ""))
	set := func(name string, v any) {
		t.Helper()
		if err := c.Variables[name].Set(v); err != nil {
			t.Fatal(err)
		}
	}
	wantWait := func() {
		t.Helper()
		verdict, out := run(t, c, "lambda", request)
		wantVerdict(t, verdict, stageWait)
		if !bytes.Equal(out, request) {
			t.Errorf("the packet that waits became %x", out)
		}
	}

	wantWait()
	pixels := make([]uint32, side*side)
	for i := range pixels {
		pixels[i] = uint32(i) * 0x010307
	}
	set("image", pixels)
	wantWait()
	set("image_ready", uint8(1))
	verdict, out := run(t, c, "lambda", request)
	wantVerdict(t, verdict, xdpTX)
	p := dissect(t, out)
	wantTurned(t, p, jobPort, 5000)
	if len(out) != len(request) || binary.BigEndian.Uint32(p.payload[4:]) != side {
		t.Errorf("answer %x", out)
	}
	grey := make([]uint8, side*side)
	if err := c.Variables["result"].Get(&grey); err != nil {
		t.Fatal(err)
	}
	for i, v := range pixels {
		if want := uint8((v&0xff + v>>8&0xff + v>>16&0xff) / 3); grey[i] != want {
			t.Fatalf("pixel %d is %d, want %d", i, grey[i], want)
		}
	}
	wantWait() // the lambda has cleared the flag
}
