//go:build guest

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/client/roce"
)

// The kernel's own RoCEv2 (rdma_rxe), driven by libibverbs, writes a message into a lambda's memory, and the lambda answers it
// reversed. That code is independent of the NIC program and client/roce.
func TestSoftRoCE(t *testing.T) {
	i := up(t)
	i.run("deploy", "test/lambdas/mirror", "--target", "nic")
	p := newSoftRoCE(t, i)
	for _, transport := range []string{"rc", "uc"} {
		for _, operation := range []string{"write", "write_imm", "send"} {
			for _, mtu := range []string{"256", "1024"} {
				for _, from := range p.addresses {
					t.Run(strings.Join([]string{transport, operation, mtu, from.String()}, "/"), func(t *testing.T) {
						p.on(t, i).sends(transport, operation, mtu, from)
					})
				}
			}
		}
	}
}

// softRoCE is an rdma_rxe device at the host's end of an instance's NIC.
type softRoCE struct {
	t         *testing.T
	i         *instance
	device    string
	addresses []netip.Addr // its own, of both families
	message   []byte
	file      string // that holds it
}

func newSoftRoCE(t *testing.T, i *instance) *softRoCE {
	t.Helper()
	end, err := net.InterfaceByIndex(i.wayToNIC().LinkIndex)
	if err != nil {
		t.Fatal(err)
	}
	p := &softRoCE{t: t, i: i, device: "rxe_" + i.name, file: filepath.Join(t.TempDir(), "message")}
	if out, err := exec.Command("rdma", "link", "add", p.device, "type", "rxe", "netdev", end.Name).CombinedOutput(); err != nil {
		t.Fatalf("rdma link add: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("rdma", "link", "delete", p.device).CombinedOutput(); err != nil {
			t.Errorf("rdma link delete: %v\n%s", err, out)
		}
	})
	addrs, err := end.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if addr := netip.MustParsePrefix(a.String()).Addr(); !addr.IsLinkLocalUnicast() {
			p.addresses = append(p.addresses, addr)
		}
	}
	p.message = make([]byte, 16<<10+44) // several packets and a short one
	for k := range p.message {
		p.message[k] = byte(k * k >> 5)
	}
	write(t, p.file, string(p.message))
	return p
}

// on is the device within a subtest.
func (p *softRoCE) on(t *testing.T, i *instance) *softRoCE {
	clone := *p
	clone.t, clone.i = t, i.on(t)
	return &clone
}

// gid gives the index of an address in the device's table, and says that it means RoCEv2 there.
func (p *softRoCE) gid(addr netip.Addr) string {
	p.t.Helper()
	port := filepath.Join("/sys/class/infiniband", p.device, "ports/1")
	for k := range 16 {
		index := strconv.Itoa(k)
		gid, err := os.ReadFile(filepath.Join(port, "gids", index))
		if err != nil {
			break
		}
		kind, err := os.ReadFile(filepath.Join(port, "gid_attrs/types", index))
		if err == nil && strings.Contains(string(kind), "v2") && netip.MustParseAddr(strings.TrimSpace(string(gid))).Unmap() == addr {
			return index
		}
	}
	p.t.Fatalf("%s has no RoCEv2 GID of %v", p.device, addr)
	return ""
}

// sends sends the message one way, and checks the lambda's reply.
func (p *softRoCE) sends(transport, operation, mtu string, from netip.Addr) {
	t, i := p.t, p.i
	region := query[api.Region](i, "rdma", "region", "add", "mirror")
	key := fmt.Sprintf("%#x", region.RKey)
	defer i.run("rdma", "region", "remove", "mirror", key)
	peer := p.start(p.device, p.gid(from), transport, operation, mtu, "0", p.file)
	var number, psn string
	peer.scan(&number, &psn)
	add := []string{"rdma", "qp", "add", "mirror", "--transport", transport, "--peer", from.String(), "--peer-qpn", number, "--psn", psn, "--mtu", mtu}
	if operation == "send" {
		add = append(add, "--receive", key)
	}
	qp := query[api.QueuePair](i, add...)
	defer i.run("rdma", "qp", "remove", "mirror", fmt.Sprintf("%#x", qp.QPN))
	peer.say("%s %d %d %d", netip.AddrFrom16(qp.Address.As16()).StringExpanded(), qp.QPN, region.Address, region.RKey)

	f := i.describe("mirror")
	event := roce.Event{
		Addr: f.Endpoint, Workload: f.Workload, Region: roce.Region{VA: region.Address, RKey: region.RKey}, Length: uint32(len(p.message)),
	}
	answer := event.Reply
	if operation == "write" {
		answer = event.Run
	}
	// An unreliable connection may lose packets: then the message has to come again.
	poll(t, "the lambda has run on the message", func() error {
		peer.say("")
		if got := peer.line(); got != "success" {
			t.Fatalf("sending: %s", got)
		}
		got, err := answer(t.Context())
		slices.Reverse(got)
		if err == nil && !bytes.Equal(got, p.message) {
			err = fmt.Errorf("%d bytes came back, and other ones", len(got))
		}
		if err != nil && transport == "rc" {
			t.Fatal(err)
		}
		return err
	})
}

// A verbsPeer is a running testdata/verbs.c.
type verbsPeer struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func (p *softRoCE) start(args ...string) *verbsPeer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, filepath.Join(root, "build", "guests", "verbs"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		defer cancel()
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("verbs %s: %v\n%s", strings.Join(args, " "), err, &stderr)
		}
	})
	return &verbsPeer{t: p.t, in: in, out: bufio.NewReader(out)}
}

func (v *verbsPeer) say(format string, args ...any) {
	v.t.Helper()
	if _, err := fmt.Fprintf(v.in, format+"\n", args...); err != nil {
		v.t.Fatal(err)
	}
}

func (v *verbsPeer) line() string {
	v.t.Helper()
	line, err := v.out.ReadString('\n')
	if err != nil {
		v.t.Fatalf("the peer ended: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (v *verbsPeer) scan(into ...any) {
	v.t.Helper()
	if _, err := fmt.Sscan(v.line(), into...); err != nil {
		v.t.Fatal(err)
	}
}
