package nic

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"unsafe"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/testrun"
)

// The verdict of an XDP program that sends a frame back where it came from (linux/bpf.h, enum xdp_action).
const xdpTX = 3

// The headers before a λ-RPC header in a frame.
const (
	ethernetLen = 14
	ipv4Len     = 20
	udpLen      = 8
	beforeRPC   = ethernetLen + ipv4Len + udpLen
)

// An askFrame is a request as it would come over the link, and room for the NIC program's answer: the kernel returns at most the
// request's size and a page.
type askFrame struct {
	in  [beforeRPC + api.RPCHeaderLen + api.RPCMaxPayload]byte
	out [4096]byte
}

var askFrames = sync.Pool{New: func() any { return new(askFrame) }}

// The client of requests that no link brings: an address and a port that nobody has (RFC 2544; no service uses port 1 any more).
var asking = netip.AddrFrom4([4]byte{198, 18, 0, 1})

const askPort = 1

// Ask runs the NIC program on a request of one packet, at once and in this thread, as the kernel does when a packet comes, but
// without socket and link (BPF_PROG_TEST_RUN). The header is the answer's, a response or an error; its payload is appended to reply.
// ok is false if the program does not at once answer in one packet: it passed the request to the host, dropped it, or has a longer
// answer. Then the request has to go by the link, where packets may be lost and long replies are fetched.
//
// Do not ask a lambda that calls services or executes each request once: nothing that the program sends leaves.
func (n *NIC) Ask(q api.Header, body, reply []byte) (h api.Header, payload []byte, ok bool, err error) {
	own := n.reach.Load().Addr
	if !own.Is4() || len(body) > api.RPCMaxPayload {
		return h, nil, false, nil
	}
	f := askFrames.Get().(*askFrame)
	defer askFrames.Put(f)
	f.build(own, &q, body)
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return h, nil, false, nil
	}
	run := testrun.Run{In: unsafe.Pointer(&f.in), InLen: uint32(len(f.in)), Out: unsafe.Pointer(&f.out), OutLen: uint32(len(f.out))}
	if err := run.DoBriefly(n.prog.Root); err != nil {
		return h, nil, false, fmt.Errorf("run the NIC program: %w", err)
	}
	if run.Verdict != xdpTX || run.OutLen < beforeRPC {
		return h, nil, false, nil
	}
	h, answer, err := api.ParsePacket(f.out[beforeRPC:run.OutLen])
	if err != nil || h.Request != q.Request || h.Count > 1 || h.Type != api.TypeResponse && h.Type != api.TypeError {
		return h, nil, false, nil
	}
	return h, append(reply, answer...), true, nil
}

// build makes the frame of a request to own, padded so that the answer has as much room as possible.
func (f *askFrame) build(own netip.Addr, q *api.Header, body []byte) {
	be := binary.BigEndian
	to, from := own.As4(), asking.As4()
	b := f.in[:0]
	b = append(b, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2) // two Ethernet addresses that nobody has
	b = be.AppendUint16(b, 0x0800)
	b = append(b, 0x45, 0)
	b = be.AppendUint16(b, uint16(len(f.in)-ethernetLen))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0) // don't fragment, 64 hops, UDP, checksum below
	b = append(append(b, from[:]...), to[:]...)
	be.PutUint16(b[ethernetLen+10:], ^sum16(b[ethernetLen:]))
	b = be.AppendUint16(b, askPort)
	b = be.AppendUint16(b, api.RPCPort)
	b = be.AppendUint16(b, uint16(len(f.in)-ethernetLen-ipv4Len))
	b = append(b, 0, 0) // no checksum (RFC 768): no link can corrupt the datagram
	q.Type, q.Count, q.Index = api.TypeRequest, 1, 0
	q.Length, q.MessageLen = uint16(len(body)), uint32(len(body))
	b = append(q.Append(b), body...)
	clear(f.in[len(b):])
}

// sum16 is the ones' complement sum of RFC 1071 over an even number of bytes.
func sum16(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > math.MaxUint16 {
		sum = sum&math.MaxUint16 + sum>>16
	}
	return uint16(sum)
}
