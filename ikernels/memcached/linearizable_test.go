package memcached

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/seed"
)

var operations = flag.Int("operations", 500_000, "how many TestLinearizable does at least")

// TestLinearizable has clients of all protocols do random operations at once, while the cache is attached and detached again and again. For each key
// there must be an order in which a memcached alone would have given the same answers, and in which no operation comes before one that had
// ended when it began.
func TestLinearizable(t *testing.T) {
	l := &load{t: t, site: newSite(t), began: time.Now(), brief: map[string][]porcupine.Operation{}}
	random := seed.Rand(t)
	for i := range 12 {
		l.users = append(l.users, l.user(i, rand.New(rand.NewPCG(random.Uint64(), 0))))
	}
	detach := l.attachAgainAndAgain()
	for l.done.Load() < int64(*operations) && !t.Failed() {
		l.round()
		l.check(false)
	}
	detach()
	l.check(true)
	t.Logf("%d operations; of %d keys asked for by UDP, %d were answered in the NIC; attached %d times; %d replies lost", l.done.Load(),
		l.asked.Load(), l.hits.Load(), l.cycles.Load(), l.lost.Load())
	if l.hits.Load() < l.asked.Load()/100 {
		t.Error("too little was answered in the NIC to tell anything")
	}
	l.noEvictions()
}

// Each round has keys of its own, and is checked by itself; with keys whose values expire, several rounds are.
const (
	roundLength = 50_000 // operations
	rounds      = 8      // with the same keys whose values expire
)

// A load is what the server is asked, and what it has answered.
type load struct {
	t      *testing.T
	site   *site
	began  time.Time
	users  []*user
	keys   []key
	asked  atomic.Int64 // keys, by UDP
	hits   atomic.Int64 // of these: that the NIC answered
	cycles atomic.Int64 // how often the cache was attached and detached
	lost   atomic.Int64 // replies
	done   atomic.Int64 // operations
	rounds int
	brief  map[string][]porcupine.Operation // history, by key, of these rounds so far
	flush  []porcupine.Operation            // in these rounds
	// memcached alone is not linearizable here: an operation that builds upon a value may find it, and store what it made of it after
	// flush_all was answered. Nor where two flush_all overlap: the first may undo the second.
	flushing sync.RWMutex
}

// A key's sort says what is done with it.
type key struct {
	name string
	sort sort
}

type sort int

const (
	plain   sort = iota
	numeric      // its values are numbers
	brief        // its values may expire at any time
)

