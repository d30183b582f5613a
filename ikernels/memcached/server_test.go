package memcached

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A puppet is a server that reads and answers when it is told to, and the client that speaks to it.
type puppet struct {
	t      *testing.T
	o      *observed
	client net.Conn
	server *net.TCPConn
}

func newPuppets(t *testing.T) func() *puppet {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	o, err := new(Observer).observe(port, testGuards)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return func() *puppet {
		client := dial(t, port)
		server, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		return &puppet{t: t, o: o, client: client, server: server}
	}
}

// ask has the client send, and the server read all of it into a buffer with room for more.
func (p *puppet) ask(request string) {
	p.t.Helper()
	if _, err := io.WriteString(p.client, request); err != nil {
		p.t.Fatal(err)
	}
	p.read(len(request), len(request)+1)
}

// read has the server read so many bytes with calls of this buffer size.
func (p *puppet) read(n, size int) {
	p.t.Helper()
	b := make([]byte, size)
	for n > 0 {
		got, err := p.server.Read(b)
		if err != nil {
			p.t.Fatal(err)
		}
		n -= got
	}
}

func (p *puppet) answer(response string) {
	p.t.Helper()
	if _, err := io.WriteString(p.server, response); err != nil {
		p.t.Fatal(err)
	}
}

// readOn has the server find nothing more to read.
func (p *puppet) readOn() {
	p.t.Helper()
	_ = p.server.SetReadDeadline(time.Now().Add(-time.Second)) // Read would not try
	readOn(p.t, p.server)
	_ = p.server.SetReadDeadline(time.Time{})
}

// readOn reads once more from a socket, on this thread. There must be nothing.
func readOn(t *testing.T, from syscall.Conn) {
	t.Helper()
	raw, err := from.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if _, _, err := unix.Recvfrom(int(fd), make([]byte, 10), unix.MSG_DONTWAIT); err != unix.EAGAIN {
			t.Errorf("there was something to read: %v", err)
		}
	})
}

// pending checks how many writes of a key are pending, or with "" of all keys.
func (p *puppet) pending(key string, want uint64) {
	p.t.Helper()
	index := allKeys
	if key != "" {
		index = p.o.guardOf(p.o.hash([]byte(key)))
	}
	word, _ := p.o.guard(index)
	if got := word % uint64(ObserveMcGuardLimitMC_GUARD_PENDING); got != want {
		p.t.Fatalf("%d writes of %q are pending, want %d", got, key, want)
	}
}

