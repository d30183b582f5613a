package orchestrator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A heartbeat on the wire is two big-endian words of 64 bits, the first about the NIC, the second about one of its microservices.
// From the highest bit down:
//
//	word  bits   field
//	0     63-60  version, 1
//	0     59-40  NIC, 0 to 1,048,575
//	0     39-24  sequence number, modulo 65,536
//	0     23-8   queue of the traffic manager, in packets; 65,535 for more
//	0     7-0    throughput, in percent of the link's rate, 0 to 100
//	1     63-48  microservice, 0 to 65,534; 65,535: the NIC has none
//	1     47-32  CPU use, in 1/10,000 of the NIC's CPU time, 0 to 10,000
//	1     31-0   mean execution time, in ns, 0 to 536,870,911; 0: no execution ended since the last report of this microservice
//
// A NIC reports its microservices in turn, so that the size does not grow with their number. CPU use and execution time are those
// since the last report of the same microservice. A heartbeat without a microservice has 0 for both.
const (
	Size = 16 // bytes (section 5.6)

	version    = 1
	nicBits    = 20
	timeBits   = 29
	wholeLink  = 100
	versionAt  = 60
	nicAt      = 40
	sequenceAt = 24
	queueAt    = 8
	serviceAt  = 48
	cpuAt      = 32
)

// Limits of the fields.
const (
	MaxNIC    = 1<<nicBits - 1
	MaxTime   = 1<<timeBits - 1 // ns
	AllCPU    = 10_000          // the CPU use of a microservice that has the NIC for itself
	NoService = 1<<16 - 1       // the NIC has no microservice
)

// Interval is the time between two heartbeats of a NIC (section 5.6).
const Interval = 50 * time.Millisecond

// Heartbeat is what a NIC reports of itself and of one microservice.
type Heartbeat struct {
	NIC      uint32
	Sequence uint16 // one more than in the last heartbeat
	Queue    uint16 // packets that wait in the traffic manager
	Link     uint8  // throughput, in percent of the link's rate
	Service  uint16 // the microservice that the rest is about
	CPU      uint16 // its CPU use, of AllCPU
	Time     uint32 // its mean execution time, in ns; 0: none ended
}

// ErrHeartbeat is for what is not a heartbeat.
var ErrHeartbeat = errors.New("not a heartbeat")

// Made once, so that bad packets cost no allocation.
var (
	errSize    = fmt.Errorf("%w: its size is not %d bytes", ErrHeartbeat, Size)
	errVersion = fmt.Errorf("%w: its version is not %d", ErrHeartbeat, version)
	errNIC     = fmt.Errorf("%w: its NIC is above %d", ErrHeartbeat, MaxNIC)
	errLink    = fmt.Errorf("%w: its throughput is above %d %%", ErrHeartbeat, wholeLink)
	errCPU     = fmt.Errorf("%w: its CPU use is above %d/%d", ErrHeartbeat, AllCPU, AllCPU)
	errTime    = fmt.Errorf("%w: its execution time is above %d ns", ErrHeartbeat, MaxTime)
	errNone    = fmt.Errorf("%w: it has no microservice, but a CPU use or an execution time", ErrHeartbeat)
)

func (h *Heartbeat) check() error {
	switch {
	case h.NIC > MaxNIC:
		return errNIC
	case h.Link > wholeLink:
		return errLink
	case h.CPU > AllCPU:
		return errCPU
	case h.Time > MaxTime:
		return errTime
	case h.Service == NoService && (h.CPU != 0 || h.Time != 0):
		return errNone
	}
	return nil
}

// Encode writes h into the first Size bytes of b, which has to have as many. A field out of its range is an error that wraps ErrHeartbeat.
func (h *Heartbeat) Encode(b []byte) error {
	if len(b) < Size {
		return errSize
	}
	if err := h.check(); err != nil {
		return err
	}
	binary.BigEndian.PutUint64(b, version<<versionAt|uint64(h.NIC)<<nicAt|uint64(h.Sequence)<<sequenceAt|uint64(h.Queue)<<queueAt|uint64(h.Link))
	binary.BigEndian.PutUint64(b[8:], uint64(h.Service)<<serviceAt|uint64(h.CPU)<<cpuAt|uint64(h.Time))
	return nil
}

// Decode reads a heartbeat of exactly Size bytes. All else is an error that wraps ErrHeartbeat.
func Decode(b []byte) (h Heartbeat, err error) {
	if len(b) != Size {
		return h, errSize
	}
	w, s := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	if w>>versionAt != version {
		return h, errVersion
	}
	h = Heartbeat{
		NIC: uint32(w>>nicAt) & MaxNIC, Sequence: uint16(w >> sequenceAt), Queue: uint16(w >> queueAt), Link: uint8(w),
		Service: uint16(s >> serviceAt), CPU: uint16(s >> cpuAt), Time: uint32(s),
	}
	return h, h.check()
}
