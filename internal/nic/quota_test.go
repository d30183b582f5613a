package nic

import (
	"errors"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/packets"
)

const tenant = 3

// limited has the NIC keep the namespace tenant, and no other, to a quota.
func limited(t testing.TB, n *NIC, q api.Quota) {
	t.Helper()
	if err := n.Limit(t.Context(), backend.Limits{Quotas: map[uint32]api.Quota{tenant: q}}); err != nil {
		t.Fatal(err)
	}
}

// perSecond is a limit of an api.Quota.
func perSecond(n uint64) *uint64 { return &n }

// offer asks a lambda so often, and counts the answers. All else that comes must be "over quota".
func offer(t testing.TB, n *NIC, workload, method uint32, times int) (answered int) {
	t.Helper()
	for range times {
		h, _, ok, err := n.Ask(api.Header{Workload: workload, Method: method, Request: requests.Add(1)}, make([]byte, 8), nil)
		switch {
		case err != nil || !ok:
			t.Errorf("asked %#x: %t, %v", workload, ok, err)
		case h.Type == api.TypeResponse:
			answered++
		default:
			wantCode(t, "a request", h, api.CodeOverQuota)
		}
	}
	return answered
}

// No more requests are served than come with time, however many CPUs ask, and none is lost: what was refused and what was served is counted.
func TestRequestsOverQuota(t *testing.T) {
	n := newTestNIC(t)
	w, other := workloads["packet"], workloads["assemble"]
	deploy(t, n, of(tenant, version(t, w, 1, packetSpec)), of(5, version(t, other, 1, packetSpec)))
	const rate, times, askers = 1000, 3000, 4
	began := time.Now()
	limited(t, n, api.Quota{Requests: perSecond(rate)})
	var answered atomic.Uint64
	var work sync.WaitGroup
	for range askers {
		work.Go(func() { answered.Add(uint64(offer(t, n, w, methodCount, times))) })
	}
	if got := offer(t, n, other, methodCount, times); got != times {
		t.Errorf("%d of %d requests to another namespace were answered", got, times)
	}
	work.Wait()
	most := uint64(rate/10 + rate*time.Since(began).Seconds() + 1)
	if got := answered.Load(); got < rate/10 || got > most {
		t.Errorf("%d of %d requests were answered, want %d to %d", got, askers*times, rate/10, most)
	}
	s := accounted(t, n, tenant)
	if s.Requests != answered.Load() || s.Replies != s.Requests || s.OverQuota != askers*times-s.Requests || s.Errors != s.OverQuota {
		t.Errorf("counted %+v, answered were %d of %d", s, answered.Load(), askers*times)
	}
	eventually(t, "more requests come with time", func() bool { return offer(t, n, w, methodCount, 1) == 1 })
	if err := n.Limit(t.Context(), backend.Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := offer(t, n, w, methodCount, times); got != times {
		t.Errorf("without a quota, %d of %d requests were answered", got, times)
	}
}

// A quota of zero lets nothing in, at once, whatever was left of an earlier one. It stays in force without a daemon, and with the next one.
func TestQuotaOfZero(t *testing.T) {
	c := testConfig(t)
	for name, q := range map[string]api.Quota{"requests": {Requests: perSecond(0)}, "NIC time": {NICTime: perSecond(0)}} {
		t.Run(name, func(t *testing.T) {
			n := open(t, c)
			w := workloads["packet"]
			deploy(t, n, of(tenant, version(t, w, 1, packetSpec)))
			limited(t, n, api.Quota{Requests: perSecond(1e6), NICTime: perSecond(1e9)})
			if offer(t, n, w, methodCount, 1) != 1 {
				t.Error("a request within the quota was refused")
			}
			limited(t, n, q)
			if got := offer(t, n, w, methodCount, 100); got != 0 {
				t.Errorf("%d requests were answered", got)
			}
			shut(t, n)
			n = open(t, c)
			if got := offer(t, n, w, methodCount, 100); !n.Adopted() || got != 0 {
				t.Errorf("%d requests were answered with the next daemon", got)
			}
			shut(t, n)
		})
	}
}

// The error says that a request was not executed. So it is never the answer to one that is sent again, nor to a pull of a reply.
func TestWhatIsNotAnsweredOverQuota(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)), of(tenant, version(t, workloads["assemble"], 1, assembleSpec)))
	first := fragments("packet", methodEcho, randomBytes(8), 8)[0]
	again := first
	again.RPC.Flags |= api.FlagResend
	whole := fragments("assemble", methodStamp, randomBytes(100), 50)
	call(t, n, whole[0])
	reply, _ := call(t, n, whole[1])
	second := pull(whole[1], reply, 1)
	message := fragments("assemble", methodStamp, randomBytes(100), 50)
	silent := func(what string, f packets.Frame) {
		t.Helper()
		if h, _ := call(t, n, f); h.Type != 0 {
			t.Errorf("%s: got %+v, want no answer", what, h)
		}
	}
	refused := func(what string, f packets.Frame) {
		t.Helper()
		h, _ := call(t, n, f)
		wantCode(t, what, h, api.CodeOverQuota)
	}
	limited(t, n, api.Quota{Requests: perSecond(0)})
	refused("a request", first)
	silent("a request that is sent again", again)
	refused("a message's first packet", message[0])
	if h, _ := call(t, n, message[1]); h.Type != api.TypeAck {
		t.Errorf("a message's second packet takes no request of its own: got %+v", h)
	}
	if h, _ := call(t, n, second); h.Type != api.TypeResponse {
		t.Errorf("a pull takes no request: got %+v", h)
	}
	limited(t, n, api.Quota{NICTime: perSecond(0)})
	refused("a request without time", first)
	silent("a request that is sent again, without time", again)
	silent("a pull without time", second)
	silent("a message's second packet without time", message[1])
	if s := accounted(t, n, tenant); s.OverQuota != 7 || s.Errors != 3 {
		t.Errorf("counted %+v, want 7 refused, 3 of them with an error", s)
	}
}

