// Package fuzz runs what go test's own fuzzing cannot: libFuzzer on the NIC program built as ordinary C, and mutated frames on
// the wire of a live NIC. Each tries a fixed number of inputs, or goes on for as long as -time says.
package fuzz

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

var duration = flag.Duration("time", 0, "how long each fuzzer runs; 0 is for a fixed number of inputs")

// turns counts the inputs of a fuzzer up to n, or goes on until -time has passed.
func turns(n int) iter.Seq[int] {
	end := time.Now().Add(*duration)
	return func(yield func(int) bool) {
		for i := 0; *duration == 0 && i < n || time.Now().Before(end); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// The committed corpus, and new inputs made of it. A crash leaves its input here as crash-*.
func TestProgram(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "nic_fuzz")
	build := exec.Command("clang-19", "-std=gnu17", "-g", "-O1", "-fsanitize=fuzzer,address,undefined",
		"-fno-sanitize=alignment", // the NIC program reads packets as BPF may, unaligned
		"-fno-sanitize-recover=undefined", "-Wall", "-Werror", "-Wno-address-of-packed-member", "-Wno-unused-function",
		"-Ishim", "-I../../bpf", "-o", binary, "nic_fuzz.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the fuzzer: %v\n%s", err, out)
	}
	limit := "-runs=100000"
	if *duration > 0 {
		limit = fmt.Sprintf("-max_total_time=%d", max(1, int(duration.Seconds())))
	}
	out, err := exec.Command("setarch", "--addr-no-randomize", binary, limit, // its inputs depend on memory addresses
		"-reload=0", "-max_len=600", "-print_final_stats=1",
		fmt.Sprintf("-seed=%d", 1+seed.Rand(t).Uint32N(1<<31-1)), t.TempDir(), "corpus").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, tail(out, 6000))
	}
	t.Logf("%s", tail(out, 300))
	var ran, inTunnels int
	at := bytes.LastIndex(out, []byte("lambdas ran"))
	if _, err := fmt.Sscanf(string(out[max(0, at):]), "lambdas ran %d times, %d of them in tunnels", &ran, &inTunnels); err != nil || ran < leastRuns || inTunnels < leastRuns/100 {
		t.Errorf("lambdas ran %d times, %d of them in tunnels, %v: the inputs do not reach them", ran, inTunnels, err)
	}
}

// leastRuns is how often lambdas run at least, with the committed corpus and the inputs made of it.
const leastRuns = 10000

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// Mutated frames by the thousand come in on the wire of a live NIC, from a raw socket, and mutated replies from a service that a
// lambda calls. Beside them ordinary sockets send valid requests, in one packet and in several, to each kind of lambda; each
// of these gets its right answer.
func TestWire(t *testing.T) {
	n := bringUp(t)
	service := listen(t, n)
	deploy(t, n, "web_server", workloads["web"])
	deploy(t, n, "image_transformer", workloads["image"])
	deploy(t, n, "kv_client", workloads["kv"], backend.Service{
		Name: "memcached", Protocol: "memcached", Servers: []netip.AddrPort{service.addr()}, Timeout: api.Duration(2 * time.Minute), // longer than a request waits: that a reply was ignored shows
	})
	deployAssemble(t, n)
	r := seed.Rand(t)
	var group sync.WaitGroup
	group.Go(func() { spray(t, n, r) })
	for _, asker := range []struct {
		name  string
		turns int
		ask   func(*testing.T, *net.UDPConn, int)
	}{
		{"packets", 20_000, askPackets}, {"messages", 200, askMessage}, {"calls", 2000, askService},
		{"calls with mutated replies", 2000, service.askMutated},
	} {
		group.Go(func() {
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(n.Addr()))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			tried := 0
			for i := range turns(asker.turns) {
				if asker.ask(t, conn, i); t.Failed() {
					break
				}
				tried++
			}
			t.Logf("%s: %d right", asker.name, tried)
		})
	}
	group.Wait()
}