// TestPending follows writes from the server's read to the moment at which they have been executed.
func TestPending(t *testing.T) {
	puppets := newPuppets(t)
	for name, play := range map[string]func(p *puppet){
		"until answered": func(p *puppet) {
			p.ask("set a 0 0 1\r\nx\r\n")
			p.pending("a", 1)
			p.answer("STORED\r\n")
			p.pending("a", 0)
		},
		"answers come in order": func(p *puppet) {
			p.ask("get b\r\nset a 0 0 1\r\nx\r\ndelete c\r\n")
			p.answer("VALUE b 0 8\r\nSTORED\r\n\r\nEND\r\n")
			p.pending("a", 1)
			p.answer("STO")
			p.pending("a", 1)
			p.answer("RED\r\n")
			p.pending("a", 0)
			p.pending("c", 1)
			p.answer("DELETED\r\n")
			p.pending("c", 0)
		},
		"without a reply until the next read": func(p *puppet) {
			p.ask("set a 0 0 1 noreply\r\nx\r\n")
			p.pending("a", 1)
			p.readOn()
			p.pending("a", 0)
		},
		"an error may be of a command without a reply": func(p *puppet) {
			p.ask("set a 0 0 1 noreply\r\nx\r\ndelete b\r\n")
			p.answer("SERVER_ERROR out of memory storing object\r\n")
			p.pending("b", 1)
			p.readOn()
			p.pending("b", 0)
		},
		"a value in pieces": func(p *puppet) {
			p.ask("delete b noreply\r\nset a 0 0 4\r\nxx")
			p.ask("xx\r")
			p.pending("a", 1)
			p.pending("b", 0)
			p.ask("\n")
			p.readOn()
			p.pending("a", 0)
		},
		"several connections": func(p *puppet) {
			other := puppets()
			p.ask("delete a\r\n")
			other.ask("delete a\r\n")
			p.pending("a", 2)
			p.answer("DELETED\r\n")
			p.pending("a", 1)
			other.answer("NOT_FOUND\r\n")
			p.pending("a", 0)
		},
		"a full buffer is read again at once": func(p *puppet) {
			request := "delete a noreply\r\n"
			_, _ = io.WriteString(p.client, request)
			p.read(len(request), len(request))
			p.pending("a", 1)
			p.ask("version\r\n")
			p.pending("a", 1)
			p.readOn()
			p.pending("a", 0)
		},
		"until the end": func(p *puppet) {
			p.ask("set a 0 0 100\r\nx")
			p.pending("a", 1)
			_ = p.client.Close()
			_ = p.server.Close()
			p.o.settled(p.t, func() {}, "a")
		},
		"more than are remembered": func(p *puppet) {
			p.ask(strings.Repeat("delete a noreply\r\n", int(ObserveMcConnectionLimitMC_OUTSTANDING)) + "delete b noreply\r\n")
			p.pending("a", uint64(ObserveMcConnectionLimitMC_OUTSTANDING))
			p.pending("b", 0)
			p.pending("", 1)
			p.readOn()
			p.pending("a", 0)
			p.pending("", 0)
		},
		"binary": func(p *puppet) {
			header := "\x80\x14\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01abcd\x00\x00\x00\x00\x00\x00\x00\x00" // deleteq, delete
			p.ask(header + "a" + strings.Replace(header, "\x14", "\x04", 1) + "b")
			p.pending("a", 1)
			answer := "\x81\x14\x00\x00\x00\x00\x00\x01\x00\x00\x00\x05abcd\x00\x00\x00\x00\x00\x00\x00\x00error"
			p.answer(answer)
			p.pending("b", 1)
			p.answer(strings.Replace(answer, "\x14", "\x04", 1))
			p.pending("a", 0)
			p.pending("b", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := puppets()
			p.t = t
			before, _ := p.o.Counts()
			play(p)
			if after, err := p.o.Counts(); err != nil || after.Losses() != before.Losses() {
				t.Errorf("a connection was lost: %v, was %v (%v)", after, before, err)
			}
		})
	}
}

