// Package wireshark tests the dissector with tshark, on the golden packets and on an exchange between client and server.
package wireshark

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/lambdanic/lambdanic/api"
)

// A capture is written datagram by datagram, a millisecond apart.
type capture struct {
	t    *testing.T
	file *os.File
	w    *pcapgo.Writer
	at   time.Time
}

func newCapture(t *testing.T) *capture {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "capture.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	c := &capture{t: t, file: file, w: pcapgo.NewWriter(file), at: time.Unix(1_000_000_000, 0)}
	if err := c.w.WriteFileHeader(65535, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *capture) add(from, to netip.AddrPort, p []byte) {
	c.t.Helper()
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	var ip gopacket.SerializableLayer
	if from.Addr().Is4() {
		v4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
		_ = udp.SetNetworkLayerForChecksum(v4)
		ip = v4
	} else {
		v6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()}
		_ = udp.SetNetworkLayerForChecksum(v6)
		eth.EthernetType, ip = layers.EthernetTypeIPv6, v6
	}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, eth, ip, udp, gopacket.Payload(p))
	if err != nil {
		c.t.Fatal(err)
	}
	c.at = c.at.Add(time.Millisecond)
	info := gopacket.CaptureInfo{Timestamp: c.at, CaptureLength: len(buf.Bytes()), Length: len(buf.Bytes())}
	if err := c.w.WritePacket(info, buf.Bytes()); err != nil {
		c.t.Fatal(err)
	}
}

// A frame is tshark's output for one: each λ-RPC field with its values, including fields of expert infos.
type frame map[string][]string

func (f frame) get(field string) string { return strings.Join(f[field], " ") }

// has says whether a frame has a field, maybe without a value, as expert infos have.
func (f frame) has(field string) bool { return f["lambda_rpc."+field] != nil }

func (f frame) number(t *testing.T, field string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(f.get(field), 0, 64)
	if err != nil {
		t.Fatalf("%s: %v in %v", field, err, f)
	}
	return n
}

// dissect runs tshark in two passes, as Wireshark does: then a request knows its response.
func (c *capture) dissect() (frames []frame) {
	c.t.Helper()
	if err := c.file.Close(); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tshark", "-2", "-n", "-r", c.file.Name(), "-X", "lua_script:lambda_rpc.lua", "-T", "json", "--no-duplicate-keys")
	cmd.Env = append(os.Environ(), "HOME="+c.t.TempDir()) // no plugins or preferences of whoever runs this
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.Contains(stderr.String(), "Lua") {
		c.t.Fatalf("tshark: %v\n%s", err, &stderr)
	}
	var packets []struct {
		Source struct{ Layers map[string]any } `json:"_source"`
	}
	if err := json.Unmarshal(out, &packets); err != nil {
		c.t.Fatal(err)
	}
	for _, p := range packets {
		f := frame{}
		f.flatten("", p.Source.Layers["lambda_rpc"])
		for layer := range p.Source.Layers {
			f["layers"] = append(f["layers"], layer)
		}
		frames = append(frames, f)
	}
	return frames
}

func (f frame) flatten(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			f.flatten(key, value)
		}
	case []any:
		for _, value := range v {
			f.flatten(name, value)
		}
	case string:
		f[name] = append(f[name], v)
	}
}

var (
	client = netip.MustParseAddrPort("10.0.0.1:40000")
	server = netip.MustParseAddrPort("10.0.0.2:4370")
)

// Every golden packet is dissected as the program that packed it says, on the usual port and on others.
func TestGoldenPackets(t *testing.T) {
	text, err := os.ReadFile("../../test/golden/packets.json")
	if err != nil {
		t.Fatal(err)
	}
	var packets []struct {
		Name, Hex, Error, Payload string
		Padding                   int
		Header                    map[string]any
	}
	if err := json.Unmarshal(text, &packets); err != nil {
		t.Fatal(err)
	}
	for _, to := range []netip.AddrPort{server, netip.MustParseAddrPort("[fd00::2]:9999")} {
		from := client
		if to.Addr().Is6() {
			from = netip.MustParseAddrPort("[fd00::1]:40000")
		}
		c := newCapture(t)
		for _, p := range packets {
			wire, err := hex.DecodeString(p.Hex)
			if err != nil {
				t.Fatal(err)
			}
			c.add(from, to, wire)
		}
		for i, f := range c.dissect() {
			p := packets[i]
			if p.Error == "not λ-RPC" {
				if len(f) != 1 {
					t.Errorf("%s: taken for λ-RPC: %v", p.Name, f)
				}
				continue
			}
			known := to == server || !strings.HasPrefix(p.Name, "type ") // a heuristic asks for a known type, too
			if got := f.has("malformed"); got != (p.Error == "malformed") && known {
				t.Errorf("%s: malformed is %t: %v", p.Name, got, f)
			}
			if p.Error != "" {
				continue
			}
			for name, want := range p.Header {
				if name == "message_length" {
					name = "message_len"
				}
				if got := f.number(t, "lambda_rpc."+name); fmt.Sprint(got) != decimal(t, want) {
					t.Errorf("%s: %s is %d, want %v", p.Name, name, got, want)
				}
			}
			if got := strings.ReplaceAll(f.get("lambda_rpc.payload"), ":", ""); got != p.Payload {
				t.Errorf("%s: payload %s", p.Name, got)
			}
			if got := len(strings.ReplaceAll(f.get("lambda_rpc.padding"), ":", "")) / 2; got != p.Padding {
				t.Errorf("%s: %d bytes of padding, want %d", p.Name, got, p.Padding)
			}
		}
	}
}

