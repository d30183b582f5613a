package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// sendSegments sends packets of one size by one system call, as UDP segmentation does (udp(7)).
func (c *rawClient) sendSegments(packets [][]byte) {
	c.t.Helper()
	var all []byte
	for _, p := range packets {
		all = append(all, p...)
	}
	oob := make([]byte, unix.CmsgSpace(2))
	h := oob[:unix.SizeofCmsghdr]
	binary.NativeEndian.PutUint64(h, uint64(unix.CmsgLen(2)))
	binary.NativeEndian.PutUint32(h[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(h[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(oob[unix.CmsgLen(0):], uint16(len(packets[0])))
	if _, _, err := c.conn.WriteMsgUDP(all, oob, nil); err != nil {
		c.t.Fatal(err)
	}
}

// Packets that the kernel hands over as one datagram are answered one by one, also where an answer starts before its
// payload or is longer than it. No answer overwrites a neighbour.
func TestPacketsInARow(t *testing.T) {
	c := serveFixture(t, api.ModePacket, "packet")
	for _, tt := range []struct {
		method uint32
		room   int
		want   string
	}{{methodEcho, 12, "%012d"}, {methodPrefix, 16, "pre:%012d"}} {
		want := make(map[uint64]string)
		var row [][]byte
		for i := range 40 {
			h := c.header(workload, tt.method, 12)
			want[h.Request] = fmt.Sprintf(tt.want, i)
			row = append(row, packet(h, fmt.Appendf(nil, "%012d", i), tt.room))
		}
		c.sendSegments(row)
		for range row {
			h, p := c.receive()
			if h.Type != api.TypeResponse || want[h.Request] != string(p) {
				t.Fatalf("request %d: %+v %q, want %q", h.Request, h, p, want[h.Request])
			}
			delete(want, h.Request)
		}
	}
}

func TestStreamInARow(t *testing.T) {
	c := serveFixture(t, api.ModeStream, "stream")
	message := randomBytes(30*1000 + 7)
	c.sendSegments(c.fragments(0, message, 1000, 0, 0))
	for range 31 {
		h, p := c.receive()
		for i, b := range p {
			if at := int(h.Index)*1000 + i; b != ^message[at] {
				t.Fatalf("byte %d is %#x, want %#x", at, b, ^message[at])
			}
		}
	}
}

// A process in another network namespace serves there, and is controlled from here.
func TestNetworkNamespace(t *testing.T) {
	name := fmt.Sprintf("lnproc-%d", unix.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s: needs root and iproute2", args, err, out)
		}
	}
	ip("netns", "add", name)
	t.Cleanup(func() { exec.Command("ip", "netns", "delete", name).Run() })
	ip("-n", name, "link", "set", "lo", "up")
	b := newBackend(t, plainHost, shortdir.New(t))
	b.cfg.Netns = "/run/netns/" + name
	endpoint := netip.MustParseAddrPort("127.0.0.1:4370")
	b.cfg.Listen = func(uint32) (netip.AddrPort, error) { return endpoint, nil }
	mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))

	if list, err := b.Status(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("status %v, %v", list, err)
	}
	out, err := exec.Command("ip", "netns", "exec", name, "cat", "/proc/net/udp").Output()
	if err != nil || !bytes.Contains(out, fmt.Appendf(nil, "0100007F:%04X", endpoint.Port())) {
		t.Errorf("no socket in the namespace: %v\n%s", err, out)
	}
}
