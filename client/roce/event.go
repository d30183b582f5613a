package roce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
)

// Event is the λ-RPC that runs a lambda on a region of its memory, and fetches the answer.
type Event struct {
	Addr     netip.AddrPort // of λ-RPC, on the NIC
	Workload uint32
	Region   Region
	Length   uint32 // of the message
	Method   uint32
}

// ErrStatus says that the lambda ran and answered with another status than ok, and ErrRefused that the NIC refused the event.
var (
	ErrStatus  = errors.New("the lambda's status")
	ErrRefused = errors.New("refused")
)

// Packets of a reply have RPCFragment bytes; pullWindow of them are under way at once.
const pullWindow = 32

// Run runs the lambda, only once even if packets are lost, and returns its reply.
func (e Event) Run(ctx context.Context) ([]byte, error) { return e.do(ctx, api.TypeRequest) }

// Reply returns the reply of a run that immediate data or a SEND began.
func (e Event) Reply(ctx context.Context) ([]byte, error) { return e.do(ctx, api.TypePull) }

func (e Event) do(ctx context.Context, first api.Type) ([]byte, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(e.Addr))
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	x := &eventExchange{Event: e, conn: conn, request: rand.Uint64()}
	reply, err := x.run(ctx, first)
	if err != nil {
		return nil, fmt.Errorf("event to workload %#x at %v: %w", e.Workload, e.Addr, err)
	}
	return reply, nil
}

// An eventExchange is one event and the packets of its reply.
type eventExchange struct {
	Event
	conn    *net.UDPConn
	request uint64
	reply   []byte
	got     []bool // of the reply's packets; nil: none yet
	left    int
}

func (x *eventExchange) run(ctx context.Context, first api.Type) ([]byte, error) {
	buf := make([]byte, 1<<16)
	timeout, from := firstTimeout, 0
	for {
		if err := x.ask(first, from); err != nil {
			return nil, err
		}
		_ = x.conn.SetReadDeadline(time.Now().Add(timeout))
		for {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			n, err := x.conn.Read(buf)
			if err != nil {
				break // timed out: ask again
			}
			if err := x.take(buf[:n]); err != nil {
				return nil, err
			}
			if x.got != nil && x.left == 0 {
				return x.reply, nil
			}
			for from < len(x.got) && x.got[from] {
				from++
			}
			if x.whole(from) {
				timeout = firstTimeout
				break
			}
		}
		if x.got == nil {
			timeout = min(2*timeout, lastTimeout)
		}
	}
}

// whole says whether the whole requested window has arrived.
func (x *eventExchange) whole(from int) bool { return x.got != nil && from%pullWindow == 0 }

// ask sends the event, or pulls missing packets of a window of its reply.
func (x *eventExchange) ask(first api.Type, from int) error {
	if x.got == nil {
		return x.send(first, 0)
	}
	end := min(len(x.got), (from/pullWindow+1)*pullWindow)
	for i := from; i < end; i++ {
		if !x.got[i] {
			if err := x.send(api.TypePull, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *eventExchange) send(typ api.Type, index int) error {
	h := api.Header{
		Type: typ, Flags: api.FlagRegion, Length: roce.RETHLen, Workload: x.Workload, Request: x.request, Index: uint32(index), Count: uint32(index + 1),
		MessageLen: roce.RETHLen, Method: x.Method,
	}
	if typ == api.TypePull {
		h.MessageLen = api.RPCFragment
	}
	b := h.Append(nil)
	b = be.AppendUint64(b, x.Region.VA)
	b = be.AppendUint32(b, x.Region.RKey)
	b = be.AppendUint32(b, x.Length)
	b = append(b, make([]byte, api.RPCFragment-roce.RETHLen)...)
	if _, err := x.conn.Write(b); err != nil && errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// take takes in an answer.
func (x *eventExchange) take(b []byte) error {
	h, payload, err := api.ParsePacket(b)
	if err != nil || h.Request != x.request || h.Workload != x.Workload {
		return nil // not an answer to this event
	}
	switch {
	case h.Type == api.TypeError && api.Code(h.Code) == api.CodeBusy:
		return nil // it still runs: ask again later
	case h.Type == api.TypeError:
		return fmt.Errorf("%w: error %d (docs/protocol.md)", ErrRefused, h.Code)
	case h.Type != api.TypeResponse:
		return nil
	case api.Status(h.Code) != api.StatusOK:
		return fmt.Errorf("%w: %d", ErrStatus, h.Code)
	}
	if x.got == nil {
		if h.MessageLen > api.RPCMaxMessage {
			return fmt.Errorf("%w: a reply of %d bytes", ErrMalformed, h.MessageLen)
		}
		x.reply = make([]byte, h.MessageLen)
		x.got = make([]bool, max(1, (len(x.reply)+api.RPCFragment-1)/api.RPCFragment))
		x.left = len(x.got)
	}
	at := int(h.Index) * api.RPCFragment
	if int(h.Index) >= len(x.got) || x.got[h.Index] || at+len(payload) != min(at+api.RPCFragment, len(x.reply)) {
		return nil
	}
	copy(x.reply[at:], payload)
	x.got[h.Index] = true
	x.left--
	return nil
}
