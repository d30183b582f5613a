package nic

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module/stage"
)

// The jobs of testdata/twins, which clones each packet: where the packet goes and where its clone.
const (
	jobBothBack   = 0
	jobHostBack   = 1
	jobBackHost   = 2
	jobBothToHost = 3
	jobCloneDrops = 4
	jobCloneWaits = 8
	jobWaits      = 16 // waits, then is job 0; likewise 17 is job 1
)

// The ports of the NIC's namespace to which twins sends packets, and their clones.
const (
	packetPort = 0x3001
	clonePort  = 0x3002
)

// twins builds testdata/twins with its P4 changed.
func twins(t testing.TB, revision uint32, changes ...string) backend.Deployment {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"lambda.yml", "twins.p4", "twins.p4cfg", "twins.c"} {
		data, err := os.ReadFile(filepath.Join("testdata/twins", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	files["twins.p4"] = []byte(strings.NewReplacer(changes...).Replace(string(files["twins.p4"])))
	a, err := buildFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, stageID, revision)
}

// sendTwin sends a job of twins' with a serial number.
func sendTwin(t testing.TB, conn *net.UDPConn, job, serial uint32) {
	t.Helper()
	payload := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, job), serial)
	if _, err := conn.Write(append(payload, 0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
}

// arrivals reads so many packets of twins' and counts each of them.
func arrivals(t testing.TB, conn *net.UDPConn, count int, seen map[twin]int) {
	t.Helper()
	for range count {
		buf := receive(t, conn)
		if len(buf) != 12 {
			t.Fatalf("got %x", buf)
		}
		seen[twin{binary.BigEndian.Uint32(buf), binary.BigEndian.Uint32(buf[4:]), binary.BigEndian.Uint32(buf[8:])}]++
	}
}

type twin struct{ job, serial, clone uint32 }

// If a packet and its clone both leave, each arrives once: at the client or at the host, in any combination.
func TestTwins(t *testing.T) {
	for _, mode := range []Mode{ModeNative, ModeGeneric} {
		t.Run(string(mode), func(t *testing.T) { testTwins(t, mode) })
	}
}

func testTwins(t *testing.T, mode Mode) {
	const rounds = 50
	c := pacedConfig(t)
	c.Mode = mode
	n := open(t, c)
	deploy(t, n, twins(t, 1))
	client := jobSocket(t, n)
	host := map[uint32]*net.UDPConn{0: listenOnNIC(t, n, packetPort), 1: listenOnNIC(t, n, clonePort)}
	seen := map[twin]int{}
	for serial := range uint32(rounds) {
		for _, job := range []uint32{jobBothBack, jobHostBack, jobBackHost, jobBothToHost, jobCloneDrops} {
			sendTwin(t, client, job, serial)
		}
		arrivals(t, client, 5, seen)
		arrivals(t, host[0], 2, seen)
		arrivals(t, host[1], 2, seen)
	}
	for serial := range uint32(rounds) {
		for job := range uint32(5) {
			for clone := range uint32(2) {
				want := 1
				if job == jobCloneDrops && clone == 1 {
					want = 0
				}
				if got := seen[twin{job, serial, clone}]; got != want {
					t.Errorf("job %d, packet %d, clone %d: arrived %d times, want %d", job, serial, clone, got, want)
				}
			}
		}
	}
	if copies, astray := counted(t, n, "copies"), counted(t, n, "astray"); copies != 0 || astray != 0 {
		t.Errorf("counted %d copies and %d astray", copies, astray)
	}
	eventually(t, "all replies are counted", func() bool { return stageStats(t, n).Replies == 5*rounds })
}

// letGo writes the flag that twins waits for.
func letGo(t testing.TB, n *NIC) {
	t.Helper()
	if err := n.WriteObject(t.Context(), stageID, "go", []byte{1, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
}

func wantSeen(t testing.TB, got map[twin]int, want ...twin) {
	t.Helper()
	for _, w := range want {
		if got[w] != 1 {
			t.Errorf("%+v arrived %d times", w, got[w])
		}
	}
	if len(got) != len(want) {
		t.Errorf("arrived %v, want %v", got, want)
	}
}

// A clone waits by itself: its packet leaves, and a repeated packet gets no second waiting clone.
func TestCloneWaits(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, twins(t, 1))
	client := jobSocket(t, n)
	for range 3 {
		seen := map[twin]int{}
		sendTwin(t, client, jobCloneWaits, 7)
		arrivals(t, client, 1, seen)
		wantSeen(t, seen, twin{jobCloneWaits, 7, 0})
	}
	eventually(t, "one clone waits", func() bool { return len(waiting(t, n)) == 1 })
	deploy(t, n, twins(t, 2)) // takes the clone over
	letGo(t, n)
	seen := map[twin]int{}
	arrivals(t, client, 1, seen)
	wantSeen(t, seen, twin{jobCloneWaits, 7, 1})
	wantWaiting(t, n, 0)
}

// A packet that waited may do what any packet may: be cloned, go to the host, or ask a service.
func TestWaitedPacketIsAsAnyOther(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, twins(t, 1))
	client, host := jobSocket(t, n), listenOnNIC(t, n, packetPort)
	sendTwin(t, client, jobWaits, 1)
	sendTwin(t, client, jobWaits+1, 1)
	eventually(t, "both wait", func() bool { return len(waiting(t, n)) == 2 })
	letGo(t, n)
	seen := map[twin]int{}
	arrivals(t, client, 3, seen)
	arrivals(t, host, 1, seen)
	wantSeen(t, seen, twin{jobWaits, 1, 0}, twin{jobWaits, 1, 1}, twin{jobWaits + 1, 1, 0}, twin{jobWaits + 1, 1, 1})
	if got := stageStats(t, n); got.Requests != 2 || got.Replies != 3 || got.Drops != 0 || got.Faults != 0 {
		t.Errorf("counted %+v", got)
	}
}

// A clone that waited asks a service like one that did not.
func TestWaitedCloneAsksService(t *testing.T) {
	n := open(t, pacedConfig(t))
	addr := netip.AddrPortFrom(n.HostAddr(), memcachedPort)
	service, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	files := stageFiles(t, "kv_client")
	const includes, work = "#include <pif_common.h>", "query->__text_0 ="
	c := strings.NewReplacer(includes, includes+"\nvolatile uint32_t go;", work, "while (!go) sleep(1);\n"+work).Replace(string(files["kv_client.c"]))
	files["kv_client.c"] = []byte(c)
	a, err := buildFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, n, withService(deployment(a, stageID, 1), addr))
	client, host := jobSocket(t, n), listenOnNIC(t, n, packetPort)
	if _, err := client.Write(append([]byte{0, 0, 0, 2}, make([]byte, 16)...)); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, host); len(got) != 0 { // a marked packet goes at once
		t.Fatalf("the host got %d bytes", len(got))
	}
	eventually(t, "the clone waits", func() bool { return len(waiting(t, n)) == 1 })
	letGo(t, n)
	text, from := query(t, service)
	if !strings.HasSuffix(string(text), "get key\r\n") {
		t.Errorf("query %q", text)
	}
	if _, err := service.WriteToUDPAddrPort([]byte("answer"), from); err != nil {
		t.Fatal(err)
	}
	if answer := receive(t, client); string(answer) != "answer" {
		t.Errorf("answer %q", answer)
	}
}

