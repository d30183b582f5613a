package ikernels

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/isolated"
)

// TestRings has an application in each language fill a ring and empty it, and write notes of which messages are to come by which rings.
func TestRings(t *testing.T) {
	const each = 160 // bytes that a message takes
	posted := (os.Getpagesize() - 1) / each
	want := fmt.Sprintf(`0 rings: ask for 1 to 128
rings of 5000 bytes: ask for a power of two from %d to 67108864
the ikernel's rings are open already
posted %d, refused %d
polled %[2]d
no more
the ikernel's notes are open already
delivered 5000
20 keys by their rings
`, os.Getpagesize(), posted, 30-posted)
	expectOutput(t, "use", want)
}

// expectOutput has an application in each language do something, and compares what it says.
func expectOutput(t *testing.T, do, want string) {
	t.Helper()
	expectOutputOf(t, "rings", want, do)
}

// expectOutputOf has a program of each language do something, and compares what it says.
func expectOutputOf(t *testing.T, program, want string, do ...string) {
	t.Helper()
	for name, args := range programs(program) {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			cmd := s.command(nil, slices.Concat(args, []string{s.path}, do)...)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			s.in(cmd.Start)
			if err := cmd.Wait(); err != nil || out.String() != want || stderr.Len() > 0 {
				t.Errorf("%v\n%s\ngot\n%s\nwant\n%s", err, &stderr, &out, want)
			}
		})
	}
}

// TestRingsEcho has an application in each language send back what comes by a ring, while it waits for each message or polls. Messages come whole and in order,
// one by one and in bursts, and each wakes an application that waits.
func TestRingsEcho(t *testing.T) {
	for name, args := range programs("rings") {
		for _, how := range []string{"wait", "poll"} {
			for ahead, messages := range map[int]int{1: 500, 50: 5000} {
				t.Run(fmt.Sprintf("%s %s %d ahead", name, how, ahead), func(t *testing.T) {
					s := newSite(t)
					cmd := s.command(nil, append(args, s.path, "echo", fmt.Sprint(messages), how)...)
					out, err := cmd.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					s.in(cmd.Start)
					lines := bufio.NewScanner(out)
					lines.Scan()
					s.exchange(lines.Text(), messages, ahead)
					if !lines.Scan() || lines.Text() != "done" {
						t.Errorf("the application says %q", lines.Text())
					}
					if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
						t.Errorf("%v\n%s", err, &stderr)
					}
				})
			}
		}
	}
}

// exchange sends messages to an application's port, and has each come back, some ahead of that.
func (s *site) exchange(port string, messages, ahead int) {
	s.t.Helper()
	var conn net.Conn
	s.in(func() (err error) {
		conn, err = net.Dial("udp", "127.0.0.1:"+port)
		return err
	})
	defer conn.Close()
	message := func(i int) []byte {
		m := binary.NativeEndian.AppendUint64(nil, uint64(i))
		return append(m, bytes.Repeat([]byte{byte(i)}, i%1000)...)
	}
	may, stop := make(chan bool, ahead), make(chan bool)
	defer close(stop)
	go func() {
		isolated.Pin(s.t, 0) // one CPU has all messages in order
		for i := range messages {
			select {
			case may <- true:
				_, _ = conn.Write(message(i))
			case <-stop:
				return
			}
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	seen := make([]bool, messages)
	b := make([]byte, 2000)
	for range messages {
		n, err := conn.Read(b)
		if err != nil {
			s.t.Fatal(err)
		}
		i := int(binary.NativeEndian.Uint64(b))
		if i >= messages || seen[i] || !bytes.Equal(b[:n], message(i)) {
			s.t.Fatalf("message %d came back wrong or twice: % x", i, b[:n])
		}
		seen[i] = true
		<-may
	}
}
