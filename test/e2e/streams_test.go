package e2e

import (
	"bufio"
	"bytes"
	"context"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A talk is a TCP connection by which a client sends messages. Each has its number and a value, which is above threshold's limit in alerts.
type talk struct {
	t              *testing.T
	server, client *net.TCPConn
	alerts         []bool // of the messages that were sent
	passes         int    // from this one on, all pass

	mu  sync.Mutex
	got []int // numbers of the messages that the server got
	err error // that something else came
}

const messageSize = 8

func message(number int, alert bool) []byte {
	value := -number
	if alert {
		value = number + 1
	}
	return endian.BigEndian.AppendUint32(endian.BigEndian.AppendUint32(nil, uint32(number)), uint32(value))
}

// listenTCP makes a listening socket of plain TCP.
func listenTCP(t *testing.T, ns netns.NsHandle) *net.TCPListener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	var l net.Listener
	if err := veth.In(ns, func() (err error) {
		l, err = config.Listen(t.Context(), "tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// talkTo connects a client, and attaches the connection to each unless that is nil. The client has got a byte, so that nothing is on its way.
func talkTo(t *testing.T, ns netns.NsHandle, l *net.TCPListener, each *lambdanic.Ikernel) *talk {
	t.Helper()
	c := &talk{t: t, passes: 1 << 30}
	if err := veth.In(ns, func() error {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), patience)
		if err != nil {
			return err
		}
		c.client = conn.(*net.TCPConn)
		c.server, err = l.AcceptTCP()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	deadline := time.Now().Add(5 * patience) // in a guest that is emulated, a daemon takes a minute to start
	err := errors.Join(c.server.SetDeadline(deadline), c.client.SetDeadline(deadline))
	if each != nil {
		err = errors.Join(err, each.Attach(c.server))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.server.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go c.read()
	return c
}

func (c *talk) close() {
	c.server.Close()
	c.client.Close()
}

func (c *talk) read() {
	for b := make([]byte, messageSize); ; {
		_, err := io.ReadFull(c.server, b)
		number := int(endian.BigEndian.Uint32(b))
		c.mu.Lock()
		switch {
		case err != nil:
			c.err = err
		case len(c.got) > 0 && number <= c.got[len(c.got)-1], !bytes.Equal(b, message(number, true)) && !bytes.Equal(b, message(number, false)):
			err = fmt.Errorf("message %x came after the first %d", b, len(c.got))
			c.err = err
		default:
			c.got = append(c.got, number)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *talk) send(alert bool) {
	c.t.Helper()
	if _, err := c.client.Write(message(len(c.alerts), alert)); err != nil {
		c.t.Fatal(err)
	}
	c.alerts = append(c.alerts, alert)
}

// has is nil when the server has got a message, or a later one.
func (c *talk) has(number int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if n := len(c.got); n == 0 || c.got[n-1] < number {
		return fmt.Errorf("message %d has not come, but %d of those before", number, n)
	}
	return nil
}

// awaitLast waits until the last message that was sent has come.
func (c *talk) awaitLast() {
	c.t.Helper()
	poll(c.t, "the last message comes", func() error { return c.has(len(c.alerts) - 1) })
}

// check has all alerts have come, and from passes on all messages.
func (c *talk) check() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	came := make([]bool, len(c.alerts))
	for _, number := range c.got {
		came[number] = true
	}
	for number, alert := range c.alerts {
		if !came[number] && (alert || number >= c.passes) {
			c.t.Fatalf("message %d of %d is lost, alert: %v", number, len(c.alerts), alert)
		}
	}
}

// isFiltered has the ikernel drop all but an alert.
func (c *talk) isFiltered(k *lambdanic.Ikernel) {
	c.t.Helper()
	before, err := k.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	for n := range int64(3) {
		c.send(n == 2)
		poll(c.t, "the ikernel gets a message", func() error {
			r, err := k.Read()
			if err == nil && r["count"] != before["count"]+n+1 {
				err = fmt.Errorf("the registers are %v", r)
			}
			return err
		})
	}
	c.awaitLast()
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.got); n > 1 && c.got[n-2] >= len(c.alerts)-3 {
		c.t.Errorf("the server gets messages %v, want the last one alone", c.got)
	}
}

// isFree has the server get all messages from now on, after at most some.
func (c *talk) isFree() {
	c.t.Helper()
	poll(c.t, "the server gets all messages", func() error {
		c.send(false)
		time.Sleep(time.Millisecond)
		return c.has(len(c.alerts) - 1)
	})
	c.passes = min(c.passes, len(c.alerts)-1)
	for range 100 {
		c.send(false)
	}
	c.awaitLast()
}

// during sends alerts while f runs, and has all of them come.
func (c *talk) during(f func()) {
	c.t.Helper()
	const some = 1000
	ends, ended := make(chan bool), make(chan bool)
	first := len(c.alerts)
	go func() {
		defer close(ended)
		for after := 0; after < some; {
			if _, err := c.client.Write(message(len(c.alerts), true)); err != nil {
				c.t.Error(err)
				return
			}
			c.alerts = append(c.alerts, true)
			select {
			case <-ends:
				after++
			default:
			}
		}
	}()
	poll(c.t, "messages come", func() error { return c.has(first + some) })
	f()
	close(ends)
	<-ended
	c.awaitLast()
}

// threshold makes an ikernel for a talk.
func (i *instance) threshold() *lambdanic.Ikernel {
	i.t.Helper()
	ikernels, err := lambdanic.OpenIkernels(i.ikernelSocket())
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { ikernels.Close() })
	k, err := ikernels.Create("threshold")
	if err != nil {
		i.t.Fatal(err)
	}
	if err := k.Write(map[string]int64{"offset": 4}); err != nil {
		i.t.Fatal(err)
	}
	return k
}

func (i *instance) ikernelSocket() string { return filepath.Join(i.dir, "run", i.name, "ikernel.sock") }

// TestStreamDaemonKilled kills the daemon while an application's TCP connection has an ikernel and messages come.
func TestStreamDaemonKilled(t *testing.T) {
	i := up(t)
	ns := isolated.Namespace(t, fmt.Sprintf("lne2e%d", os.Getpid()))
	l := listenTCP(t, ns)
	k := i.threshold()
	c := i.killUnder(ns, l, k, k)
	k = i.threshold()
	if err := k.Attach(c.server); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "until it closes") {
		t.Errorf("the connection has another ikernel: %v", err)
	}
	other := talkTo(t, ns, l, k)
	other.isFiltered(k)
	other.check()
	c.isFree()
	c.check()
}

// TestStreamListenerKilled does so while a socket that listens has an ikernel.
func TestStreamListenerKilled(t *testing.T) {
	i := up(t)
	ns := isolated.Namespace(t, fmt.Sprintf("lne2e%d", os.Getpid()))
	l, k := listenTCP(t, ns), i.threshold()
	if err := k.Attach(l); errors.Is(err, unix.EOPNOTSUPP) {
		return // as this kernel lets no listening socket have an ikernel
	} else if err != nil {
		t.Fatal(err)
	}
	c := i.killUnder(ns, l, k, nil)
	between := talkTo(t, ns, l, nil)
	between.isFree()
	k = i.threshold()
	if err := k.Attach(l); err == nil || !strings.Contains(err.Error(), "SO_DETACH_FILTER") {
		t.Errorf("the socket has another ikernel: %v", err)
	}
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if err := k.Attach(l); err != nil {
		t.Fatal(err)
	}
	other := talkTo(t, ns, l, nil)
	other.isFiltered(k)
	for _, c := range []*talk{other, between, c} {
		if c != other {
			c.isFree()
		}
		c.check()
	}
}

// killUnder has a connection with an ikernel, by its listening socket unless each is that ikernel, kills the daemon under traffic, and starts another. What the
// first one made goes when the connection closes.
func (i *instance) killUnder(ns netns.NsHandle, l *net.TCPListener, k, each *lambdanic.Ikernel) *talk {
	i.t.Helper()
	var made []object
	i.t.Cleanup(func() { awaitGone(i.t, made) })
	i.t.Cleanup(func() { l.Close() })
	c := talkTo(i.t, ns, l, each)
	c.isFiltered(k)
	for _, o := range i.objects() {
		if strings.HasPrefix(o.name, "ik_") {
			made = append(made, o)
		}
	}
	if len(made) == 0 {
		i.t.Fatal("the daemon has no ikernel")
	}
	for _, o := range made {
		if there, err := o.exists(); !there || err != nil {
			i.t.Fatalf("%v is not there: %v", o, err)
		}
	}
	c.during(i.kill)
	c.isFree()
	i.start()
	c.isFree()
	return c
}

// TestStreamApplicationKilled kills an application whose TCP sockets have an ikernel. The daemon and the kernel keep nothing of it.
func TestStreamApplicationKilled(t *testing.T) {
	i := up(t)
	ns := isolated.Namespace(t, fmt.Sprintf("lne2e%d", os.Getpid()))
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, streams(t), i.ikernelSocket(), "stay")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	before := i.objects()
	if err := veth.In(ns, cmd.Start); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	var client net.Conn
	if err := veth.In(ns, func() (err error) {
		client, err = net.Dial("tcp", "127.0.0.1:"+lines.Text())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	may, killed, done := make(chan bool, 100), make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for alert := endian.BigEndian.AppendUint32(nil, 150); err == nil; {
			select {
			case may <- true: // some ahead of what the application prints
			case <-killed:
			}
			_, err = client.Write(alert)
		}
	}()
	for range 1000 {
		if !lines.Scan() || lines.Text() != "got 150" {
			t.Fatalf("the application says %q", lines.Text())
		}
		<-may
	}
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 1 || list[0].Application == nil || len(list[0].Application.Sockets) != 1 {
		t.Errorf("there is %+v", list)
	}
	made := without(i.objects(), before)
	if len(made) == 0 {
		t.Error("the daemon has nothing for the application")
	}
	_ = cmd.Process.Kill()
	close(killed)
	<-done
	_ = cmd.Wait()
	awaitGone(t, made)
	if list := query[[]api.Ikernel](i, "ik", "list"); len(list) != 0 {
		t.Errorf("there is %+v", list)
	}
	if left := without(i.objects(), before); len(left) > 0 {
		t.Errorf("the daemon keeps %v", left)
	}
}

// An object is a map or a program of the kernel.
type object struct {
	kind string
	id   uint32
	name string
}

// look finds the object's name.
func (o *object) look() error {
	if o.kind == "map_id" {
		m, err := ebpf.NewMapFromID(ebpf.MapID(o.id))
		if err != nil {
			return err
		}
		defer m.Close()
		info, err := m.Info()
		if err == nil {
			o.name = info.Name
		}
		return err
	}
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(o.id))
	if err != nil {
		return err
	}
	defer p.Close()
	info, err := p.Info()
	if err == nil {
		o.name = info.Name
	}
	return err
}

// objects are what the daemon has open.
func (i *instance) objects() (all []object) {
	i.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", i.node().PID))
	if err != nil {
		i.t.Fatal(err)
	}
	for _, file := range files {
		info, _ := os.ReadFile(file) // it may be closed
		for line := range strings.Lines(string(info)) {
			var o object
			if _, err := fmt.Sscanf(line, "%s %d", &o.kind, &o.id); err != nil {
				continue
			}
			if o.kind = strings.TrimSuffix(o.kind, ":"); (o.kind == "map_id" || o.kind == "prog_id") && o.look() == nil {
				all = append(all, o)
			}
		}
	}
	return all
}

// exists says whether the kernel still has the object. It does not open it: a program array that nobody else has open, and that is opened and closed again and
// again, Linux 6.18 may keep for ever. Each last close takes a reference for the work that empties the array, and work that waits already gives back one
// (prog_array_map_clear in kernel/bpf/arraymap.c).
func (o *object) exists() (bool, error) {
	var next uint32
	var err error
	if o.kind == "map_id" {
		var id ebpf.MapID
		id, err = ebpf.MapGetNextID(ebpf.MapID(o.id - 1))
		next = uint32(id)
	} else {
		var id ebpf.ProgramID
		id, err = ebpf.ProgramGetNextID(ebpf.ProgramID(o.id - 1))
		next = uint32(id)
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && next == o.id, err
}

// without are those of all that are not among others.
func without(all, others []object) (rest []object) {
	known := map[object]bool{}
	for _, o := range others {
		known[o] = true
	}
	for _, o := range all {
		if !known[o] {
			rest = append(rest, o)
		}
	}
	return rest
}

// awaitGone waits until the kernel has none of these any more. The daemon maps the pages of an ikernel's variables (.bss, .rodata), and its garbage collector
// unmaps them, within two minutes.
func awaitGone(t *testing.T, all []object) {
	t.Helper()
	for _, o := range all {
		if strings.HasPrefix(o.name, ".") {
			continue
		}
		poll(t, fmt.Sprintf("%v goes", o), func() error {
			there, err := o.exists()
			if there {
				return errors.New("it is there")
			}
			return err
		})
	}
}
