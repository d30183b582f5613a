package lambdanic

import (
	"encoding/binary"
	"math/bits"

	"github.com/lambdanic/lambdanic/api"
)

var be = binary.BigEndian

func trailingZeros(v uint64) int { return bits.TrailingZeros64(v) }

// Bounds of a batch: UDP segmentation takes at most 64 packets (UDP_MAX_SEGMENTS of kernels before 6.9) and one datagram's
// worth of bytes, of which IPv6 leaves the least.
const (
	batchPackets = 64
	batchBytes   = 65535 - 40 - 8
)

// A batch is packets of the same size, one behind the other, as UDP segmentation wants them.
type batch struct {
	buf   []byte
	size  int // of each packet
	count int
	last  int  // where the last one starts
	bulk  bool // more of their message is still to come than fits a window
}

func (b *batch) reset() { b.buf, b.size, b.count, b.bulk = b.buf[:0], 0, 0, false }

func (b *batch) full() bool {
	return b.count == batchPackets || b.count > 0 && len(b.buf)+b.size > batchBytes
}

// append adds a packet with payload p, padded to room bytes.
func (b *batch) append(h *api.Header, p []byte, room int) {
	b.last = len(b.buf)
	h.Length = uint16(len(p))
	b.buf = h.Append(b.buf)
	b.buf = append(b.buf, p...)
	if pad := room - len(p); pad > 0 {
		b.buf = append(b.buf, padding[:pad]...)
	}
	b.size = len(b.buf) - b.last
	b.count++
}

var padding [api.RPCMaxPayload]byte

// setFlag sets a flag of the last packet.
func (b *batch) setFlag(f api.Flag) {
	if b.count > 0 {
		b.buf[b.last+4] |= byte(f)
	}
}
