package nic

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/packets"
)

// stageProgram builds one of the P4 programs in compiler/p4/testdata.
func stageProgram(t testing.TB, name string, workload, revision uint32) backend.Deployment {
	t.Helper()
	build, _ := builds.LoadOrStore("p4/"+name, sync.OnceValues(func() (*compiler.Artifact, error) {
		return compiler.Build(context.Background(), filepath.Join("../../compiler/p4/testdata", name), compiler.Options{})
	}))
	a, err := build.(func() (*compiler.Artifact, error))()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return deployment(a, workload, revision)
}

// jobFrame is a request for a P4 program: a job number and 16 bytes, to UDP port 4369.
func jobFrame(t testing.TB, number byte, port layers.UDPPort) []byte {
	t.Helper()
	return numberedJob(t, number, 5000, port, 0)
}

// numberedJob is jobFrame from a port of the client's, with an IPv4 identification.
func numberedJob(t testing.TB, number byte, from, port layers.UDPPort, id uint16) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, Id: id, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IPv4(192, 0, 2, 1), DstIP: net.IPv4(192, 0, 2, 2)}
	udp := &layers.UDP{SrcPort: from, DstPort: port}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, &layers.Ethernet{
		SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4,
	}, ip, udp, gopacket.Payload(append([]byte{0, 0, 0, number}, make([]byte, 16)...))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	jobPort = 4369
	stageID = 0x60006
)

// wantGreeting checks that the web server of compiler/p4/testdata answers, or does not.
func wantGreeting(t testing.TB, n *NIC, want string) {
	t.Helper()
	verdict, out := inject(t, n, jobFrame(t, 0, jobPort))
	if verdict != want {
		t.Fatalf("verdict %s, want %s", verdict, want)
	}
	if want == "reply" && !bytes.Contains(out, []byte("Hello of two ul")) {
		t.Errorf("answer %q", out)
	}
}

// A match stage sees exactly the datagrams that no workload ID selects.
func TestStage(t *testing.T) {
	n := newTestNIC(t)
	wantGreeting(t, n, "pass")
	deploy(t, n, stageProgram(t, "web_server", stageID, 1), probe(t, workloads["packet"], 1, packetSpec))
	wantGreeting(t, n, "reply")
	wantRevision(t, n, workloads["packet"], 1)
	for name, frame := range map[string][]byte{
		"another port": jobFrame(t, 0, 53),
		"ARP":          append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6}, make([]byte, 46)...),
		"a fragment":   jobFrame(t, 0, jobPort)[:40],
	} {
		if verdict, out := inject(t, n, frame); verdict != "pass" || !bytes.Equal(out, frame) {
			t.Errorf("%s: verdict %s", name, verdict)
		}
	}
	if verdict, _ := inject(t, n, jobFrame(t, 77, jobPort)); verdict != "drop" {
		t.Errorf("an unknown job: verdict %s", verdict)
	}
	// A workload ID never leads to it.
	for _, id := range []uint32{0, stageID} {
		f := packets.Frame{RPC: packets.RPC{Workload: "it"}}
		frame, err := f.Build(map[string]uint32{"it": id})
		if err != nil {
			t.Fatal(err)
		}
		verdict, out := inject(t, n, frame)
		h, _, err := packets.Answer(frame, out)
		if verdict != "reply" || err != nil || h.Type != api.TypeError {
			t.Errorf("workload %#x: verdict %s, %+v, %v", id, verdict, h, err)
		}
	}
	status, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range status {
		if s.Workload == stageID && (s.Stats.Requests != 2 || s.Stats.Replies != 1 || s.Stats.Drops != 1) {
			t.Errorf("counted %+v", s.Stats)
		}
	}
}

// Each packet goes through one stage, so that the NIC has only one, which a new revision replaces.
func TestStageIsTheOnlyOne(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, stageProgram(t, "web_server", stageID, 1))
	wantError(t, n.Deploy(t.Context(), stageProgram(t, "listings", 0x70007, 1)), "the NIC has a match stage already")
	wantError(t, n.Deploy(t.Context(), probe(t, stageID, 2, packetSpec)), "cannot take over from each other")
	wantGreeting(t, n, "reply")
	deploy(t, n, stageProgram(t, "listings", stageID, 2))
	wantGreeting(t, n, "pass")
	deploy(t, n, stageProgram(t, "web_server", stageID, 3))
	wantGreeting(t, n, "reply")
	if err := n.Remove(t.Context(), stageID); err != nil {
		t.Fatal(err)
	}
	wantGreeting(t, n, "pass")
	deploy(t, n, stageProgram(t, "web_server", 0x80008, 1))
	wantGreeting(t, n, "reply")
}

func TestStageIsAdopted(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	deploy(t, n, stageProgram(t, "web_server", stageID, 1))
	shut(t, n)
	n = open(t, c)
	if !n.Adopted() {
		t.Fatal("the NIC was made anew")
	}
	wantGreeting(t, n, "reply")
	deploy(t, n, stageProgram(t, "web_server", stageID, 2))
	wantGreeting(t, n, "reply")
}

// jobSocket is a client of a P4 program, on the host's end of the link.
func jobSocket(t testing.TB, n *NIC) *net.UDPConn {
	t.Helper()
	const ownPort = 20000 // not a port of external calls
	conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.HostAddr(), ownPort)),
		net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.Addr().Addr(), jobPort)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// receive reads the next datagram.
func receive(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	k, err := conn.Read(buf)
	if err != nil {
		t.Fatalf("nothing came: %v", err)
	}
	return buf[:k]
}

