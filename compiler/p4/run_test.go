package p4_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/check/percpu"
	"github.com/lambdanic/lambdanic/compiler/match"
)

// The programs in testdata run as BPF on whole packets: packet in, packet and verdict out. gopacket makes and checks the packets.

const (
	xdpAborted = 0
	xdpDrop    = 1
	xdpPass    = 2
	xdpTX      = 3
	stageWait  = 64 // LN_STAGE_WAIT in bpf/layout.h
)

const jobPort = 4369

// program loads a program in testdata into the kernel, as the compiler builds it.
func program(t testing.TB, name string) *ebpf.Collection {
	t.Helper()
	return load(t, filepath.Join("testdata", name))
}

// load loads the program in a directory.
func load(t testing.TB, dir string) *ebpf.Collection {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	a, err := compiler.Build(t.Context(), dir, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(percpu.Fit(spec, 1), metering.Fill(spec, time.Duration(a.Manifest.Spec.Limits.Time))); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		var verifier *ebpf.VerifierError
		if errors.As(err, &verifier) {
			t.Fatalf("load: %+v", verifier)
		}
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// run returns the verdict on a packet, and the packet afterwards.
func run(t testing.TB, c *ebpf.Collection, program string, frame []byte) (uint32, []byte) {
	t.Helper()
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 4096)}
	verdict, err := c.Programs[program].Run(&opts)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, opts.DataOut
}

// pass is struct ln_pass of bpf/layout.h.
type pass struct {
	Instance, Clone, Shape, Pad uint32
	Kept                        [match.KeptWords]uint32
}

// runClone does the root program's work after a stage has asked for a clone: it runs the stage on the clone, with the kept fields.
func runClone(t testing.TB, c *ebpf.Collection, frame []byte) (uint32, []byte) {
	t.Helper()
	passes := c.Maps[compiler.PassMap]
	var cpus []pass
	if err := passes.Lookup(uint32(0), &cpus); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cpus, func(p pass) bool { return p.Clone == 1 })
	if i < 0 {
		t.Fatal("no clone was asked for")
	}
	clone := cpus[i]
	clone.Instance, clone.Clone = 1, 0
	put := func(p pass) {
		t.Helper()
		if err := passes.Put(uint32(0), slices.Repeat([]pass{p}, len(cpus))); err != nil {
			t.Fatal(err)
		}
	}
	put(clone)
	defer put(pass{})
	return run(t, c, compiler.Program, frame)
}

var (
	clientMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	nicMAC    = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	clientIP  = net.IPv4(192, 0, 2, 1).To4()
	nicIP     = net.IPv4(192, 0, 2, 2).To4()
)

// datagram makes a UDP packet from the client to the NIC.
func datagram(t testing.TB, from, to layers.UDPPort, payload []byte) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 61, Id: 4242, Protocol: layers.IPProtocolUDP, SrcIP: clientIP, DstIP: nicIP}
	udp := &layers.UDP{SrcPort: from, DstPort: to}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	return serialize(t, &layers.Ethernet{SrcMAC: clientMAC, DstMAC: nicMAC, EthernetType: layers.EthernetTypeIPv4}, ip, udp, gopacket.Payload(payload))
}

func serialize(t testing.TB, list ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, list...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// job is the payload of a job: its number and 16 bytes.
func job(number byte, data string) []byte {
	return append([]byte{0, 0, 0, number}, append([]byte(data), make([]byte, 16-len(data))...)...)
}

type packet struct {
	eth     *layers.Ethernet
	ip      *layers.IPv4
	udp     *layers.UDP
	payload []byte
}

// dissect takes a packet apart, and fails if a checksum in it is wrong.
func dissect(t testing.TB, frame []byte) packet {
	t.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatalf("not a packet: %v: %x", e.Error(), frame)
	}
	out := packet{
		eth: p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet),
		ip:  p.Layer(layers.LayerTypeIPv4).(*layers.IPv4),
		udp: p.Layer(layers.LayerTypeUDP).(*layers.UDP),
	}
	out.payload = out.udp.Payload
	checkSums(t, out)
	return out
}

// checkSums serializes headers again, and compares their checksums with gopacket's.
func checkSums(t testing.TB, p packet) {
	t.Helper()
	ip, udp := *p.ip, *p.udp
	if err := udp.SetNetworkLayerForChecksum(&ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{ComputeChecksums: true}, &ip, &udp, gopacket.Payload(p.payload)); err != nil {
		t.Fatal(err)
	}
	if p.ip.Checksum != ip.Checksum {
		t.Errorf("IPv4 checksum %#x, want %#x", p.ip.Checksum, ip.Checksum)
	}
	if p.udp.Checksum != 0 && p.udp.Checksum != udp.Checksum {
		t.Errorf("UDP checksum %#x, want %#x", p.udp.Checksum, udp.Checksum)
	}
}

func wantVerdict(t testing.TB, got, want uint32) {
	t.Helper()
	if got != want {
		t.Fatalf("verdict %d, want %d", got, want)
	}
}

// wantTurned checks that a packet goes back to its sender.
func wantTurned(t testing.TB, p packet, from, to layers.UDPPort) {
	t.Helper()
	if !bytes.Equal(p.eth.DstMAC, clientMAC) || !bytes.Equal(p.eth.SrcMAC, nicMAC) {
		t.Errorf("from %v to %v, want from %v to %v", p.eth.SrcMAC, p.eth.DstMAC, nicMAC, clientMAC)
	}
	if !p.ip.DstIP.Equal(clientIP) || !p.ip.SrcIP.Equal(nicIP) {
		t.Errorf("from %v to %v, want from %v to %v", p.ip.SrcIP, p.ip.DstIP, nicIP, clientIP)
	}
	if p.udp.SrcPort != from || p.udp.DstPort != to {
		t.Errorf("from port %d to %d, want %d to %d", p.udp.SrcPort, p.udp.DstPort, from, to)
	}
}