// TestSystemCalls reads and answers by other system calls than read and write.
func TestSystemCalls(t *testing.T) {
	const request, answer = "set a 0 0 4\r\nxxxx\r\n", "STORED\r\n"
	first, rest := make([]byte, 5), make([]byte, 50)
	for name, c := range map[string]struct {
		read, send func(fd int) error
		why        string // of the loss, if the connection is lost
		pending    uint64 // then: writes of all keys
	}{
		"recvfrom and sendto": {
			read: func(fd int) error { _, _, err := unix.Recvfrom(fd, rest, 0); return err },
			send: func(fd int) error { return unix.Sendto(fd, []byte(answer), 0, nil) },
		},
		"readv and writev": {
			read: func(fd int) error { _, err := unix.Readv(fd, [][]byte{first, rest}); return err },
			send: func(fd int) error {
				_, err := unix.Writev(fd, [][]byte{[]byte(answer[:3]), []byte(answer[3:])})
				return err
			},
		},
		"recvmsg and sendmsg": {
			read: func(fd int) error {
				_, _, _, _, err := unix.RecvmsgBuffers(fd, [][]byte{first, rest}, nil, 0)
				return err
			},
			send: func(fd int) error {
				_, err := unix.SendmsgBuffers(fd, [][]byte{nil, []byte(answer[:1]), []byte(answer[1:])}, nil, nil, 0)
				return err
			},
		},
		"a look without reading": {
			read: func(fd int) error {
				_, _, err := unix.Recvfrom(fd, rest, unix.MSG_PEEK)
				if err == nil {
					_, err = unix.Read(fd, rest)
				}
				return err
			},
			send: func(fd int) error { _, err := unix.Write(fd, []byte(answer)); return err },
		},
		"bytes that are thrown away": {
			read: func(fd int) error { _, _, err := unix.Recvfrom(fd, rest, unix.MSG_TRUNC); return err },
			why:  "bytes", pending: 1,
		},
		"splice": {
			read: func(fd int) error {
				var pipe [2]int
				err := unix.Pipe(pipe[:])
				if err == nil {
					_, err = unix.Splice(fd, nil, pipe[1], nil, 100, unix.SPLICE_F_NONBLOCK)
					_, _ = unix.Close(pipe[0]), unix.Close(pipe[1])
				}
				if err == nil {
					_, _, err = unix.Recvfrom(fd, rest, unix.MSG_DONTWAIT) // splice passes the observer by
				}
				if err == unix.EAGAIN {
					err = nil
				}
				return err
			},
			why: "passed", // and the server has read on
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPuppets(t)()
			before, _ := p.o.Counts()
			raw, err := p.server.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			do := func(call func(int) error) {
				t.Helper()
				if err := raw.Control(func(fd uintptr) { err = call(int(fd)) }); err != nil {
					t.Fatal(err)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.WriteString(p.client, request); err != nil {
				t.Fatal(err)
			}
			do(c.read)
			after, _ := p.o.Counts()
			if c.why != "" {
				if after.Lost[c.why] != before.Lost[c.why]+1 {
					t.Errorf("the connection was not lost: %v, was %v", after, before)
				}
				p.pending("", c.pending)
				return
			}
			p.pending("a", 1)
			do(c.send)
			p.pending("a", 0)
			if after.Changes != before.Changes+1 || after.Losses() != before.Losses() {
				t.Errorf("saw %v, before %v: want one more change", after, before)
			}
		})
	}
}

// TestLost follows a connection whose commands' boundaries are unknown, until they are known again.
func TestLost(t *testing.T) {
	puppets := newPuppets(t)
	p := puppets()
	p.ask("what is this\r\n")
	p.pending("", 1)
	p.answer("ERROR\r\n")
	p.pending("", 1) // until the server reads on
	// What looks like commands, but is not answered as such, shows nothing, and ends what was shown before.
	p.ask("get b\r\n")
	p.answer("END\r\n")
	p.ask("set a 0 0 1\r\nx\r\n")
	for range ObserveMcConnectionLimitMC_FOUND {
		p.pending("", 1)
		p.ask("get b\r\n")
		p.answer("END\r\n")
	}
	p.pending("", 0)
	p.ask("delete a\r\n")
	p.pending("a", 1)
	p.pending("", 0)
	if c, err := p.o.Counts(); err != nil || c.Found != 1 || c.Lost["command"] != 1 {
		t.Errorf("%+v, %v: want one connection lost, and found again", c, err)
	}
}

// TestJoined observes connections that exist already.
func TestJoined(t *testing.T) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	p := &puppet{t: t, client: dial(t, port)}
	if p.server, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	defer p.server.Close()
	p.ask("set a 0 0 20\r\n")
	if p.o, err = new(Observer).observe(port, testGuards); err != nil {
		t.Fatal(err)
	}
	defer p.o.Close()
	p.ask("delete b\r\ndelete b\r\n")
	p.pending("", 1)
	p.pending("b", 0)
	p.ask("\r\n")
	p.answer("STORED\r\n")
	p.pending("", 1)
	for range ObserveMcConnectionLimitMC_FOUND {
		p.ask("get b\r\n")
		p.answer("END\r\n")
	}
	p.pending("", 0)
}

// TestStuck has a thread of a server end before it has executed what it read by UDP. Nobody can tell whether it was executed, so the guard stays closed.
func TestStuck(t *testing.T) {
	l, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o, err := new(Observer).observe(l.LocalAddr().(*net.UDPAddr).AddrPort().Port(), testGuards)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	client, err := net.Dial("udp4", l.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, c := range []struct {
		request  string
		executes bool
		want     error
	}{{"get a\r\n", false, nil}, {"nonsense\r\n", true, nil}, {"flush_all\r\n", true, nil}, {"flush_all\r\n", false, errStuck}} {
		if _, err := client.Write(append(frame(1), c.request...)); err != nil {
			t.Fatal(err)
		}
		var server sync.WaitGroup
		server.Go(func() {
			runtime.LockOSThread() // and the thread ends with this
			if _, err := l.Read(make([]byte, 100)); err != nil {
				t.Error(err)
			}
			if c.executes {
				readOn(t, l)
			}
		})
		server.Wait()
		if err := o.tidy(); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.request, err, c.want)
		}
		if _, free := o.guard(allKeys); free != (c.want == nil) {
			t.Errorf("%q: the guard of all keys is free: %t", c.request, free)
		}
	}
}