// ask sends a job and gives what comes back.
func ask(t testing.TB, conn *net.UDPConn, number byte, room int) []byte {
	t.Helper()
	if _, err := conn.Write(append([]byte{0, 0, 0, number}, make([]byte, room)...)); err != nil {
		t.Fatal(err)
	}
	return receive(t, conn)
}

// The programs answer ordinary sockets, through the kernel's own stack and its checks.
func TestStageOnTheWire(t *testing.T) {
	n := newTestNIC(t)
	conn := jobSocket(t, n)
	deploy(t, n, stageProgram(t, "web_server", stageID, 1))
	if got := ask(t, conn, 0, 16); string(got[4:]) != "Hello of two ul\n" {
		t.Errorf("web server: %q", got)
	}
	deploy(t, n, stageProgram(t, "listings", stageID, 2))
	if got := ask(t, conn, 1, 20); !bytes.Equal(got, append([]byte{0, 0, 0, 1}, make([]byte, 20)...)) {
		t.Errorf("listings: %q", got)
	}
}

const memcachedPort = 11211 // of the key-value client

// The key-value client asks a real memcached beside its client: request, clone, query, answer.
func TestStageAsksMemcached(t *testing.T) {
	n := newTestNIC(t)
	_, tcp := startMemcached(t, n, "-U", strconv.Itoa(memcachedPort))
	deploy(t, n, withService(stageProgram(t, "kv_client", stageID, 1), netip.AddrPortFrom(n.HostAddr(), memcachedPort)))
	conn := jobSocket(t, n)
	if got := ask(t, conn, 3, 16); !bytes.HasSuffix(got, []byte("STORED\r\n")) {
		t.Fatalf("set: %q", got)
	}
	item, err := tcp.Get("key")
	if err != nil || string(item.Value) != "data" {
		t.Fatalf("by TCP: %+v, %v", item, err)
	}
	if err := tcp.Set(&memcache.Item{Key: "key", Value: []byte("from TCP")}); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, conn, 2, 16); !bytes.HasSuffix(got, []byte("VALUE key 0 8\r\nfrom TCP\r\nEND\r\n")) {
		t.Errorf("get: %q", got)
	}
}

// stageFiles are those of one of the P4 programs in compiler/p4/testdata, with its P4 changed; buildFiles makes no directories.
func stageFiles(t testing.TB, name string, changes ...string) map[string][]byte {
	t.Helper()
	dir := filepath.Join("../../compiler/p4/testdata", name)
	files := map[string][]byte{}
	for _, file := range []string{"lambda.yml", name + ".p4", name + ".p4cfg", name + ".c", "include/headers.p4", "include/parser.p4"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(file)] = data
	}
	p4 := strings.NewReplacer(append(changes, `"include/`, `"`)...).Replace(string(files[name+".p4"]))
	files[name+".p4"] = []byte(p4)
	return files
}

// hostileStage is the web server with another lambda in it, and with its P4 changed.
func hostileStage(t testing.TB, c string, changes ...string) backend.Deployment {
	t.Helper()
	files := stageFiles(t, "web_server", changes...)
	files["web_server.c"] = []byte("#include <pif_plugin.h>\n" + c)
	a, err := buildFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, stageID, 1)
}

// If a packet loses a header on its way to the host, the host's stack takes it, whatever its length was.
func TestStageMarksForTheHost(t *testing.T) {
	n := newTestNIC(t)
	a, err := buildFiles(stageFiles(t, "kv_client", "apply(clone_marked);", ""))
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, n, deployment(a, stageID, 1))
	host := listenOnNIC(t, n, 0x3001)
	client := jobSocket(t, n)
	for _, tail := range []string{"", "odd", strings.Repeat("behind the job ", 60)} {
		if _, err := client.Write(append(append([]byte{0, 0, 0, 2}, make([]byte, 16)...), tail...)); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, host); string(got) != tail {
			t.Fatalf("the host got %q, want %q", got, tail)
		}
	}
}

// listenOnNIC opens a socket on the NIC's own address, in its namespace.
func listenOnNIC(t testing.TB, n *NIC, port uint16) (conn *net.UDPConn) {
	t.Helper()
	err := veth.InNamed(n.rec.Namespace, func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.Addr().Addr(), port)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// If a lambda behind a match stage never ends, or accesses foreign memory, its packet is dropped and counted, and its
// neighbours go on.
func TestHostileStages(t *testing.T) {
	const head = "int pif_plugin_count(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data) { return PIF_PLUGIN_RETURN_FORWARD; }\n" +
		"int pif_plugin_greet(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data) {\n" +
		"PIF_PLUGIN_job_T *job = pif_plugin_hdr_get_job(headers);\n"
	for name, c := range map[string]string{
		"an endless loop":      "volatile uint32_t n; " + head + "for (;;) n++; }",
		"out of its memory":    "uint32_t a[4]; " + head + "a[job->__data_0 + 1000000] = 1; return PIF_PLUGIN_RETURN_FORWARD; }",
		"a pointer of its own": head + "*(volatile uint32_t *)(0xffff888000000000ULL + job->__data_0) = 1; return PIF_PLUGIN_RETURN_FORWARD; }",
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNIC(t)
			deploy(t, n, hostileStage(t, c), probe(t, workloads["packet"], 1, packetSpec))
			wantGreeting(t, n, "drop")
			wantRevision(t, n, workloads["packet"], 1)
			status, err := n.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range status {
				if s.Workload == stageID && (s.Stats.Faults != 1 || s.Stats.Drops != 1) {
					t.Errorf("counted %+v", s.Stats)
				}
			}
		})
	}
}