// A revision whose clones keep other metadata cannot go on with a clone that waits, which is counted as its fault.
func TestCloneOfAnotherShape(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, twins(t, 1))
	sendTwin(t, jobSocket(t, n), jobCloneWaits, 1)
	eventually(t, "the clone waits", func() bool { return len(waiting(t, n)) == 1 })
	deploy(t, n, twins(t, 2, "field_list origin { kept.number; }", "field_list origin { kept.port; kept.number; }"))
	eventually(t, "it waits no longer", func() bool { return len(waiting(t, n)) == 0 })
	if got := stageStats(t, n); got.Faults != 1 || got.Drops != 1 {
		t.Errorf("counted %+v", got)
	}
}

// Copies that nobody fetches are kept while there is room; the others are counted, and none is sent twice.
func TestTwinsWithoutPacer(t *testing.T) {
	const sent, after = 5000, 3
	c := pacedConfig(t)
	pacer := c.PacerBinary
	c.PacerBinary = ""
	n := open(t, c)
	deploy(t, n, twins(t, 1))
	client := jobSocket(t, n)
	seen := map[twin]int{}
	for serial := range uint32(after) {
		sendTwin(t, client, jobBothBack, serial)
	}
	arrivals(t, client, after, seen)
	wantSeen(t, seen, twin{jobBothBack, 0, 1}, twin{jobBothBack, 1, 1}, twin{jobBothBack, 2, 1})
	frame := jobFrame(t, jobBothBack, jobPort)
	for range sent {
		if verdict, _ := inject(t, n, frame); verdict != "reply" {
			t.Fatalf("verdict %s", verdict)
		}
	}
	lost := counted(t, n, "copies")
	if lost == 0 || lost > sent-1000 {
		t.Errorf("%d copies of %d lost", lost, sent)
	}
	if got := stageStats(t, n).Drops; got != lost {
		t.Errorf("%d drops counted, want %d", got, lost)
	}
	shut(t, n)
	c.PacerBinary = pacer
	n = open(t, c)
	arrivals(t, client, after, seen)
	wantSeen(t, seen, twin{jobBothBack, 0, 1}, twin{jobBothBack, 1, 1}, twin{jobBothBack, 2, 1},
		twin{jobBothBack, 0, 0}, twin{jobBothBack, 1, 0}, twin{jobBothBack, 2, 0})
	want := 2*(sent+after) - lost
	eventually(t, "the others are sent", func() bool { return stageStats(t, n).Replies == want })
}

