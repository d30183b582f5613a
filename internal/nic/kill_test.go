package nic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// A life is what the child process does until it is killed.
type life struct {
	Instance, RunDir string
	Step             int // the one to die at, from 1; 0 for none
	Deployments      []backend.Deployment
}

const lifeVariable = "LAMBDANIC_TEST_LIFE"

func TestMain(m *testing.M) {
	if path := os.Getenv(lifeVariable); path != "" {
		if err := live(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// live makes every kind of change, and prints what serves at each time.
func live(path string) error {
	var l life
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		return err
	}
	c := Config{Instance: l.Instance, RunDir: l.RunDir, UnknownError: true, Slots: 64, Addresses: packetAddresses}
	c.failpoint = func(step string) {
		fmt.Println("step:", step)
		if l.Step--; l.Step == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	ctx := context.Background()
	n, err := Up(ctx, c)
	if err != nil {
		return err
	}
	workloads := map[uint32]bool{}
	for _, d := range l.Deployments {
		if err := n.Deploy(ctx, d); err != nil {
			return err
		}
		fmt.Println("serving")
		if err := useOnce(n, d.Workload); err != nil {
			return err
		}
		workloads[d.Workload] = true
		if err := settle(n, len(workloads)); err != nil {
			return err
		}
	}
	fmt.Println("removing")
	if err := n.Remove(ctx, l.Deployments[0].Workload); err != nil {
		return err
	}
	if err := settle(n, len(workloads)-1); err != nil {
		return err
	}
	if err := n.Close(); err != nil {
		return err
	}
	return Down(ctx, c)
}

// useOnce sends a lambda a request, which its namespace counts. Meanwhile nothing else is done, so that nothing dies.
func useOnce(n *NIC, workload uint32) error {
	n.changing.Lock()
	defer n.changing.Unlock()
	h, _, ok, err := n.Ask(api.Header{Workload: workload, Method: methodCount, Request: requests.Add(1)}, make([]byte, 8), nil)
	if err != nil || !ok || h.Type != api.TypeResponse {
		return fmt.Errorf("ask workload %#x: %+v, %t, %w", workload, h, ok, err)
	}
	fmt.Println("used")
	return nil
}

// settle waits until superseded revisions are freed, so that each life takes the same steps in the same order.
func settle(n *NIC, serving int) error {
	for stop := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		n.changing.Lock()
		slots := len(n.loaded)
		n.changing.Unlock()
		if slots == serving {
			return nil
		}
		if time.Now().After(stop) {
			return fmt.Errorf("%d slots are taken, and %d revisions serve", slots, serving)
		}
	}
}

// briefSpec has messages forgotten soon, so that revisions drain soon.
const briefSpec = "message: {mode: assemble, max: 64KiB, in_flight: 8, timeout: 100ms}"

// A daemon that is killed at any step leaves a NIC that serves as before. The next daemon adopts it or makes it anew without help, and
// nothing leaks.
func TestKilledAtEachStep(t *testing.T) {
	deployments := []backend.Deployment{
		of(killedNamespace, version(t, workloads["assemble"], 1, briefSpec)), of(killedNamespace, version(t, workloads["assemble"], 2, briefSpec)),
		of(killedNamespace, version(t, workloads["packet"], 1, packetSpec)),
	}
	c := testConfig(t)
	whole := runLife(t, c, 0, deployments)
	checkGone(t, c)
	steps := strings.Count(whole, "step: ")
	if steps < 15 {
		t.Errorf("only %d steps: the test has lost its edge", steps)
	}
	for step := 1; step <= steps; step++ {
		t.Run(strconv.Itoa(step), func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			out := runLife(t, c, step, deployments)
			t.Log(out[strings.LastIndex(out, "step: "):])
			used := strings.Count(out, "used")
			if strings.Contains(out, "serving") && !strings.Contains(out, "removing") {
				stillServes(t, c)
				used++
			}
			takeOver(t, c, uint64(used))
		})
	}
}

// runLife runs a child that dies at the given step, or never at 0, and gives what it said.
func runLife(t *testing.T, c Config, step int, deployments []backend.Deployment) string {
	t.Helper()
	b, err := json.Marshal(life{Instance: c.Instance, RunDir: c.RunDir, Step: step, Deployments: deployments})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "life.json")
	write(t, path, string(b))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeVariable+"="+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if killed != (step > 0) || !killed && err != nil {
		t.Fatalf("child: %v\n%s%s", err, out, &stderr)
	}
	return string(out)
}

// stillServes sends a request over the wire to the NIC while no daemon runs.
func stillServes(t *testing.T, c Config) {
	t.Helper()
	rec, err := readRecord(c.recordPath())
	if err != nil || rec == nil {
		t.Fatalf("no record of a NIC that serves: %v", err)
	}
	conn, err := net.Dial("udp", net.JoinHostPort(rec.Addr.String(), fmt.Sprint(api.RPCPort)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := packets.RPC{Workload: "assemble", Method: methodCount, Request: requests.Add(1), Payload: "........"}
	if _, err := conn.Write(r.Build(workloads)); err != nil {
		t.Fatal(err)
	}
	if h, _, err := api.ParsePacket(receive(t, conn)); err != nil || h.Type != api.TypeResponse || h.Revision < 1 || h.Revision > 2 {
		t.Errorf("got %+v, %v", h, err)
	}
}

// killedNamespace is that of the lambdas of a life.
const killedNamespace = 7

// takeOver is what the next daemon does. It finds how often the lambdas were used, unless the NIC has to be made anew.
func takeOver(t *testing.T, c Config, uses uint64) {
	t.Helper()
	n := open(t, c)
	if !n.Adopted() {
		uses = 0
	}
	counted := func() {
		t.Helper()
		if got := accounted(t, n, killedNamespace).Requests; got != uses {
			t.Errorf("the namespace counted %d requests, want %d", got, uses)
		}
	}
	counted()
	defer shut(t, n)
	defer counted()
	deploy(t, n, version(t, workloads["assemble"], 8, briefSpec), version(t, workloads["packet"], 9, packetSpec))
	wantRevision(t, n, workloads["assemble"], 8)
	wantRevision(t, n, workloads["packet"], 9)
	eventually(t, "only what serves is left", func() bool { return usage(n) == used{slots: 2, buckets: 2} })
	for _, dir := range []string{"slots", "kept"} {
		if pins, err := os.ReadDir(filepath.Join(c.pins(), dir)); err != nil || len(pins) != 2 {
			t.Errorf("pins in %s: %v %v", dir, pins, err)
		}
	}
}