// spin runs for so many rounds as the method says, each of which needs the one before: a multiplication and an addition, so 4 cycles.
const spin = `#include <lambda.h>

int spin(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint64_t *p = (uint64_t *)payload(headers, 0, 8);
	uint64_t n;

	if (!p)
		return RETURN_DROP;
	n = *p;
	for (uint32_t i = 0; i < match_data->method; i++)
		n = n * 6364136223846793005ULL + 1442695040888963407ULL;
	*p = n;
	return lambda_reply(headers, 0, 8);
}
`

// leastRun is how long spinRounds take on a CPU of 8 GHz.
const (
	spinRounds = 100_000
	leastRun   = spinRounds * 4 / 8

	second = 1e9         // nanoseconds
	burst  = second / 10 // that a rate can save
)

func spinning(t *testing.T, workload uint32) backend.Deployment {
	t.Helper()
	a, err := buildFiles(map[string][]byte{"spin.c": []byte(spin), api.SpecFile: []byte("name: spin\nlimits: {time: 100ms}\n")})
	if err != nil {
		t.Fatal(err)
	}
	return deployment(a, workload, 1)
}

// Lambdas run no longer than their namespace's quota of time, of which each run takes what it really took.
func TestTimeOverQuota(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(tenant, spinning(t, w)))
	const share, times = 0.05, 3000
	began := time.Now()
	limited(t, n, api.Quota{NICTime: perSecond(share * second)})
	got := offer(t, n, w, spinRounds, times)
	// A run may begin when any time is left, on each CPU.
	most := share*(burst+float64(time.Since(began)))/leastRun + float64(runtime.NumCPU())
	if got < 1 || float64(got) > most {
		t.Errorf("%d of %d runs of %d ns and more, want %.0f at most", got, times, leastRun, most)
	}
	if s := accounted(t, n, tenant); s.OverQuota != uint64(times-got) {
		t.Errorf("counted %+v, want %d refused", s, times-got)
	}
}

