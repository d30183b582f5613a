package process

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/freeport"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// Methods of test/lambdas/assemble.c.
const (
	methodRuns    = 1 + iota // how often the fixture ran
	methodWait               // the same, after a while
	methodWaiting            // how many requests wait so
	methodZero               // divides by it
)

// A message stays while the lambda runs on it, even after its time-out.
func TestRunningMessageDoesNotExpire(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	d := deployment(workload, 1, api.ModeAssemble, fixture(t, "assemble"))
	d.Spec.Message.Timeout = api.Duration(10 * time.Millisecond)
	c := dial(t, mustDeploy(t, b, d))
	in, _ := b.get(workload, false)
	c.send(packet(c.header(workload, methodWait, 4), make([]byte, 4), 0))
	eventually(t, "it is answered", func() bool {
		if _, err := b.Status(t.Context()); err != nil { // after a command, a process forgets what timed out
			t.Fatal(err)
		}
		_, _, err := c.tryReceive(time.Millisecond)
		return err == nil
	})
	if left, err := control(t.Context(), in.socket(), "drain"); err != nil || left != "0 messages 0 calls" {
		t.Errorf("there are %s, %v", left, err)
	}
}

// A superseded revision stays for its message, however many follow.
func TestMessageOutlivesManyRevisions(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	object := fixture(t, "assemble")
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModeAssemble, object)))
	packets := c.fragments(0, randomBytes(2000), 1000, 0, api.FlagAckWanted)
	c.send(packets[0])
	c.receive()
	for revision := range uint32(6) { // more than answer pulls
		mustDeploy(t, b, deployment(workload, 2+revision, api.ModeAssemble, object))
	}
	if _, err := b.Status(t.Context()); err != nil { // after a command, a process unloads what nothing needs
		t.Fatal(err)
	}
	c.send(packets[1])
	if h, _ := c.receive(); h.Type != api.TypeResponse || h.Revision != 1 {
		t.Errorf("got %+v, want a response of revision 1", h)
	}
}

// A client can choose the worker of a process from one address: each worker gets some of the ports.
type manyPorts struct {
	t      *testing.T
	conn   *net.UDPConn
	addrs  []netip.AddrPort
	socket string // for control
}

// servePorts runs the fixture assemble with two workers, eight ports and further arguments.
func servePorts(t *testing.T, more ...string) *manyPorts {
	t.Helper()
	dir := shortdir.New(t)
	socket := filepath.Join(dir, "control-0")
	m := &manyPorts{t: t, socket: socket}
	args := []string{"--workload", fmt.Sprint(workload), "--control", socket, "--threads", "2", "--mode", "assemble", "--in-flight", "64"}
	if os.Geteuid() == 0 { // its tasks are counted by user, and other programs may run as nobody
		args = append(args, "--user", fmt.Sprint(userOf(dir)))
	}
	args = append(args, more...)
	for range 8 {
		addr, err := freeport.UDP(workload)
		if err != nil {
			t.Fatal(err)
		}
		m.addrs = append(m.addrs, addr)
		args = append(args, "--listen", addr.String())
	}
	if err := os.WriteFile(filepath.Join(dir, "1.so"), fixture(t, "assemble"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(checkedHost, args...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, "lambda-host listens", func() bool { _, err := listener(socket); return err == nil })
	if _, err := control(t.Context(), socket, "load 3 1.so"); err != nil {
		t.Fatal(err)
	}
	m.open()
	return m
}

// open gives the client an address of its own, and with it another choice of ports for each worker.
func (m *manyPorts) open() {
	m.t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { conn.Close() })
	m.conn = conn
}

func (m *manyPorts) send(to int, b []byte) {
	m.t.Helper()
	if _, err := m.conn.WriteToUDPAddrPort(b, m.addrs[to]); err != nil {
		m.t.Fatal(err)
	}
}

// receive returns the answered request, and the number in the answer.
func (m *manyPorts) receive() (request uint64, n uint32) {
	m.t.Helper()
	buf := make([]byte, 2048)
	m.conn.SetReadDeadline(time.Now().Add(patience))
	size, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatal(err)
	}
	h, p, err := api.ParsePacket(buf[:size])
	if err != nil || h.Type != api.TypeResponse || len(p) != 4 {
		m.t.Fatalf("answer %+v %x: %v", h, p, err)
	}
	return h.Request, binary.LittleEndian.Uint32(p)
}

// whileItWaits asks by another port how many requests wait, while port 0's request waits. It reports whether the other worker
// answered before the waiting request ended; if not, it receives both answers.
func (m *manyPorts) whileItWaits(c *rawClient, slow uint64, port int) bool {
	m.t.Helper()
	for {
		m.send(port, packet(c.header(workload, methodWaiting, 4), make([]byte, 4), 0))
		request, n := m.receive()
		if request == slow {
			m.receive()
			return false
		}
		if n > 0 {
			return true
		}
	}
}

// apart finds a port of the worker that does not serve port 0.
func (m *manyPorts) apart(c *rawClient) int {
	m.t.Helper()
	for ; ; m.open() {
		for port := 1; port < len(m.addrs); port++ {
			slow := c.header(workload, methodWait, 4)
			m.send(0, packet(slow, make([]byte, 4), 0))
			if m.whileItWaits(c, slow.Request, port) {
				m.receive()
				return port
			}
		}
	}
}

// If a client gives a message up while the lambda runs on it, the message is forgotten after the run: sent again, it runs again. If
// the machine is so busy that the run ended first, the test tries once more.
func TestGivenUpWhileItRuns(t *testing.T) {
	m := servePorts(t)
	c := &rawClient{t: t}
	other := m.apart(c)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		slow := c.header(workload, methodWait, 4)
		m.send(0, packet(slow, make([]byte, 4), 0))
		if !m.whileItWaits(c, slow.Request, other) {
			continue
		}
		done := slow
		done.Type, done.Flags, done.MessageLen = api.TypeAck, api.FlagDone, 0
		m.send(other, packet(done, nil, 0))
		inTime := m.whileItWaits(c, slow.Request, other) // the same worker had the request before
		if !inTime {
			continue
		}
		_, first := m.receive()
		m.send(0, packet(slow, make([]byte, 4), 0))
		if request, again := m.receive(); request != slow.Request || again == first {
			t.Errorf("run %d was remembered", first)
		}
		return
	}
	t.Fatal("it was never given up in time")
}
