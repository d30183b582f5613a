package ikernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// dying is a server with a child that is killed while it attaches a socket. Then the server binds others.
const dying = `
import os, socket, sys

def bind(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", port))
    return s

port = int(sys.argv[1])
server = bind(port)
print("ready", flush=True)
child = os.fork()
if child == 0:
    bind(port + 1)
    os._exit(0)
print(child, flush=True)
os.waitpid(child, 0)
others = bind(port + 2), bind(port + 3)
print("bound", flush=True)
print("got", int.from_bytes(server.recv(4), "big"), flush=True)
`

// TestPreloadDies: a process of a server dies while it has the lock, and its reply is on the way. The others neither wait for the lock nor get the reply.
func TestPreloadDies(t *testing.T) {
	path := shortdir.New(t) + "/s"
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	asked, answered := make(chan bool), make(chan int)
	go func() { answered <- answerOnce(l, asked) }()
	v := newSite(t).serve(preloaded("LAMBDANIC_IKERNEL=echo", "LAMBDANIC_IKERNEL_SOCKET="+path), "python3", "-c", dying)
	var child int
	if !v.lines.Scan() {
		t.Fatal("the server does not name its child")
	}
	if _, err := fmt.Sscan(v.lines.Text(), &child); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	v.says("bound")
	v.send(1)
	v.says("got 1")
	v.stop()
	l.Close()
	const line = "lambdanic: attach a socket: another process of the server died while it did so: the server runs on without an ikernel\n"
	if want := strings.Repeat(line, 2); v.stderr.String() != want {
		t.Errorf("stderr is %q, want %q", &v.stderr, want)
	}
	if n := <-answered; n != 2 {
		t.Errorf("the daemon is asked for %d sockets, want 2", n)
	}
}

// answerOnce is a daemon that never answers for the second socket, and says that it is asked. It returns for how many it is.
func answerOnce(l *net.UnixListener, asked chan<- bool) (sockets int) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return 0
	}
	defer conn.Close()
	for request := make([]byte, wire.MaxPacket); ; {
		n, err := conn.Read(request)
		if err != nil || n < wire.HeaderLen {
			return sockets
		}
		if wire.Operation(binary.NativeEndian.Uint32(request)) == wire.OperationAttach {
			sockets++
		}
		if sockets == 2 {
			close(asked)
			continue
		}
		if _, err := conn.Write(binary.NativeEndian.AppendUint32(make([]byte, 4), 1)); err != nil {
			return sockets
		}
	}
}

// interrupted waits for messages that are sent by a signal's handler, and uses the connection while signals come.
const interrupted = `
import mmap, signal, socket, sys
from lambdanic import Ikernels

todo = None # what the handler does when it has been called some more times
calls = 0

def handle(number, frame):
    global todo, calls
    calls += 1
    if todo is None or calls < 20:
        return
    f, todo = todo, None
    f()

def after(f):
    global todo, calls
    calls, todo = 0, f

def interrupt():
    client.send(b"nothing is lost")
    raise KeyboardInterrupt

with (
    Ikernels(sys.argv[1]) as ikernels,
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
):
    server.bind(("127.0.0.1", 0))
    client.connect(server.getsockname())
    k = ikernels.create("steering")
    [ring] = k.open_rings(count=1, size=mmap.PAGESIZE)
    k.attach(server)
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while calls < 20:
        if k.read() != {"offset": 0, "length": 0, "overflow": 0} or k.fault is not None:
            print("the registers are wrong")
    after(lambda: client.send(b"goes on"))
    print(ring.read().data.tobytes().decode(), flush=True)
    try:
        after(interrupt)
        print("read", ring.read().data.tobytes(), flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(ring.read().data.tobytes().decode(), flush=True)
    signal.setitimer(signal.ITIMER_REAL, 0)
`

// TestPythonSignals has signals come while an application in Python waits for a ring. It waits on, or gets what the handler raises; no message is lost.
func TestPythonSignals(t *testing.T) {
	s := newSite(t)
	cmd := s.command(nil, "python3", "-W", "error", "-c", interrupted, s.path)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	s.in(cmd.Start)
	const want = "goes on\ninterrupted\nnothing is lost\n"
	if err := cmd.Wait(); err != nil || out.String() != want || stderr.Len() > 0 {
		t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, &stderr, &out, want)
	}
}
