package ikernels

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// plenty is a budget that nobody can spend, in ns of each second.
const plenty = 1e12

// newLimits makes limits with a budget and quotas.
func newLimits(t testing.TB, budget uint64, quotas map[uint32]api.Quota) *limits.Limits {
	t.Helper()
	l, err := limits.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	limit(t, l, budget, quotas)
	return l
}

func limit(t testing.TB, l *limits.Limits, budget uint64, quotas map[uint32]api.Quota) {
	t.Helper()
	if err := l.Set(api.Budget{Time: budget}, quotas); err != nil {
		t.Fatal(err)
	}
}

// nothing is the quota of a namespace that may have no request.
var nothing = api.Quota{Requests: new(uint64)}

// createFor makes an ikernel of a namespace.
func (s *site) createFor(name string, number uint32, l *limits.Limits) *Ikernel {
	s.t.Helper()
	k, err := s.host.Create(name, &Namespace{"tenant", number, l})
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// counted is what an ikernel's meter counted.
func counted(t *testing.T, k *Ikernel) demux.Metered {
	t.Helper()
	list, err := k.host.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.Number == k.number && d.Namespace == "tenant" {
			return *d.Metered
		}
	}
	t.Fatalf("the list has no ikernel %d of a namespace: %+v", k.number, list)
	return demux.Metered{}
}

// awaitOverQuota waits until so many datagrams to an ikernel were over quota.
func awaitOverQuota(t *testing.T, k *Ikernel, want uint64) {
	t.Helper()
	var c demux.Metered
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if c = counted(t, k); c.OverQuota == want {
			return
		}
	}
	t.Fatalf("the meter counted %+v, want %d datagrams over quota", c, want)
}

// TestMetered keeps an application's ikernel in the share and the quotas of a namespace: it pays for what its own sockets get, and what is over quota neither
// the ikernel nor the socket sees. Others with the same port, and ikernels of other namespaces, get all.
func TestMetered(t *testing.T) {
	for _, listens := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		t.Run(listens, func(t *testing.T) {
			s := newSite(t)
			l := newLimits(t, 0, nil)
			k, other := s.createFor("echo", 1, l), s.createFor("echo", 2, l)
			server := s.share(listens)
			port := strconv.Itoa(server.LocalAddr().(*net.UDPAddr).Port)
			neighbour := s.share("127.0.0.2:" + port) // has no ikernel
			others := s.listen("[::1]:" + port)
			attach(t, k, server)
			attach(t, other, others)
			client, toNeighbour, toOther := s.dial("127.0.0.1:"+port), s.dial("127.0.0.2:"+port), s.dial("[::1]:"+port)
			check := func(budget uint64, quotas map[uint32]api.Quota) {
				t.Helper()
				limit(t, l, budget, quotas)
				send(t, toNeighbour, "a")
				expect(t, "the neighbour", neighbour, "a")
				send(t, toOther, "b")
				expect(t, "the other client", toOther, "b")
			}
			answers := func(message string) {
				t.Helper()
				send(t, client, message)
				expect(t, "the client", client, message)
			}
			check(0, nil)
			answers("without limits")
			if c := counted(t, k); c != (demux.Metered{}) {
				t.Errorf("without limits the meter counted %+v", c)
			}
			check(plenty, map[uint32]api.Quota{1: {}})
			answers("with a share")
			c := counted(t, k)
			if c.ChargedNs == 0 || c.OverShare != 0 {
				t.Errorf("with a share the meter counted %+v", c)
			}
			check(plenty, map[uint32]api.Quota{1: {}})
			if now := counted(t, k); now != c {
				t.Errorf("for others' datagrams the meter counted %+v, after %+v", now, c)
			}
			check(0, map[uint32]api.Quota{1: nothing})
			send(t, client, "over quota")
			send(t, client, "over quota, too")
			awaitOverQuota(t, k, 2)
			check(0, nil)
			answers("without quota")
			if r := registers(t, k); r["messages"] != 3 {
				t.Errorf("the ikernel got %d messages, want 3", r["messages"])
			}
			if err := with(t, server, k.Detach); err != nil {
				t.Fatal(err)
			}
			limit(t, l, 0, map[uint32]api.Quota{1: nothing})
			send(t, client, "detached")
			expect(t, "the server, which got nothing else", server, "detached")
			if c := counted(t, other); c.OverQuota != 0 {
				t.Errorf("of the other namespace %+v is counted", c)
			}
		})
	}
}

// TestMeteredShare has an ikernel of a namespace get nothing while a budget is spent that is not worth one datagram.
func TestMeteredShare(t *testing.T) {
	s := newSite(t)
	l := newLimits(t, 1, map[uint32]api.Quota{1: {}})
	k, server := s.createFor("echo", 1, l), s.listen("127.0.0.1:0")
	attach(t, k, server)
	client := s.dial(server.LocalAddr().String())
	for deadline := time.Now().Add(patience); counted(t, k).OverShare == 0; { // it may overdraw the budget a little
		if time.Now().After(deadline) {
			t.Fatalf("the meter counted %+v", counted(t, k))
		}
		for range 1000 {
			send(t, client, "x")
		}
	}
	if r, c := registers(t, k), counted(t, k); r["messages"] == 0 || c.ChargedNs == 0 || c.OverQuota != 0 {
		t.Errorf("the ikernel got %d messages, and the meter counted %+v", r["messages"], c)
	}
}