// Copies, clones and packets that waited are checked like everything that a stage sends: a hostile stage reaches nobody by them.
func TestHostileTwins(t *testing.T) {
	n := open(t, pacedConfig(t))
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	client, host := jobSocket(t, n), listenOnNIC(t, n, packetPort)
	victim, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.HostAddr(), 20001)))
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	const wire = "action to_wire() { "
	for name, attack := range map[string]struct {
		job     uint32
		changes []string
	}{
		"to another port":          {jobBothBack, []string{wire, wire + "modify_field(udp.dst, 20001); "}},
		"to another address":       {jobBothBack, []string{wire, wire + "modify_field(ipv4.dst, 0xc0000209); "}},
		"from another port":        {jobBothBack, []string{wire, wire + "modify_field(udp.src, 53); "}},
		"longer than what came in": {jobBothBack, []string{wire, wire + "add_header(more); modify_field(udp.length_, 84); modify_field(ipv4.total, 104); ", "header job_t job;", "header job_t job;\nheader_type more_t { fields { a : 512; } }\nheader more_t more;"}},
		"to the host, as another":  {jobBothToHost, []string{"action to_host(port) { ", "action to_host(port) { modify_field(ipv4.src, 0xc0000209); "}},
		"after a wait":             {jobWaits, []string{wire, wire + "modify_field(udp.dst, 20001); "}},
	} {
		t.Run(name, func(t *testing.T) {
			deploy(t, n, twins(t, 1, attack.changes...))
			before := astray(t, n)
			sendTwin(t, client, attack.job, 1)
			if attack.job == jobWaits {
				eventually(t, "it waits", func() bool { return len(waiting(t, n)) == 1 })
				letGo(t, n)
			}
			eventually(t, "packet and clone are dropped", func() bool { return astray(t, n)-before == 2 })
			if got := stageStats(t, n); got.Faults != 2 || got.Drops != 2 || got.Replies != 0 {
				t.Errorf("counted %+v", got)
			}
			wantRevision(t, n, workloads["packet"], 1)
			if err := n.Remove(t.Context(), stageID); err != nil {
				t.Fatal(err)
			}
		})
	}
	// Nobody received anything: the first packet that arrives anywhere is one that is sent now.
	sender, err := net.DialUDP("udp4", nil, victim.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	deploy(t, n, twins(t, 1))
	sendTwin(t, sender, 99, 99)
	sendTwin(t, client, jobHostBack, 99)
	for conn, want := range map[*net.UDPConn]twin{victim: {99, 99, 0}, client: {jobHostBack, 99, 1}, host: {jobHostBack, 99, 0}} {
		seen := map[twin]int{}
		arrivals(t, conn, 1, seen)
		wantSeen(t, seen, want)
	}
}

// A clone that asks for a clone gets none, as this would go on for ever; nor does one that waited, which still has its metadata.
func TestCloneIsNotCloned(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, twins(t, 1, "if (standard_metadata.instance_type == 0) { apply(clones); }", "apply(clones);"))
	copies, err := ringbuf.NewReader(pinnedMap(t, n, "ln_copies"))
	if err != nil {
		t.Fatal(err)
	}
	defer copies.Close()
	copies.SetDeadline(time.Now()) // do not wait for copies
	wantCopies := func(want int) {
		t.Helper()
		for range want {
			if _, err := copies.Read(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := copies.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want no more copies", err)
		}
	}
	clone := func(frame []byte) bool { return frame[len(frame)-8-1] == 1 } // its mark, before the 8 bytes that do not belong to the job
	if verdict, out := inject(t, n, jobFrame(t, jobBothBack, jobPort)); verdict != "reply" || !clone(out) {
		t.Errorf("verdict %s: %x", verdict, out)
	}
	wantCopies(1)
	if verdict, out := inject(t, n, jobFrame(t, jobCloneWaits, jobPort)); verdict != "reply" || clone(out) {
		t.Errorf("verdict %s: %x", verdict, out)
	}
	wantCopies(0)
	late := onlyOne(t, n)
	letGo(t, n)
	if err := putOnCPUs(pinnedMap(t, n, "ln_passes"), 0, stage.Pass{}); err != nil {
		t.Fatal(err)
	}
	if action, out := goOn(t, n, late); action != "reply" || !clone(out) {
		t.Errorf("%s: %x", action, out)
	}
	wantCopies(0)
}
