package rpcserver

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// A query is one packet from a client, on its way to an answer.
type query struct {
	s       *Server
	w       Workload
	peer    netip.AddrPort
	h       api.Header
	payload []byte
	room    int
}

// A record is a message in assembly, and after the run its reply.
type record struct {
	w        Workload // the revision that began it
	body     []byte
	arrived  []bool
	received int
	granted  int // packets, by acknowledgements; 0: no word of it
	size     int // bytes per packet of the message but the last
	kept     bool
	ran      bool
	reply    []byte
	status   api.Status
}

func (q *query) key() recordKey { return recordKey{q.peer, q.h.Workload, q.h.Request} }

func (q *query) request() []byte {
	offset, size, err := q.h.Placement()
	if err != nil {
		return q.refuse(api.CodeMalformed, 0)
	}
	total := int(q.h.MessageLen)
	if q.w.Max > 0 && total > q.w.Max || q.h.Count > 1 && q.w.Mode == api.ModePacket {
		return q.refuse(api.CodeTooLarge, 0)
	}
	if q.w.Mode == api.ModePacket {
		return q.run()
	}
	r := q.s.records[q.key()]
	if r == nil {
		if q.w.Records > 0 && len(q.s.records) >= q.w.Records {
			return q.refuse(api.CodeBusy, 0)
		}
		r = &record{w: q.w, body: make([]byte, total), arrived: make([]bool, q.h.Count), size: size}
		q.s.records[q.key()] = r
	}
	q.w = r.w
	if len(r.arrived) != int(q.h.Count) || len(r.body) != total || r.size != size {
		return q.refuse(api.CodeMalformed, 0)
	}
	if q.w.Fail != nil {
		if text, status := q.w.Fail(offset, q.payload); status != api.StatusOK {
			return q.respond([]byte(text), len(text), q.h.Index, q.h.Count, status, 0)
		}
	}
	if q.w.Mode == api.ModeStream && q.w.Part != nil && !r.kept {
		return q.part(r, offset)
	}
	return q.collect(r, offset)
}

// run answers a request of one packet without a record.
func (q *query) run() []byte {
	q.s.Stats.Runs.Add(1)
	reply, status := q.w.Handle(q.h.Method, q.payload)
	return q.window(reply, status, 0, q.room)
}

// part answers one packet of a message in mode stream.
func (q *query) part(r *record, offset int) []byte {
	q.s.Stats.Runs.Add(1)
	out, total, ok := q.w.Part(q.h.Method, len(r.body), offset, q.payload)
	if !ok {
		r.kept = true
		return q.collect(r, offset)
	}
	if len(out) > q.room {
		return q.refuse(api.CodeTooLarge, len(out))
	}
	return q.respond(out, total, q.h.Index, q.h.Count, api.StatusOK, 0)
}

// collect takes in one packet, and answers the message if it is complete.
func (q *query) collect(r *record, offset int) []byte {
	if r.granted > 0 && int(q.h.Index) >= r.granted {
		q.s.Stats.Ungranted.Add(1)
	}
	if i := q.h.Index; !r.arrived[i] {
		r.arrived[i] = true
		r.received++
		copy(r.body[offset:], q.payload)
	}
	if r.received < len(r.arrived) {
		return q.acknowledge(r)
	}
	if !r.ran {
		q.s.Stats.Runs.Add(1)
		r.ran = true
		r.reply, r.status = r.w.Handle(q.h.Method, r.body)
	}
	return q.window(r.reply, r.status, 0, q.room)
}

func (q *query) acknowledge(r *record) []byte {
	if q.h.Flags&api.FlagAckWanted == 0 {
		return nil
	}
	q.s.Stats.Acks.Add(1)
	var bitmap uint64
	base := q.h.Index &^ 63
	for i := base; i < q.h.Count && i < base+64; i++ {
		if r.arrived[i] {
			bitmap |= 1 << (i - base)
		}
	}
	h := q.h
	h.Type, h.Flags, h.Length, h.Revision = api.TypeAck, 0, 8, r.w.Revision
	if r.w.Grant > 0 {
		last := uint32(64 - bits.LeadingZeros64(bitmap))
		h.Grant = base + last + uint32(r.w.Grant)
		r.granted = max(r.granted, 64, int(h.Grant)) // clients begin with 64
	}
	return binary.BigEndian.AppendUint64(h.Append(nil), bitmap)
}

// pull answers with one window of a reply.
func (q *query) pull() []byte {
	size := int(q.h.MessageLen)
	if size == 0 || size > q.room || q.h.Count < 2 || q.h.Index >= q.h.Count {
		return q.refuse(api.CodeMalformed, 0)
	}
	if r := q.s.records[q.key()]; r != nil && r.ran {
		return q.window(r.reply, r.status, int(q.h.Index), size)
	}
	if q.w.Mode != api.ModePacket || q.h.Revision != q.w.Revision {
		return q.refuse(api.CodeStale, 0)
	}
	reply, status := q.w.Handle(q.h.Method, q.payload)
	return q.window(reply, status, int(q.h.Index), size)
}

// window answers with packet index of a reply in packets of size bytes.
func (q *query) window(reply []byte, status api.Status, index, size int) []byte {
	if size == 0 && len(reply) > 0 {
		return q.refuse(api.CodeTooLarge, len(reply))
	}
	count, at := 1, 0
	if len(reply) > size {
		count, at = api.Fragments(len(reply), size), index*size
	}
	if at >= max(1, len(reply)) {
		return q.refuse(api.CodeStale, 0)
	}
	var flags api.Flag
	if q.w.Whole && q.h.Type == api.TypeRequest && q.h.Count > 1 {
		flags = api.FlagDone
	}
	return q.respond(reply[at:min(at+size, len(reply))], len(reply), uint32(index), uint32(count), status, flags)
}

func (q *query) respond(out []byte, total int, index, count uint32, status api.Status, flags api.Flag) []byte {
	h := q.h
	h.Type, h.Flags, h.Code, h.Length, h.Revision = api.TypeResponse, flags, uint8(status), uint16(len(out)), q.w.Revision
	h.Index, h.Count, h.MessageLen = index, count, uint32(total)
	return append(h.Append(nil), out...)
}

func (q *query) refuse(code api.Code, need int) []byte {
	h := q.h
	h.Type, h.Flags, h.Code, h.Length, h.Revision = api.TypeError, 0, uint8(code), 0, q.w.Revision
	h.Index, h.Count, h.MessageLen = 0, 1, uint32(need)
	return h.Append(nil)
}