// round has all users do operations with new keys.
func (l *load) round() {
	first := l.done.Load()
	l.keys = l.keys[:0]
	for i := range 200 {
		k := key{name: fmt.Sprintf("%d.%d", l.rounds, i), sort: []sort{plain, numeric, plain, brief}[i%4]}
		if k.sort == brief {
			k.name = fmt.Sprintf("%d-%d", l.rounds/rounds, i)
		}
		if i%10 == 0 {
			k.name += strings.Repeat("k", 250-len(k.name))
		}
		l.keys = append(l.keys, k)
	}
	var all sync.WaitGroup
	for _, u := range l.users {
		all.Go(func() {
			u.seen = map[string]uint64{}
			for l.done.Load() < first+roundLength {
				if err := u.turn(); err != nil {
					l.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// check checks the history of a round, and that of keys whose values expire if it is the last round with them, or the last of all.
func (l *load) check(last bool) {
	if l.t.Failed() {
		return
	}
	keys := map[string][]porcupine.Operation{}
	for _, u := range l.users {
		for _, o := range u.history {
			switch input := o.Input.(*operation); {
			case input.verb == doFlush:
				l.flush = append(l.flush, o)
			case input.sort == brief:
				l.brief[input.key] = append(l.brief[input.key], o)
			default:
				keys[input.key] = append(keys[input.key], o)
			}
		}
		u.history = u.history[:0]
	}
	l.checkKeys(keys)
	if l.rounds++; last || l.rounds%rounds == 0 {
		l.checkKeys(l.brief)
		clear(l.brief)
		l.flush = nil
	}
}

func (l *load) checkKeys(keys map[string][]porcupine.Operation) {
	for name, history := range keys {
		history = append(history, l.flush...)
		if got := porcupine.CheckOperationsTimeout(linear, history, time.Minute); got != porcupine.Ok {
			l.t.Errorf("the history of key %.40q is %s", name, got)
			l.show(history)
			return
		}
	}
}

// show logs the last operations that still had an order, and draws all.
func (l *load) show(history []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(linear, history, time.Minute)
	path := filepath.Join("..", "..", "build", "history.html")
	l.t.Logf("%s shows it: %v", path, porcupine.VisualizePath(linear, info, path))
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var longest []porcupine.Operation
	for _, p := range info.PartialLinearizationsOperations() {
		for _, order := range p {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	l.t.Logf("%d of %d operations have an order; about there:", len(longest), len(history))
	for _, o := range history[max(0, len(longest)-20):min(len(history), len(longest)+20)] {
		l.t.Logf("%d [%d %d] %s", o.ClientId, o.Call/1000, o.Return/1000, linear.DescribeOperation(o.Input, o.Output))
	}
}

// noEvictions checks that memcached had memory for all: the model knows of no values that go by themselves.
func (l *load) noEvictions() {
	p, err := dialProbe(l.site.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	defer p.close()
	if s, err := p.statistics(""); err != nil || s["evictions"] != "0" {
		l.t.Errorf("%s evictions, %v", s["evictions"], err)
	}
}

// attachAgainAndAgain attaches the cache, and detaches and attaches it while the load goes on. What it returns ends that.
func (l *load) attachAgainAndAgain() (detach func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	attached := make(chan struct{}, 1)
	wait := func(operations int64) (going bool) {
		for until := l.done.Load() + operations; l.done.Load() < until; time.Sleep(time.Millisecond) {
			select {
			case <-stop:
				return false
			default:
			}
		}
		return true
	}
	go func() {
		defer close(ended)
		for going := true; going; going = going && wait(1000) {
			if err := l.attached(func() {
				select {
				case attached <- struct{}{}:
				default:
				}
				going = wait(30_000)
			}); err != nil {
				l.t.Error(err)
				return
			}
		}
	}()
	select {
	case <-attached:
	case <-ended:
	}
	return func() {
		close(stop)
		<-ended
	}
}

// attached calls f while the cache is attached.
func (l *load) attached(f func()) error {
	var c *Cache
	if err := veth.InNamed(l.site.name, func() (err error) {
		c, err = Attach(Options{Server: demux.Server{Port: l.site.server.Port, Mode: xdp.ModeNative}, Memory: memoryMin})
		return err
	}); err != nil {
		return err
	}
	f()
	s, err := c.Statistics()
	l.hits.Add(int64(s.Hits))
	l.cycles.Add(1)
	return errors.Join(err, c.Close())
}

// A user is a client that does random operations.
type user struct {
	*load
	*rand.Rand
	number  int
	made    int
	udp     bool
	meta    bool
	binary  bool
	speaker *speaker
	seen    map[string]uint64 // the last version of each key
	history []porcupine.Operation
}

func (l *load) user(number int, r *rand.Rand) *user {
	u := &user{load: l, Rand: r, number: number}
	l.t.Cleanup(u.disconnect)
	return u
}

func (u *user) disconnect() {
	if u.speaker != nil {
		_ = u.speaker.conn.Close()
	}
}

// connect begins a new connection. Half of the users ask by UDP.
func (u *user) connect() error {
	dialects := []dialect{text{}, meta{}, binaryDialect{}}
	network, waits := "tcp", time.Minute
	d := dialects[u.number/2%3]
	if u.udp = u.number%2 == 0; u.udp {
		network, waits, d = "udp", 2*time.Second, text{}
	}
	_, u.meta = d.(meta)
	_, u.binary = d.(binaryDialect)
	conn, err := net.Dial(network, u.site.addr.String())
	if err != nil {
		return err
	}
	u.disconnect()
	if u.udp {
		conn = &datagrams{Conn: conn}
	}
	u.speaker = &speaker{dialect: d, conn: conn, replies: bufio.NewReader(conn), waits: waits}
	return nil
}

// turn asks for one or several operations at once, and adds them to the history.
func (u *user) turn() error {
	if u.speaker == nil || u.IntN(500) == 0 {
		if err := u.connect(); err != nil {
			return err
		}
	}
	calls, together := u.choose()
	for _, c := range calls {
		if c.verb == doFlush {
			u.flushing.Lock()
			defer u.flushing.Unlock()
			break
		}
		if c.builds() {
			u.flushing.RLock()
			defer u.flushing.RUnlock()
			break
		}
	}
	begin := time.Since(u.began)
	err := u.speaker.do(calls, together)
	end := time.Since(u.began)
	if u.udp && errors.Is(err, os.ErrDeadlineExceeded) {
		return u.forget(calls, begin)
	}
	if err != nil {
		return err
	}
	for _, c := range calls {
		u.record(c, begin, end)
	}
	return nil
}

// builds says whether what is stored depends on what was.
func (o *operation) builds() bool {
	return slices.Contains([]verb{doReplace, doAppend, doPrepend, doCas, doIncr, doDecr}, o.verb)
}

func (u *user) record(c *call, begin, end time.Duration) {
	if u.udp && c.verb == doGet {
		u.asked.Add(1)
	}
	if c.got.version != 0 {
		u.seen[c.key] = c.got.version
	}
	u.done.Add(1)
	u.history = append(u.history, porcupine.Operation{
		ClientId: u.number, Input: &c.operation, Output: &c.got, Call: begin.Nanoseconds(), Return: end.Nanoseconds(),
	})
}

// forget records operations without a reply, which the server may still execute. GETs change nothing.
func (u *user) forget(calls []*call, begin time.Duration) error {
	u.lost.Add(1)
	for _, c := range calls {
		if c.got = (result{}); c.verb != doGet {
			u.record(c, begin, math.MaxInt64)
		}
	}
	return u.connect()
}
