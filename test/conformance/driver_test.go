// Package conformance drives the clients of all languages through the same cases. Each has a small program, its driver, which takes
// commands and gives answers, a line of JSON each.
package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/golden"
)

// A client is the client of one language, with its driver's command line once it is built.
type client struct {
	name    string
	command func() ([]string, error)
}

var clients = []client{
	{"go", sync.OnceValues(func() ([]string, error) {
		return program("go", run("go", "build", "-trimpath", "-o", filepath.Join(built, "go"), "../../client/go/conformance"))
	})},
	{"c", sync.OnceValues(func() ([]string, error) { // under AddressSanitizer and UndefinedBehaviorSanitizer
		return program("conformance", run("make", "-C", "../../client/c", "OUT="+built, "conformance"))
	})},
	{"python", python()},
	{"python asyncio", python("asyncio")},
	{"node", sync.OnceValues(func() ([]string, error) {
		return []string{"node", "../../client/node/dist/conformance/driver.js"}, run("make", "-C", "../../client/node")
	})},
}

func python(args ...string) func() ([]string, error) {
	return func() ([]string, error) {
		return append([]string{"python3", "-W", "error", "../../client/python/conformance/driver.py"}, args...), nil
	}
}

func program(name string, err error) ([]string, error) {
	return []string{filepath.Join(built, name)}, err
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

var built string // what the tests build lies here

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lambdanic-conformance-")
	if err != nil {
		panic(err)
	}
	built = dir
	status := m.Run()
	for _, d := range running {
		if err := d.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "driver:", err) // a sanitizer found a leak, for instance
			status = 1
		}
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// each runs a case for every client.
func each(t *testing.T, f func(t *testing.T, d *driver)) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			d := running[c.name]
			if d == nil {
				d = start(t, c)
				running[c.name] = d
			}
			d.t = t
			hangs := time.AfterFunc(3*time.Minute, func() { _ = d.cmd.Process.Kill() })
			defer hangs.Stop()
			defer func() {
				if t.Failed() { // the next case has another
					_ = d.cmd.Process.Kill()
					_ = d.stop()
					delete(running, c.name)
				}
			}()
			f(t, d)
		})
	}
}

// A driver is a client's program, which runs.
type driver struct {
	t   *testing.T // the case that it is at
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// running are the drivers; cases use them one after the other.
var running = map[string]*driver{}

func start(t *testing.T, c client) *driver {
	t.Helper()
	command, err := c.command()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../../client/python/src", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &driver{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

// stop ends the driver by ending its input.
func (d *driver) stop() error {
	d.in.Close()
	return d.cmd.Wait()
}

// do gives a command and reads the answer.
func (d *driver) do(command, answer any) {
	d.t.Helper()
	line, err := json.Marshal(command)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	line, err = d.out.ReadBytes('\n')
	if err != nil {
		d.t.Fatalf("driver says nothing: %v", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		d.t.Fatalf("driver says %.200q: %v", line, err)
	}
}

// settings are a client's settings: either Address or Gateway is set.
type settings struct {
	Do            string `json:"do"`
	Address       string `json:"address,omitempty"`
	Gateway       string `json:"gateway,omitempty"`
	Credentials   string `json:"credentials,omitempty"`
	Namespace     string `json:"namespace,omitempty"`
	TimeoutMS     int    `json:"timeout_ms"`
	ReplyRoom     int    `json:"reply_room"`
	MaxReply      int    `json:"max_reply"`
	WithoutResend bool   `json:"without_resend,omitempty"`
	Key           string `json:"key,omitempty"`
	TagHeaderOnly bool   `json:"tag_header_only,omitempty"`
}

// open connects the driver's client.
func (d *driver) open(s settings) {
	d.t.Helper()
	s.Do = "open"
	if s.TimeoutMS == 0 {
		s.TimeoutMS = 60_000 // the machine may be busy
	}
	if s.ReplyRoom == 0 {
		s.ReplyRoom = 512
	}
	if s.MaxReply == 0 {
		s.MaxReply = int(api.MaxMessage)
	}
	var done struct{}
	d.do(s, &done)
}

func (d *driver) close() {
	d.t.Helper()
	var done struct{}
	d.do(map[string]string{"do": "close"}, &done)
}

type call struct {
	Name       string          `json:"name,omitempty"`
	Workload   uint32          `json:"workload"`
	Method     uint32          `json:"method,omitempty"`
	Body       golden.HexBytes `json:"body"`
	DeadlineUS int64           `json:"deadline_us,omitempty"`
	ReplyRoom  int             `json:"reply_room,omitempty"`
	Once       bool            `json:"once,omitempty"`
}

type outcome struct {
	Error    string          `json:"error"` // docs/protocol.md's name for it, or the client's own
	Need     int             `json:"need"`
	Text     string          `json:"text"` // the client's text of an error
	Status   api.Status      `json:"status"`
	Revision uint32          `json:"revision"`
	Body     golden.HexBytes `json:"body"`
	Resends  int             `json:"resends"`
}

func (d *driver) call(atOnce bool, calls ...call) []outcome {
	d.t.Helper()
	var answer struct {
		Outcomes []outcome `json:"outcomes"`
	}
	d.do(map[string]any{"do": "call", "calls": calls, "at_once": atOnce}, &answer)
	if len(answer.Outcomes) != len(calls) {
		d.t.Fatalf("%d outcomes of %d calls", len(answer.Outcomes), len(calls))
	}
	return answer.Outcomes
}

type stats struct {
	Calls, Restarts, Sent, Resent, Received, Duplicates, Stray, Malformed uint64
}

func (d *driver) stats() (s stats) {
	d.t.Helper()
	d.do(map[string]string{"do": "stats"}, &s)
	return s
}