// TestFollow has ikernels go by the limits of a NIC that was made anew, the first and the second at a port, and at several ports. They keep their state.
func TestFollow(t *testing.T) {
	s := newSite(t)
	former, next := newLimits(t, 0, map[uint32]api.Quota{2: nothing}), newLimits(t, 0, map[uint32]api.Quota{1: nothing})
	first, second, free := s.createFor("passthrough", 2, newLimits(t, 0, nil)), s.createFor("echo", 1, former), s.create("echo")
	one, two, third := s.listen("127.0.0.1:0"), s.listen("127.0.0.1:0"), s.listen("127.0.0.1:0")
	for _, server := range []*net.UDPConn{one, two} {
		attach(t, second, server)
	}
	if err := with(t, one, second.Detach); err != nil {
		t.Fatal(err)
	}
	attach(t, first, one)
	attach(t, second, one)
	attach(t, free, third)
	toOne, toTwo, toThird := s.dial(one.LocalAddr().String()), s.dial(two.LocalAddr().String()), s.dial(third.LocalAddr().String())
	answers := func(client *net.UDPConn) {
		t.Helper()
		send(t, client, "x")
		expect(t, "the client", client, "x")
	}
	answers(toOne)
	answers(toTwo)
	for range 2 { // the second time there is nothing to do
		if err := s.host.Follow(next); err != nil {
			t.Fatal(err)
		}
	}
	send(t, toOne, "over quota")
	send(t, toTwo, "over quota")
	awaitOverQuota(t, second, 2)
	answers(toThird)
	limit(t, next, 0, nil)
	answers(toOne)
	answers(toTwo)
	if a, b := registers(t, first)["messages"], registers(t, second)["messages"]; a != 3 || b != 4 {
		t.Errorf("the ikernels got %d and %d messages, want 3 and 4", a, b)
	}
	limit(t, next, 0, map[uint32]api.Quota{2: nothing})
	send(t, toOne, "over quota")
	awaitOverQuota(t, first, 1)
}

// TestFollowMeanwhile ends ikernels and asks others for their registers while all are to go by other limits: the ones that are left do.
func TestFollowMeanwhile(t *testing.T) {
	s := newSite(t)
	former, next := newLimits(t, 0, nil), newLimits(t, 0, map[uint32]api.Quota{1: nothing})
	var ending []*Ikernel
	for range 8 {
		ending = append(ending, s.createFor("echo", 1, former))
	}
	stays, server := s.createFor("echo", 1, former), s.listen("127.0.0.1:0")
	attach(t, stays, server)
	var followed error
	var group sync.WaitGroup
	group.Go(func() { followed = s.host.Follow(next) })
	for _, k := range ending {
		registers(t, stays)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
	if followed != nil {
		t.Fatal(followed)
	}
	send(t, s.dial(server.LocalAddr().String()), "over quota")
	awaitOverQuota(t, stays, 1)
}

// TestMeteredChain has what an operator attaches and an application's ikernels be of different namespaces: each datagram is charged to both.
func TestMeteredChain(t *testing.T) {
	s := newSite(t)
	l := newLimits(t, plenty, map[uint32]api.Quota{1: {}, 2: {}})
	first, second, server := s.createFor("passthrough", 1, l), s.createFor("echo", 2, l), s.listen("127.0.0.1:0")
	attach(t, first, server)
	attach(t, second, server)
	client := s.dial(server.LocalAddr().String())
	for range 100 {
		send(t, client, "x")
		expect(t, "the client", client, "x")
	}
	if a, b := counted(t, first).ChargedNs, counted(t, second).ChargedNs; a == 0 || b == 0 {
		t.Errorf("the namespaces are charged %d and %d ns", a, b)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	limit(t, l, 0, map[uint32]api.Quota{1: nothing})
	send(t, client, "y")
	expect(t, "the client", client, "y")
}

// TestMeteredRefuses: what is not metered is of no namespace.
func TestMeteredRefuses(t *testing.T) {
	s := newSite(t)
	l := newLimits(t, 0, nil)
	listener := s.listenTCP("127.0.0.1:0")
	k := s.createFor("threshold", 1, l)
	for want, try := range map[string]func() error{
		"create one without a namespace for TCP": func() error { return with(t, listener, k.Attach) },
		"create it without a namespace":          func() error { _, err := s.host.Create("generator", &Namespace{"tenant", 1, l}); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if all, err := s.host.List(); err != nil || len(all) != 1 || all[0].Sockets != nil {
		t.Errorf("there are %+v, %v", all, err)
	}
}
