package sourcefilter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/internal/counters"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/isolated"
)

const port = 11211

// Addresses of the server.
var (
	server  = netip.MustParseAddr("192.0.2.1")
	server6 = netip.MustParseAddr("2001:db8::1")
)

// A bench runs the NIC program, without attaching it.
type bench struct {
	t testing.TB
	*Filter
}

func newBench(t testing.TB, o Options, allow ...string) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	var err error
	if o.Allow, err = ParsePrefixes(allow); err != nil {
		t.Fatal(err)
	}
	o.Port = port
	b := &bench{t: t, Filter: &Filter{}}
	err = b.load(&o, []netip.Addr{server, server6})
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		t.Fatalf("%+v", refused)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// passes runs a datagram through the program, so many times, and says whether the last passed.
func (b *bench) passes(from, to string, toPort uint16, times uint32) bool {
	b.t.Helper()
	action, err := b.objects.SfFilter.Run(&ebpf.RunOptions{Data: frame(b.t, from, to, toPort), DataOut: make([]byte, 256), Repeat: times})
	if err != nil || action != xdp.Pass && action != xdp.Drop {
		b.t.Fatalf("action %d, %v", action, err)
	}
	return action == xdp.Pass
}

func frame(t testing.TB, from, to string, port uint16) []byte {
	t.Helper()
	src, dst := netip.MustParseAddr(from), netip.MustParseAddr(to)
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 40000, DstPort: layers.UDPPort(port)}
	var ip gopacket.NetworkLayer = &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	if dst.Is6() {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip = &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	out := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(out, options, eth, ip.(gopacket.SerializableLayer), udp, gopacket.Payload("request")); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// expect checks the counters.
func (b *bench) expect(passed, source, rate uint64) {
	b.t.Helper()
	got, err := counters.Sum(b.objects.SfCounters)
	if want := []uint64{passed, source, rate}; err != nil || !slices.Equal(got, want) {
		b.t.Errorf("%v are counted, want %v: %v", got, want, err)
	}
}

// TestSources has datagrams of sources within prefixes and beside them.
func TestSources(t *testing.T) {
	b := newBench(t, Options{}, "198.51.100.0/25", "203.0.113.7", "2001:db8:1::/48", "fd00::/8", "2001:db8::7/128")
	passed, refused := uint64(0), uint64(0)
	for from, want := range map[string]bool{
		"198.51.100.0": true, "198.51.100.127": true, "198.51.100.128": false, "198.51.99.255": false,
		"203.0.113.7": true, "203.0.113.6": false, "203.0.113.8": false, "0.0.0.0": false, "255.255.255.255": false,
		"2001:db8:1::": true, "2001:db8:1:ffff:ffff:ffff:ffff:ffff": true, "2001:db8:2::": false, "2001:db8::7": true, "2001:db8::8": false,
		"fd12::1": true, "fc12::1": false, "::": false,
		"c633:6400::": false, "cb00:7107::": false, // the bytes of addresses of IPv4 that are allowed
	} {
		to := server.String()
		if strings.Contains(from, ":") {
			to = server6.String()
		}
		if got := b.passes(from, to, port, 1); got != want {
			t.Errorf("%s passes: %v, want %v", from, got, want)
		}
		if want {
			passed++
		} else {
			refused++
		}
	}
	b.expect(passed, refused, 0)
	for to, port := range map[string]uint16{"192.0.2.9": port, server.String(): port + 1} {
		if !b.passes("192.0.2.2", to, port, 1) {
			t.Errorf("what is for another server, at %s port %d, is dropped", to, port)
		}
	}
	b.expect(passed, refused, 0)
}

// TestAll has a prefix of all addresses of a family, and none of the other.
func TestAll(t *testing.T) {
	b := newBench(t, Options{}, "0.0.0.0/0")
	if !b.passes("203.0.113.7", server.String(), port, 1) || b.passes("2001:db8::2", server6.String(), port, 1) {
		t.Error("not all of IPv4 passes alone")
	}
	b.expect(1, 1, 0)
}

// TestRate has sources send more than they may in an hour. Each has a rate of its own, and so has an address of IPv6 of the same bytes.
func TestRate(t *testing.T) {
	b := newBench(t, Options{Rate: 5, period: time.Hour}, "192.0.2.0/24", "c000:202::/64")
	for i, from := range []string{"192.0.2.2", "192.0.2.3", "c000:202::"} {
		to := server.String()
		if i == 2 {
			to = server6.String()
		}
		for n := range 8 {
			if got := b.passes(from, to, port, 1); got != (n < 5) {
				t.Errorf("request %d of %s passes: %v", n+1, from, got)
			}
		}
	}
	b.passes("198.51.100.1", server.String(), port, 1)
	b.expect(15, 1, 9)
}

// TestRateFills waits until a source may send again.
func TestRateFills(t *testing.T) {
	b := newBench(t, Options{Rate: 1, period: 20 * time.Millisecond})
	for range 5 {
		for deadline := time.Now().Add(20 * time.Second); !b.passes("192.0.2.2", server.String(), port, 1); {
			if time.Now().After(deadline) {
				t.Fatal("it may never send again")
			}
		}
	}
	if n, err := counters.Sum(b.objects.SfCounters); err != nil || n[FilterSfVerdictSF_PASSED] != 5 {
		t.Errorf("%v are counted, %v", n, err)
	}
}

// TestRateAtOnce has one source send by several CPUs at once: exactly as many pass as may.
func TestRateAtOnce(t *testing.T) {
	const rate, senders, each = 50_000, 4, 20_000
	b := newBench(t, Options{Rate: rate, period: 1000 * time.Hour})
	var all sync.WaitGroup
	for range senders {
		all.Go(func() { b.passes("192.0.2.2", server.String(), port, each) })
	}
	all.Wait()
	b.expect(rate, 0, senders*each-rate)
}

// TestManySources has more sources than are known at once: each may begin.
func TestManySources(t *testing.T) {
	b := newBench(t, Options{Rate: 1, period: time.Hour})
	const sources = uint64(FilterSfLimitSF_SOURCES) + 5000
	f := frame(t, "10.0.0.0", server.String(), port)
	for i := range sources {
		f[27], f[28], f[29] = byte(i>>16), byte(i>>8), byte(i) // of the source; nobody looks at checksums
		if action, err := b.objects.SfFilter.Run(&ebpf.RunOptions{Data: f}); err != nil || action != xdp.Pass {
			t.Fatalf("source %d has action %d, %v", i, action, err)
		}
	}
	b.expect(sources, 0, 0)
}

// TestOptions reads prefixes and rates.
func TestOptions(t *testing.T) {
	for want, c := range map[string]struct {
		allow []string
		rate  uint32
	}{
		`"nope" is not a prefix`:                                       {allow: []string{"10.0.0.0/8", "nope"}},
		`"10.0.0.0/33" is not a prefix`:                                {allow: []string{"10.0.0.0/33"}},
		`"" is not a prefix`:                                           {allow: []string{""}},
		`"fe80::1%lo" is not a prefix`:                                 {allow: []string{"fe80::1%lo"}},
		"write 10.0.0.0/8 for all of it, or 10.1.2.3 for that address": {allow: []string{"10.1.2.3/8"}},
		"write 2001:db8::/32 for all of it":                            {allow: []string{"2001:db8::1/32"}},
		"write it as one of IPv4":                                      {allow: []string{"::ffff:10.0.0.0/104"}},
		"needs prefixes that are allowed, or a rate":                   {},
		"up to 1000000 requests per second, not 1000001":               {rate: 1_000_001},
		"takes 1024 prefixes, not 1025":                                {allow: strings.Split(strings.Repeat("10.0.0.0/8 ", 1025)[:11*1025-1], " ")},
	} {
		if err := Check(c.allow, c.rate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := errors.Join(Check([]string{"10.0.0.0/8", "::1", "::/0"}, 0), Check(nil, RateMax), Check([]string{"::1"}, 1)); err != nil {
		t.Error(err)
	}
}

// TestAttach has a server get what passes, until the filter is detached.
func TestAttach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("attaches BPF programs: needs root")
	}
	name := fmt.Sprintf("lnsf%d", os.Getpid())
	isolated.Namespace(t, name)
	if err := veth.InNamed(name, func() error {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		defer conn.Close()
		to := conn.LocalAddr().(*net.UDPAddr)
		o := Options{Server: demux.Server{Port: uint16(to.Port)}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}}
		f, err := Attach(o)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		send := func(from byte) error {
			c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, from)}, to)
			if err != nil {
				return err
			}
			_, err = c.Write([]byte{from})
			return errors.Join(err, c.Close())
		}
		receive := func(want byte) error {
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			var b [1]byte
			if _, err := conn.Read(b[:]); err != nil || b[0] != want {
				return fmt.Errorf("the server gets %d, %w, want %d", b[0], err, want)
			}
			return nil
		}
		if err := errors.Join(send(2), send(3), receive(3), send(2), f.Close(), send(2), receive(2)); err != nil {
			return err
		}
		o.Port = 1
		if _, err := Attach(o); err == nil || !strings.Contains(err.Error(), "no server listens by UDP at port 1") {
			t.Errorf("got %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkFilter times the program with datagrams of one source, which all pass.
func BenchmarkFilter(b *testing.B) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
	}
	for _, c := range []struct {
		name  string
		rate  uint32
		allow []string
	}{{"1 prefix", 0, many[:1]}, {"1000 prefixes", 0, many}, {"a rate", 1e9, nil}, {"1000 prefixes and a rate", 1e9, many}} {
		b.Run(c.name, func(b *testing.B) {
			f := newBench(b, Options{Rate: c.rate}, c.allow...)
			_, took, err := f.objects.SfFilter.Benchmark(frame(b, "10.0.0.1", server.String(), port), b.N, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took.Nanoseconds()), "ns/datagram")
		})
	}
}
