package nic

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// sent is how long the links took for what a namespace was answered, if it is the only one.
func sent(t testing.TB, n *NIC, namespace uint32) (ns uint64) {
	t.Helper()
	var told limits.RawLnTurns
	var cpus []limits.Allowance
	if err := errors.Join(n.prog.LnTurnsTaken.Lookup(index(namespace), &told), n.prog.LnAllowances.Lookup(index(namespace), &cpus)); err != nil {
		t.Fatal(err)
	}
	ns = told.LinksNs
	for _, c := range cpus {
		ns += c.UnsentNs
	}
	return ns
}

// A namespace is charged for each byte of its answers, and not for what the host is answered, nor for what another one is.
func TestBandwidthIsCharged(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	shared(t, n, api.Budget{Bandwidth: 8e6}, map[uint32]uint64{tenant: 100}) // a byte takes 1000 ns
	want := uint64(0)
	for _, size := range []int{0, 1, 31, 500, 1400} {
		f := request(strings.Repeat("x", size))
		verdict, out := arrive(t, n, build(t, &f))
		if verdict != "reply" {
			t.Fatalf("a request of %d bytes: %s", size, verdict)
		}
		want += uint64(len(out)) * 1000
		if got := sent(t, n, tenant); got != want {
			t.Errorf("after an answer of %d bytes, %d ns are charged, want %d", len(out), got, want)
		}
	}
	call(t, n, request("of the host"))
	if got := sent(t, n, tenant); got != want {
		t.Errorf("the host's request is charged: %d ns", got-want)
	}
	if got := sent(t, n, tenant+1); got != 0 {
		t.Errorf("another namespace is charged %d ns", got)
	}
	shared(t, n, api.Budget{}, map[uint32]uint64{tenant: 100})
	f := request("when nothing is shared")
	if verdict, _ := arrive(t, n, build(t, &f)); verdict != "reply" || sent(t, n, tenant) != want {
		t.Errorf("%s, and then %d ns are charged, want %d", verdict, sent(t, n, tenant), want)
	}
}

// A call to a service is charged when it begins, each time that it is sent, and so is the longest answer that there can be. When the answer comes, it is not
// charged again.
func TestCallIsCharged(t *testing.T) {
	const room, datagram = 500, 8 + len("get key\r\n") // a frame header of memcached leads
	n := open(t, pacedConfig(t))
	fake := newFake(t, n.HostAddr())
	d := of(tenant, kvRevision(t, 1, fake.addr(), 100*time.Millisecond))
	d.Services[0].Retries = manyRetries
	deploy(t, n, d)
	shared(t, n, api.Budget{Bandwidth: 8e6}, map[uint32]uint64{tenant: 100}) // a byte takes 1000 ns
	c := dialNIC(t, n.Addr())
	c.send(methodGet, []byte("key"), room)
	fake.receive()
	fake.answer(fake.receive(), 0, 1, value("key", "short"))
	if h, body := c.receive(); h.Type != api.TypeResponse || string(body) != "key=short" {
		t.Fatalf("got %+v %q", h, body)
	}
	retries := counted(t, n, "retries")
	want := 1000 * (uint64(beforeRPC+api.RPCHeaderLen+room) + (1+retries)*uint64(beforeRPC+datagram))
	if got := sent(t, n, tenant); got != want || retries == 0 {
		t.Errorf("%d ns are charged for a call that was sent again %d times, want %d", got, retries, want)
	}
}

// At 100 Gbit/s, a byte takes less than a nanosecond. What is charged is the sum all the same.
func TestShortFramesAreCharged(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	shared(t, n, api.Budget{Bandwidth: 100e9}, map[uint32]uint64{tenant: 100})
	f := request("")
	bytes := answeredBytes(t, n, map[uint32][]byte{tenant: build(t, &f)}, 1000)[tenant]
	rests := 2 * float64(runtime.NumCPU()) // each CPU keeps less than a nanosecond
	if got, want := float64(sent(t, n, tenant)), bytes*8/100; bytes == 0 || math.Abs(got-want) > rests {
		t.Errorf("for %.0f bytes, %.0f ns are charged, want %.0f", bytes, got, want)
	}
}

