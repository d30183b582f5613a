// Package rdma brings a message into a lambda's memory by RDMA or by λ-RPC, again and again, for the suite of that name.
package rdma

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/client/roce"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/internal/nic/module/rdma"
)

//go:embed sink
var lambda embed.FS

// Size is the size of the message.
const Size = 1 << 20

// BuildLambda compiles the lambda that takes the messages.
func BuildLambda(ctx context.Context) (*compiler.Artifact, error) {
	files, err := fs.Sub(lambda, "sink")
	if err != nil {
		return nil, err
	}
	return compiler.BuildFS(ctx, files, compiler.Options{})
}

// A Sender brings a message to the lambda and checks the answer.
type Sender struct {
	send  func(ctx context.Context, message []byte) ([]byte, error)
	close func() error
}

// ErrWrong says that the lambda got other bytes.
var ErrWrong = errors.New("wrong answer")

// Send sends one message.
func (s *Sender) Send(ctx context.Context, message []byte) error {
	answer, err := s.send(ctx, message)
	if err != nil {
		return err
	}
	want := append(binary.LittleEndian.AppendUint32(nil, uint32(len(message))), message[0], message[len(message)-1])
	if string(answer) != string(want) {
		return fmt.Errorf("%w: %x, want %x", ErrWrong, answer, want)
	}
	return nil
}

// Close ends it.
func (s *Sender) Close() error { return s.close() }

// ByRPC sends by λ-RPC, in packets of 1,376 bytes.
func ByRPC(n *nic.NIC, workload uint32) (*Sender, error) {
	c, err := lambdanic.Dial(n.Addr().String())
	if err != nil {
		return nil, err
	}
	return &Sender{close: c.Close, send: func(ctx context.Context, message []byte) ([]byte, error) {
		r, err := c.Call(ctx, lambdanic.Request{Workload: workload, Body: message})
		return r.Body, err
	}}, nil
}

// ByRDMA sends by one WRITE of a reliable connection, in packets of 1,024 bytes, and an event RPC.
func ByRDMA(ctx context.Context, n *nic.NIC, workload uint32, icrc api.ICRC) (s *Sender, err error) {
	const own, psn = 0x11, 0
	m := nic.ModuleOf[*rdma.Module](n)
	region, err := m.AddRegion(ctx, workload, api.RegionRequest{})
	if err != nil {
		return nil, err
	}
	qp, err := m.AddQueuePair(ctx, workload, api.QueuePairRequest{Peer: n.HostAddr(), PeerQPN: own, PSN: psn, ICRC: icrc})
	if err != nil {
		return nil, err
	}
	e, err := roce.Listen(n.HostAddr())
	if err != nil {
		return nil, err
	}
	q, err := e.Connect(roce.Connection{Remote: qp.Address, LocalQP: own, RemoteQP: qp.QPN, PSN: psn, MTU: qp.MTU})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	to := roce.Region{VA: region.Address, RKey: region.RKey}
	event := roce.Event{Addr: netip.AddrPortFrom(qp.Address, api.RPCPort), Workload: workload, Region: to}
	s = &Sender{}
	s.send = func(ctx context.Context, message []byte) ([]byte, error) {
		if err := q.Write(ctx, to, message); err != nil {
			return nil, err
		}
		event.Length = uint32(len(message))
		return event.Run(ctx)
	}
	s.close = func() error {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(e.Close(), m.RemoveQueuePair(ctx, workload, qp.QPN), m.RemoveRegion(ctx, workload, region.RKey))
	}
	return s, nil
}