func askPackets(t *testing.T, conn *net.UDPConn, _ int) {
	ask(t, conn, packets.RPC{Workload: "web", Payload: "/hello", Room: 64}, "Hello from the NIC.\n")
	ask(t, conn, packets.RPC{Workload: "image", Payload: "\xff\x00\x00\xff\x0a\x14\x1e\x00"}, "\x4d\x12")
}

var workloads = map[string]uint32{"web": 1, "image": 2, "assemble": 3, "kv": 4, "packet": 1, "stream": 2}

func bringUp(t *testing.T) *nic.NIC {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	c := nic.Config{Instance: fmt.Sprintf("f%d", os.Getpid()), RunDir: t.TempDir(), UnknownError: true}
	t.Cleanup(func() {
		if err := nic.Down(context.WithoutCancel(t.Context()), c); err != nil {
			t.Error(err)
		}
	})
	n, err := nic.Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// deploy puts a bundled lambda on the NIC.
func deploy(t *testing.T, n *nic.NIC, name string, workload uint32, services ...backend.Service) {
	t.Helper()
	build(t, n, filepath.Join("../../lambdas", name), workload, services...)
}

func build(t *testing.T, n *nic.NIC, dir string, workload uint32, services ...backend.Service) {
	t.Helper()
	a, err := compiler.Build(t.Context(), dir, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := backend.Deployment{
		Name: a.Manifest.Spec.Name, Workload: workload, Revision: 1, Spec: a.Manifest.Spec, Services: services, BPF: a.BPF,
	}
	if err := n.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

var requests atomic.Uint64

// ask makes one request and checks the answer.
func ask(t *testing.T, conn *net.UDPConn, r packets.RPC, want string) {
	if h, p, ok := exchange(t, conn, r); ok && (h.Type != api.TypeResponse || string(p) != want) {
		t.Errorf("asked %q, got %+v %q", r.Payload, h, p)
	}
}

// exchange gives the answer to a request. A datagram may be lost where the ring is full, so it is asked again.
func exchange(t *testing.T, conn *net.UDPConn, r packets.RPC) (h api.Header, p []byte, ok bool) {
	r.Request = 1<<62 | requests.Add(1)
	b := r.Build(workloads)
	buf := make([]byte, 2048)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if _, err := conn.Write(b); err != nil {
			t.Error(err)
			return h, nil, false
		}
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for {
			size, err := conn.Read(buf)
			if err != nil {
				break // time to ask again
			}
			h, p, err = api.ParsePacket(buf[:size])
			if err != nil {
				t.Errorf("asked %q: %v", r.Payload, err)
			}
			if err == nil && h.Request != r.Request {
				continue // to an earlier asking
			}
			return h, p, err == nil
		}
	}
	t.Errorf("no answer to %q", r.Payload)
	return h, nil, false
}

// spray sends mutated frames from the host's end of the link.
func spray(t *testing.T, n *nic.NIC, r *rand.Rand) {
	fd, to, err := rawSocket(n.HostEnd())
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = unix.Close(fd) }()
	var cases []packets.Case
	for _, name := range []string{"requests.yml", "foreign.yml"} {
		list, err := packets.Load(name)
		if err != nil {
			t.Error(err)
			return
		}
		cases = append(cases, list...)
	}
	cases = append(cases, messageCases()...)
	sent := 0
	for range turns(100_000) {
		frame, err := cases[r.IntN(len(cases))].Frame.Build(workloads)
		if err != nil {
			t.Error(err)
			return
		}
		frame = packets.Mutate(r, frame)
		// Too long for the link, or no buffer for it: what matters is what arrives.
		if err := unix.Sendto(fd, frame[:min(len(frame), 1514)], 0, to); err == nil {
			sent++
		}
		if t.Failed() {
			break
		}
	}
	if t.Logf("%d mutated frames", sent); sent == 0 {
		t.Error("no frame was sent")
	}
}

// rawSocket gives a socket that sends whole frames through an interface.
func rawSocket(name string) (int, *unix.SockaddrLinklayer, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return 0, nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	return fd, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index}, err
}