// What a run is charged follows what runs take, and an interrupted one counts like few.
func TestCostOfRuns(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(tenant, spinning(t, w)))
	limited(t, n, api.Quota{NICTime: perSecond(1e12)})
	mean := func() uint64 {
		var cpus []program.Cost
		if err := n.prog.LnCosts.Lookup(slotOf(n, w), &cpus); err != nil {
			t.Fatal(err)
		}
		least := uint64(math.MaxUint64)
		for _, c := range cpus {
			if c.Count > uint64(program.RootLnLimitLN_COST_SAMPLES) {
				t.Errorf("it is the mean of %d samples", c.Count)
			}
			if c.Count > 0 {
				least = min(least, c.SumNs/c.Count)
			}
		}
		return least
	}
	offer(t, n, w, spinRounds, 100)
	if got := mean(); got < leastRun {
		t.Errorf("a run takes %d ns, want %d at least", got, leastRun)
	}
	offer(t, n, w, 0, 64*200) // on two CPUs, each has a hundred samples or more of one of them
	eventually(t, "short runs cost less", func() bool {
		offer(t, n, w, 0, 64)
		return mean() < leastRun
	})
}

// Lambdas whose requests take turns are measured alike.
func TestSamplesOfTurns(t *testing.T) {
	n := newTestNIC(t)
	list := []uint32{workloads["packet"], workloads["stream"]}
	for i, w := range list {
		deploy(t, n, of(uint32(3+i), version(t, w, 1, packetSpec)))
	}
	for range 64 * 50 {
		for _, w := range list {
			asked(t, n, w)
		}
	}
	for i := range list {
		if s := accounted(t, n, uint32(3+i)); s.Samples == 0 {
			t.Errorf("of %d runs of lambda %d, none was measured", s.Requests, i)
		}
	}
}

// withLimits gives a NIC limits that it may have in common with others.
func withLimits(t testing.TB, c Config) Config {
	t.Helper()
	c.Limits = c.Instance + ":limits"
	t.Cleanup(func() {
		if err := DropLimits(c); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.limits()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", c.limits())
		}
	})
	return c
}

// The NICs of a node have one set of quotas: a request that one serves, the other one does not. What they have goes on when one is made anew, and when the
// other one is adopted.
func TestQuotaOfAllNICs(t *testing.T) {
	first := withLimits(t, testConfig(t))
	second := testConfig(t)
	second.Limits = first.Limits
	a, b := open(t, first), open(t, second)
	w := workloads["packet"]
	of := of(tenant, version(t, w, 1, packetSpec))
	deploy(t, a, of)
	deploy(t, b, of)
	const rate, times = 1000, 300
	began := time.Now()
	limited(t, a, api.Quota{Requests: perSecond(rate)})
	got := offer(t, a, w, methodCount, times) + offer(t, b, w, methodCount, times)
	if most := int(rate/10 + rate*time.Since(began).Seconds() + 1); got < rate/10 || got > most {
		t.Errorf("%d requests were answered by two NICs, want %d to %d", got, rate/10, most)
	}
	limited(t, b, api.Quota{Requests: perSecond(0)})
	shut(t, a)
	if err := Down(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	shut(t, b)
	a, b = open(t, first), open(t, second)
	if a.Adopted() || !b.Adopted() {
		t.Errorf("the first NIC is adopted: %t, the second: %t", a.Adopted(), b.Adopted())
	}
	deploy(t, a, of)
	for _, n := range []*NIC{a, b} {
		if got := offer(t, n, w, methodCount, 2); got != 0 {
			t.Errorf("%d of 2 requests were answered without a quota for any", got)
		}
	}
}

// Limits of another layout, which an earlier version left, are made anew.
func TestLimitsOfAnotherLayout(t *testing.T) {
	c := withLimits(t, testConfig(t))
	if err := os.MkdirAll(c.limits(), 0o700); err != nil {
		t.Fatal(err)
	}
	old, err := ebpf.NewMapWithOptions(&ebpf.MapSpec{Name: "ln_quotas", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Pinning: ebpf.PinByName},
		ebpf.MapOptions{PinPath: c.limits()})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	n := open(t, c)
	w := workloads["packet"]
	deploy(t, n, of(tenant, version(t, w, 1, packetSpec)))
	limited(t, n, api.Quota{Requests: perSecond(0)})
	if got := offer(t, n, w, methodCount, 2); got != 0 {
		t.Errorf("%d of 2 requests were answered without a quota for any", got)
	}
}
