package ikernels

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels"
)

const port = 5683

// A server is a running example.
type server struct {
	s      *site
	client *net.UDPConn
	lines  *bufio.Scanner // what it prints
	stderr bytes.Buffer
	cmd    *exec.Cmd
}

// serve starts a server, and waits until it is ready.
func (s *site) serve(env []string, args ...string) *server {
	s.t.Helper()
	v := &server{s: s}
	cmd := s.command(env, append(args, fmt.Sprint(port))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with the processes that it forks
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = &v.stderr
	v.lines = bufio.NewScanner(out)
	s.in(cmd.Start)
	v.cmd = cmd
	s.t.Cleanup(v.stop)
	v.says("ready")
	s.in(func() (err error) {
		v.client, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		return err
	})
	s.t.Cleanup(func() { v.client.Close() })
	return v
}

// stop ends the server. Then stderr is whole.
func (v *server) stop() {
	_ = v.cmd.Cancel()
	_ = v.cmd.Wait()
}

// says has the server's next line be this one.
func (v *server) says(want string) {
	v.s.t.Helper()
	if !v.lines.Scan() || v.lines.Text() != want {
		v.stop()
		v.s.t.Fatalf("the server says %q, %v, want %q\n%s", v.lines.Text(), v.lines.Err(), want, &v.stderr)
	}
}

// send sends numbers.
func (v *server) send(numbers ...int32) {
	v.s.t.Helper()
	for _, n := range numbers {
		if err := binary.Write(v.client, binary.BigEndian, n); err != nil {
			v.s.t.Fatal(err)
		}
	}
}

// average asks the server for the average.
func (v *server) average() string {
	v.s.t.Helper()
	if _, err := v.client.Write([]byte("?")); err != nil {
		v.s.t.Fatal(err)
	}
	_ = v.client.SetReadDeadline(time.Now().Add(patience))
	text := make([]byte, 100)
	n, err := v.client.Read(text)
	if err != nil {
		v.s.t.Fatal(err)
	}
	return string(text[:n])
}

// check sends numbers to a server, whose alerts are the same with and without ikernel. Its answer is the average.
func (v *server) check(average string) {
	v.s.t.Helper()
	v.send(50, 150, 100, -20, 170)
	v.says("alert 150")
	v.says("alert 170")
	if got := v.average(); got != average {
		v.s.t.Errorf("the server says %q, want %q", got, average)
	}
}

const (
	ofAll    = "average 90.0 of 5"
	ofAlerts = "average 160.0 of 2" // of those that reach the server
)

// preloaded is the environment of a server whose sockets get an ikernel without its doing.
func preloaded(more ...string) []string {
	return append([]string{"LD_PRELOAD=" + built + "/liblambdanic-ikernel.so"}, more...)
}

// TestServers has the example servers do the same without an ikernel, and with one by a library. The unmodified servers with an ikernel get only
// what is above the limit.
func TestServers(t *testing.T) {
	for _, e := range examples {
		for _, c := range []struct {
			name, program, average string
			env                    []string
		}{
			{"before", e.before, ofAll, nil},
			{"after", e.after, ofAll, nil},
			{"preload", e.before, ofAlerts, preloaded("LAMBDANIC_IKERNEL=threshold", "LAMBDANIC_REGISTERS=limit=100,offset=0")},
			{"preload port", e.before, ofAlerts, preloaded("LAMBDANIC_IKERNEL=threshold", "LAMBDANIC_REGISTERS=limit=100", fmt.Sprint("LAMBDANIC_PORT=", port))},
			{"preload other port", e.before, ofAll, preloaded("LAMBDANIC_IKERNEL=threshold", fmt.Sprint("LAMBDANIC_PORT=", port+1))},
			{"preload nothing", e.before, ofAll, preloaded()},
		} {
			t.Run(e.language+" "+c.name, func(t *testing.T) {
				v := newSite(t).serve(c.env, e.command(c.program)...)
				v.check(c.average)
				v.stop()
				if v.stderr.Len() > 0 {
					t.Errorf("stderr: %s", &v.stderr)
				}
			})
		}
	}
}

// TestPreloadFails: what cannot be costs a line, and the server runs on.
func TestPreloadFails(t *testing.T) {
	const (
		line      = "lambdanic: %s: the server runs on without an ikernel\n"
		threshold = "LAMBDANIC_IKERNEL=threshold"
	)
	for want, env := range map[string][]string{
		"threshold: the daemon of this machine does not answer: start it with `lambdanic up -d`, and ask as root": {threshold, "LAMBDANIC_IKERNEL_SOCKET=/nonexistent"},
		`nope: there is no ikernel "nope": use ` + strings.Join(ikernels.Names(), ", "):                           {"LAMBDANIC_IKERNEL=nope"},
		"read LAMBDANIC_REGISTERS: it is not NAME=NUMBER,NAME=NUMBER":                                             {threshold, "LAMBDANIC_REGISTERS=limit=100x"},
		`threshold: no such namespace: "nowhere"`:                                                                 {threshold, "LAMBDANIC_NAMESPACE=nowhere"},
		`write LAMBDANIC_REGISTERS: the ikernel has no register "a": use limit, offset, sum, count, alerts`:       {threshold, "LAMBDANIC_REGISTERS=limit=-1 a=1"},
	} {
		t.Run(want, func(t *testing.T) {
			v := newSite(t).serve(preloaded(env...), examples[0].command(examples[0].before)...)
			v.check(ofAll)
			v.stop()
			if want := fmt.Sprintf(line, want); v.stderr.String() != want {
				t.Errorf("stderr is %q, want %q", &v.stderr, want)
			}
		})
	}
}

// TestPreloadNamespace: what is over the quota of the namespace that the environment names does not reach the server.
func TestPreloadNamespace(t *testing.T) {
	s := newSite(t)
	v := s.serve(preloaded("LAMBDANIC_IKERNEL=threshold", "LAMBDANIC_REGISTERS=limit=100", "LAMBDANIC_NAMESPACE=tenant"), examples[0].command(examples[0].before)...)
	v.send(110)
	v.says("alert 110")
	quota := func(requests *uint64) {
		if err := s.limits.Set(api.Budget{}, map[uint32]api.Quota{1: {Requests: requests}}); err != nil {
			t.Fatal(err)
		}
	}
	quota(new(uint64))
	v.send(120, 130)
	var list []ikernels.Description
	for deadline := time.Now().Add(patience); len(list) == 0 || list[0].Metered == nil || list[0].Metered.OverQuota < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the ikernels are %+v", list)
		}
		var err error
		if list, err = s.host.List(); err != nil {
			t.Fatal(err)
		}
	}
	if list[0].Namespace != "tenant" {
		t.Errorf("the ikernel is of namespace %q", list[0].Namespace)
	}
	quota(nil)
	v.send(140)
	v.says("alert 140")
	if v.stop(); v.stderr.Len() > 0 {
		t.Errorf("stderr: %s", &v.stderr)
	}
}