func decimal(t *testing.T, v any) string {
	t.Helper()
	if n, ok := v.(float64); ok {
		return strconv.FormatUint(uint64(n), 10)
	}
	n, err := strconv.ParseUint(v.(string), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(n, 10)
}

// packet makes one of a call of workload 1.
func packet(change func(*api.Header), payload []byte, room int) []byte {
	h := api.Header{Type: api.TypeRequest, Workload: 1, Request: 77, Count: 1, Length: uint16(len(payload)), MessageLen: uint32(len(payload))}
	change(&h)
	p := append(h.Append(nil), payload...)
	return append(p, make([]byte, max(0, room-len(payload)))...)
}

func wantFields(t *testing.T, frames []frame, i int, want map[string]string) {
	t.Helper()
	for field, value := range want {
		if got := frames[i-1].get("lambda_rpc." + field); got != value {
			t.Errorf("frame %d: %s is %q, want %q", i, field, got, value)
		}
	}
}

// A call of one packet whose first answer gets lost.
func TestCallAndResend(t *testing.T) {
	c := newCapture(t)
	c.add(client, server, packet(func(*api.Header) {}, []byte("ask"), 16))
	c.add(client, server, packet(func(h *api.Header) { h.Flags = api.FlagResend }, []byte("ask"), 16))
	reply := packet(func(h *api.Header) { h.Type, h.Code, h.Revision = api.TypeResponse, 1, 9 }, []byte("answer"), 0)
	c.add(server, client, reply)
	c.add(server, client, reply)
	c.add(server, client, packet(func(h *api.Header) { h.Type, h.Code = api.TypeError, 7 }, nil, 0))
	frames := c.dissect()
	wantFields(t, frames, 1, map[string]string{"response_in": "", "padding": strings.TrimSuffix(strings.Repeat("00:", 13), ":")})
	wantFields(t, frames, 2, map[string]string{"resend_of": "1", "response_in": "3", "flags.resend": "1", "call_in": "1"})
	wantFields(t, frames, 3, map[string]string{
		"request_in": "2", "response_time": "0.001000000", "call_time": "0.002000000", "status": "1", "error": "",
	})
	wantFields(t, frames, 5, map[string]string{"error": "7", "status": "", "request_in": "2"})
	if frames[0].has("resend") || frames[2].has("repeated") {
		t.Errorf("what was said once counts as repeated: %v, %v", frames[0], frames[2])
	}
	for i, expert := range map[int]string{2: "resend", 3: "failed", 4: "repeated", 5: "refused"} {
		if !frames[i-1].has(expert) {
			t.Errorf("frame %d has no %s: %v", i, expert, frames[i-1])
		}
	}
}

// A request of three packets, out of order, with an acknowledgement between, and a reply of three that is pulled.
func TestMessages(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 200) // 3,200 bytes
	part := func(typ api.Type, i, size int, change func(*api.Header)) []byte {
		p := body[i*size : min((i+1)*size, len(body))]
		return packet(func(h *api.Header) {
			h.Type, h.Index, h.Count, h.MessageLen = typ, uint32(i), uint32(api.Fragments(len(body), size)), uint32(len(body))
			change(h)
		}, p, 0)
	}
	plain := func(*api.Header) {}
	c := newCapture(t)
	c.add(client, server, part(api.TypeRequest, 2, api.RPCFragment, plain))
	c.add(client, server, part(api.TypeRequest, 0, api.RPCFragment, plain))
	c.add(server, client, packet(func(h *api.Header) { h.Type, h.Count, h.MessageLen = api.TypeAck, 3, 3200 }, []byte{0, 0, 0, 0, 0, 0, 0, 0b101}, 0))
	c.add(client, server, part(api.TypeRequest, 1, api.RPCFragment, plain))
	c.add(server, client, part(api.TypeResponse, 0, 1200, func(h *api.Header) { h.Flags = api.FlagDone }))
	for i := 1; i <= 2; i++ {
		c.add(client, server, packet(func(h *api.Header) { h.Type, h.Index, h.Count, h.MessageLen = api.TypePull, uint32(i), 3, 1200 }, nil, 1200))
	}
	c.add(server, client, part(api.TypeResponse, 2, 1200, plain))
	c.add(server, client, part(api.TypeResponse, 1, 1200, plain))
	frames := c.dissect()
	for i, f := range frames {
		if f.has("malformed") {
			t.Errorf("frame %d counts as malformed: %v", i+1, f)
		}
	}
	whole := strings.ReplaceAll(fmt.Sprintf("% x", body), " ", ":")
	wantFields(t, frames, 1, map[string]string{"reassembled_in": "4", "message": ""})
	wantFields(t, frames, 2, map[string]string{"reassembled_in": "4", "response_in": "3"})
	wantFields(t, frames, 3, map[string]string{"ack.arrived": "0,2", "ack.missing": "1", "request_in": "2", "ack.bitmap": "0x0000000000000005"})
	wantFields(t, frames, 4, map[string]string{"reassembled_in": "4", "message": whole, "response_in": "5"})
	wantFields(t, frames, 5, map[string]string{"request_in": "4", "reassembled_in": "9", "flags.done": "1"})
	wantFields(t, frames, 6, map[string]string{"response_in": "9"})
	wantFields(t, frames, 8, map[string]string{"request_in": "7", "message": ""})
	wantFields(t, frames, 9, map[string]string{"request_in": "6", "message": whole, "reassembled_in": "9"})
	if !frames[2].has("lost") {
		t.Errorf("nothing says that packets are missing: %v", frames[2])
	}
}