// What was sent of the links' time decides whether a namespace is served, by how far it is ahead of the others.
func TestOverBandwidth(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	shared(t, n, api.Budget{Bandwidth: 1e9}, map[uint32]uint64{tenant: 100})
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	taken, long := uint64(now.Nano()), uint64(time.Hour)
	const all, step = 1 << 40, int64(limits.RawLnShareLN_LINKS_TURN_NS)
	for _, c := range []struct {
		what  string
		until uint64 // what the CPUs took
		turn  int64  // what this one has left of that
		ahead int64  // the namespace, of all
		want  string
		moved bool // all are set ahead
	}{
		{"time is left, and it has not had its share", taken - long, 0, 0, "", false},
		{"time is left, and it has had its share", taken - long, 0, 1, "", true},
		{"more was taken than is lent, and it has not had its share", taken + long, 0, 0, "busy", false},
		{"more was taken, but not all spent, and it has not had its share", taken + long, 1, 0, "", false},
		{"more was taken than is lent, and it has had its share", taken + long, 0, 1, "busy", false},
		{"more was taken, but not all spent, and it has had its share", taken + long, 1, 1, "busy", false},
		{"time is left, and it is ahead by more than can be", taken - long, 0, 1 << 60, "", true},
	} {
		if err := n.prog.LnLinksTaken.Put(uint32(0), limits.RawLnLinks{UntilNs: c.until, VirtualNs: all}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(
			n.prog.LnTurnsTaken.Put(index(tenant), limits.RawLnTurns{LinksNs: uint64(all + c.ahead)}),
			putOnCPUs(n.prog.LnAllowances, index(tenant), limits.Allowance{}),
			putOnCPUs(n.prog.LnCpus, 0, limits.CPU{LinksNs: c.turn}),
		); err != nil {
			t.Fatal(err)
		}
		before := accounted(t, n, tenant)
		f := request("a few bytes")
		verdict, out := arrive(t, n, build(t, &f))
		h, _, err := api.ParsePacket(out[beforeRPC:])
		if err != nil || verdict != "reply" {
			t.Fatalf("%s: %s, %v", c.what, verdict, err)
		}
		after, over := accounted(t, n, tenant), uint64(0)
		if c.want == "busy" {
			over = 1
			wantCode(t, c.what, h, api.CodeBusy)
		} else if h.Type != api.TypeResponse {
			t.Errorf("%s: got %+v, want an answer", c.what, h)
		}
		if after.OverBandwidth-before.OverBandwidth != over || after.OverShare != 0 || after.OverQuota != 0 {
			t.Errorf("%s: counted %+v after %+v", c.what, after, before)
		}
		var links limits.RawLnLinks
		if err := n.prog.LnLinksTaken.Lookup(uint32(0), &links); err != nil {
			t.Fatal(err)
		}
		if moved := int64(links.VirtualNs - all); (moved != 0) != c.moved || (c.moved && moved != min(c.ahead, int64(limits.RawLnShareLN_AHEAD_NS))+step) {
			t.Errorf("%s: all are set %d ns ahead", c.what, moved)
		}
		if c.until < taken && math.Abs(float64(links.UntilNs)-float64(taken)) > float64(time.Minute) {
			t.Errorf("%s: what nobody took for an hour is still there", c.what)
		}
	}
}

// After a pause, a namespace may send what the links send in some milliseconds, whatever its weight. What it did not send before is lost.
func TestUnsentIsLost(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	shared(t, n, api.Budget{Bandwidth: 1e9}, map[uint32]uint64{tenant: 1, tenant + 1: 99})
	const all, paused, pace = 1 << 50, 1 << 40, 100
	if err := errors.Join(
		n.prog.LnLinksTaken.Put(uint32(0), limits.RawLnLinks{VirtualNs: all}),
		n.prog.LnTurnsTaken.Put(index(tenant), limits.RawLnTurns{LinksNs: all - paused}),
	); err != nil {
		t.Fatal(err)
	}
	f := request("after a pause")
	if verdict, _ := arrive(t, n, build(t, &f)); verdict != "reply" {
		t.Fatal(verdict)
	}
	var told limits.RawLnTurns
	if err := n.prog.LnTurnsTaken.Lookup(index(tenant), &told); err != nil {
		t.Fatal(err)
	}
	if got, want := all-told.LinksNs, uint64(pace*limits.RawLnShareLN_BEHIND_NS); got != want {
		t.Errorf("it is %d ns behind, want %d", got, want)
	}
}

// With shares of both, what a namespace has left of one is of no use where it had its share of the other.
func TestTimeAndBandwidth(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	shared(t, n, api.Budget{Time: second, Bandwidth: 1e9}, map[uint32]uint64{tenant: 100})
	never := limits.RawLnLinks{UntilNs: math.MaxInt64}                              // the links are taken up to then
	spent := limits.CPU{LeftNs: -int64(time.Hour), FilledNs: uint64(math.MaxInt64)} // nor does it get more before then
	for _, c := range []struct {
		what  string
		cpu   limits.CPU
		links limits.RawLnLinks
		want  string
	}{
		{"both are left", limits.CPU{}, limits.RawLnLinks{}, "response"},
		{"time is left", limits.CPU{}, never, "bandwidth"},
		{"bandwidth is left", spent, limits.RawLnLinks{}, "share"},
	} {
		if err := errors.Join(putOnCPUs(n.prog.LnCpus, 0, c.cpu), n.prog.LnLinksTaken.Put(uint32(0), c.links)); err != nil {
			t.Fatal(err)
		}
		before, got := accounted(t, n, tenant), "response"
		f := request(c.what)
		arrive(t, n, build(t, &f))
		switch after := accounted(t, n, tenant); {
		case after.OverShare > before.OverShare:
			got = "share"
		case after.OverBandwidth > before.OverBandwidth:
			got = "bandwidth"
		case after.Requests == before.Requests:
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Three namespaces whose answers are of different lengths get their shares of what the NIC sends. They share so much less than this machine can answer
// that each asks for at least three times its share.
func TestBandwidthShares(t *testing.T) {
	n := newTestNIC(t)
	weights := map[uint32]uint64{3: 40, 4: 40, 5: 20}
	sizes := map[uint32]int{3: 700, 4: 300, 5: 500}
	frames := map[uint32][]byte{}
	for namespace, mode := range map[uint32]string{3: "packet", 4: "stream", 5: "assemble"} {
		deploy(t, n, of(namespace, version(t, workloads[mode], 1, assembleSpec)))
		f := request(strings.Repeat("x", sizes[namespace]))
		f.RPC.Workload = mode
		frames[namespace] = build(t, &f)
	}
	began := time.Now()
	got := answeredBytes(t, n, frames, 1000)
	shared(t, n, api.Budget{Bandwidth: uint64(8 * got[4] / time.Since(began).Seconds() / 0.4 / 3)}, weights)
	answeredBytes(t, n, frames, 5000) // shares settle
	got = answeredBytes(t, n, frames, 10_000)
	total := got[3] + got[4] + got[5]
	for namespace, weight := range weights {
		if share := got[namespace] / total; math.Abs(share-float64(weight)/100) > 0.05 {
			t.Errorf("namespace %d of weight %d gets %.3f of what is sent", namespace, weight, share)
		}
	}
}

// answeredBytes has the frames of namespaces arrive so many times in turn, and returns how many bytes of answers each gets.
func answeredBytes(t *testing.T, n *NIC, frames map[uint32][]byte, times int) map[uint32]float64 {
	t.Helper()
	got := map[uint32]float64{}
	onLink(t, n, func(arrive func([]byte) (string, []byte)) {
		for range times {
			for namespace, frame := range frames {
				verdict, out := arrive(frame)
				if verdict != "reply" {
					continue
				}
				h, _, err := api.ParsePacket(out[beforeRPC:])
				if err != nil {
					t.Error(err)
					return
				}
				if h.Type == api.TypeResponse {
					got[namespace] += float64(len(out))
				}
			}
		}
	})
	return got
}