// forking is a server that forks. Both of its processes bind a socket of the same port. Then the first one ends.
const forking = `
import os, socket, sys

def bind():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("127.0.0.1", int(sys.argv[1])))
    return s

first = bind()
alive, living = os.pipe()
bound, binding = os.pipe()
if os.fork():
    os.close(alive)
    os.read(bound, 1)
    first.close()
    os._exit(0)
os.close(living)
second = bind()
first.close()
os.write(binding, b"x")
os.read(alive, 1)
print("ready", flush=True)
while True:
    message = second.recv(4)
    print("alert", int.from_bytes(message, "big", signed=True), flush=True)
    if message == b"\0\0\0\xff":
        break
`

// TestPreloadFork: a server's processes share the ikernel, which lasts as long as one of them.
func TestPreloadFork(t *testing.T) {
	v := newSite(t).serve(preloaded("LAMBDANIC_IKERNEL=threshold", "LAMBDANIC_REGISTERS=limit=100"), "python3", "-c", forking)
	v.send(50, 150, 20, 255)
	v.says("alert 150")
	v.says("alert 255")
	if v.lines.Scan() {
		t.Errorf("the server says %q", v.lines.Text())
	}
	if v.stop(); v.stderr.Len() > 0 {
		t.Errorf("stderr: %s", &v.stderr)
	}
}

// closing is a server that closes all descriptors, as one does that becomes a daemon, and opens others.
const closing = `
import os, socket, sys

def bind(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", port))
    return s

port = int(sys.argv[1])
bind(port + 1).detach()
os.closerange(3, 100)
others = [socket.socketpair() for _ in range(4)]
server = bind(port)
print("ready", flush=True)
for _ in range(2):
    print("got", int.from_bytes(server.recv(4), "big"), flush=True)
for pair in others:
    for s in pair:
        s.setblocking(False)
        try:
            print("a stranger gets", s.recv(100), flush=True)
        except BlockingIOError:
            pass
print("done", flush=True)
`

// TestPreloadClosed: a server that closes the connection to the daemon has no ikernel any more, and no descriptor of its own is taken for the
// connection.
func TestPreloadClosed(t *testing.T) {
	v := newSite(t).serve(preloaded("LAMBDANIC_IKERNEL=threshold"), "python3", "-c", closing)
	v.send(1, 2)
	v.says("got 1")
	v.says("got 2")
	v.says("done")
	v.stop()
	if want := "lambdanic: attach a socket: Bad file descriptor: the server runs on without an ikernel\n"; v.stderr.String() != want {
		t.Errorf("stderr is %q, want %q", &v.stderr, want)
	}
}
