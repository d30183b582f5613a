package nic

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/api"
)

// astray counts packets that the match stage sent to where it may not.
func astray(t testing.TB, n *NIC) uint64 {
	t.Helper()
	return counted(t, n, "astray")
}

// lambdaOf is the C of a web server whose lambda does this before the stage turns addresses and ports round.
func lambdaOf(statements string) string {
	return `#include <pif_plugin_metadata.h>
int pif_plugin_count(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data) { return PIF_PLUGIN_RETURN_FORWARD; }
int pif_plugin_greet(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_eth_T *eth = pif_plugin_hdr_get_eth(headers);
	PIF_PLUGIN_ipv4_T *ipv4 = pif_plugin_hdr_get_ipv4(headers);
	PIF_PLUGIN_udp_T *udp = pif_plugin_hdr_get_udp(headers);

	(void)eth, (void)ipv4, (void)udp;
	` + statements + `
	return PIF_PLUGIN_RETURN_FORWARD;
}
`
}

const toWire = "standard_metadata.egress_spec, standard_metadata.ingress_port"

// A match stage's packet to somebody who did not ask for it is dropped and counted, and its neighbours go on.
func TestStageSendsNothingAstray(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	for name, attack := range map[string]struct {
		c       string
		changes []string
	}{
		"to another address":       {c: "ipv4->srcAddr = 0xc0000209;"},
		"to another port":          {c: "udp->srcPort = 53;"},
		"from another address":     {c: "pif_plugin_meta_set__tmp__ip(headers, 0xc0000209);"},
		"from another port":        {c: "pif_plugin_meta_set__tmp__port(headers, 53);"},
		"to a group":               {c: "eth->__srcAddr_0 = 0xffffffff;"},
		"with IP options":          {c: "ipv4->ihl = 6;"},
		"as a fragment":            {c: "ipv4->fragOffset = 1;"},
		"as TCP":                   {c: "ipv4->protocol = 6;"},
		"as ARP":                   {c: "eth->etherType = 0x0806;"},
		"longer than its frame":    {c: "udp->length_ = 2000; ipv4->totalLen = 2020;"},
		"to a service of others":   {c: "ipv4->srcAddr = 0xc0000209; udp->srcPort = 11211;"},
		"to the host, as another":  {changes: []string{toWire, "standard_metadata.egress_spec, 0x300"}},
		"longer than what came in": {changes: []string{"header_type ", "header_type ", "control ingress", growth, "action send_back(ttl) {", "action send_back(ttl) { add_header(more); add_to_field(ipv4.totalLen, 64); add_to_field(udp.length_, 64);"}},
	} {
		t.Run(name, func(t *testing.T) {
			deploy(t, n, hostileStage(t, lambdaOf(attack.c), attack.changes...))
			before := astray(t, n)
			frame := jobFrame(t, 0, jobPort)
			if verdict, out := inject(t, n, frame); verdict != "drop" {
				t.Errorf("verdict %s: %x", verdict, out)
			}
			if got := astray(t, n) - before; got != 1 {
				t.Errorf("counted %d", got)
			}
			status, err := n.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range status {
				if s.Workload == stageID && (s.Stats.Faults != 1 || s.Stats.Drops != 1 || s.Stats.Replies != 0) {
					t.Errorf("counted %+v", s.Stats)
				}
			}
			wantRevision(t, n, workloads["packet"], 1)
			if err := n.Remove(t.Context(), stageID); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// growth is a header that a hostile stage adds to its replies.
const growth = "header_type more_t { fields { a : 512; } }\nheader more_t more;\ncontrol ingress"

// A stage does not know the next hop: the NIC program writes the link header, whatever the stage wrote.
func TestStageWritesNoLinkHeader(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, hostileStage(t, lambdaOf("eth->__srcAddr_1 = 0x7777;")))
	frame := jobFrame(t, 0, jobPort)
	verdict, out := inject(t, n, frame)
	if verdict != "reply" {
		t.Fatalf("verdict %s", verdict)
	}
	if want := bytes.Join([][]byte{frame[6:12], frame[:6], frame[12:14]}, nil); !bytes.Equal(out[:14], want) {
		t.Errorf("link header %x, want %x", out[:14], want)
	}
}

// A packet to an address that is not the NIC's is only forwarded by this host, and does not go to the stage.
func TestStageSeesItsOwn(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, stageProgram(t, "web_server", stageID, 1))
	wantGreeting(t, n, "reply")
	p := gopacket.NewPacket(jobFrame(t, 0, jobPort), layers.LayerTypeEthernet, gopacket.Default)
	ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
	ip.DstIP = net.IPv4(198, 51, 100, 1)
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializePacket(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, p); err != nil {
		t.Fatal(err)
	}
	if verdict, out := inject(t, n, b.Bytes()); verdict != "pass" || !bytes.Equal(out, b.Bytes()) {
		t.Errorf("verdict %s", verdict)
	}
}

// query is what the key-value client sends for job 2 to the service at the socket, and the port that it came from.
func query(t testing.TB, service *net.UDPConn) (text []byte, from netip.AddrPort) {
	t.Helper()
	if err := service.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	k, from, err := service.ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:k], netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
}

// A service's answer reaches in time the client that asked, and nobody else. Without a service in its spec, a stage asks none.
func TestStageAnswersWhoAsked(t *testing.T) {
	n := newTestNIC(t)
	addr := netip.AddrPortFrom(n.HostAddr(), memcachedPort)
	service, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	send := func(to netip.AddrPort, text string) {
		t.Helper()
		if _, err := service.WriteToUDPAddrPort([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	conn := jobSocket(t, n)
	request := binary.BigEndian.AppendUint32(nil, 2)
	request = append(request, make([]byte, 16)...)
	ask := func() {
		t.Helper()
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
	}
	wantAnswer := func(want string) {
		t.Helper()
		if answer := receive(t, conn); string(answer) != want {
			t.Fatalf("answer %q, want %q", answer, want)
		}
	}

	d := withService(stageProgram(t, "kv_client", stageID, 1), addr)
	deploy(t, n, d)
	nobody := netip.AddrPortFrom(n.Addr().Addr(), 20001)
	send(nobody, "to whom nobody asked for")
	eventually(t, "what nobody asked for is dropped", func() bool { return astray(t, n) == 1 })
	ask()
	_, from := query(t, service)
	send(netip.AddrPortFrom(from.Addr(), from.Port()+1), "to another port")
	eventually(t, "what goes to another port is dropped", func() bool { return astray(t, n) == 2 })
	send(from, "first")
	wantAnswer("first")
	send(from, "second") // an answer may have several datagrams
	wantAnswer("second")

	d.Revision, d.Services[0].Timeout = 2, api.Duration(time.Millisecond)
	deploy(t, n, d)
	ask()
	_, from = query(t, service)
	asked := time.Now() // or before
	eventually(t, "its time is up", func() bool { return time.Since(asked) > 10*time.Millisecond })
	send(from, "late")
	eventually(t, "what is late is dropped", func() bool { return astray(t, n) == 3 })

	d.Revision, d.Services = 3, nil
	deploy(t, n, d)
	ask()
	eventually(t, "it has no service to ask", func() bool { return astray(t, n) == 4 })
}
