package nic

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	roceclient "github.com/lambdanic/lambdanic/client/roce"
	"github.com/lambdanic/lambdanic/internal/nic/module/rdma"
	"github.com/lambdanic/lambdanic/test/impair"
)

// rdmaClient is a region of the lambda's, and a queue pair to it over the virtual NIC's own wire.
type rdmaClient struct {
	q      *roceclient.QueuePair
	region *api.Region
	event  roceclient.Event
}

func newRDMAClient(t *testing.T, n *NIC, workload uint32, c api.QueuePairRequest, faults impair.Faults) *rdmaClient {
	t.Helper()
	if !c.Peer.IsValid() {
		c.Peer = n.HostAddr()
	}
	r, err := ModuleOf[*rdma.Module](n).AddRegion(t.Context(), workload, api.RegionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.PeerQPN, c.PSN, c.Receive = ownQPN, roce.NumMask-5, r.RKey
	qp, err := ModuleOf[*rdma.Module](n).AddQueuePair(t.Context(), workload, c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := roceclient.Listen(c.Peer)
	if err != nil {
		t.Fatal(err)
	}
	link := impair.NewLink(faults, impair.ToServer)
	if faults != (impair.Faults{}) {
		e.Through = link.Pass
	}
	t.Cleanup(func() {
		e.Close()
		link.Close()
	})
	service := roce.ServiceRC
	if c.Transport == api.TransportUC {
		service = roce.ServiceUC
	}
	q, err := e.Connect(roceclient.Connection{Service: service, Remote: qp.Address, LocalQP: ownQPN, RemoteQP: qp.QPN, PSN: c.PSN, MTU: qp.MTU})
	if err != nil {
		t.Fatal(err)
	}
	to := roceclient.Region{VA: r.Address, RKey: r.RKey}
	return &rdmaClient{q, r, roceclient.Event{Addr: netip.AddrPortFrom(qp.Address, api.RPCPort), Workload: workload, Region: to, Length: r.Length}}
}

// A mebibyte goes into the lambda's memory by each transport and comes back reversed, over a network that loses, repeats, reorders and
// corrupts packets as far as the transport bears it.
func TestRDMAOnTheWire(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "1MiB", 1))
	bad := impair.Faults{Seed: 4, Drop: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.005, Span: 44}
	for name, c := range map[string]struct {
		qp     api.QueuePairRequest
		faults impair.Faults
		imm    bool
	}{
		"RC":              {imm: true},
		"RC on a bad net": {qp: api.QueuePairRequest{MTU: 512}, faults: bad},
		"UC":              {qp: api.QueuePairRequest{Transport: api.TransportUC, ICRC: api.ICRCTrust}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRDMAClient(t, n, rdmaWorkload, c.qp, c.faults)
			defer func() {
				if err := ModuleOf[*rdma.Module](n).RemoveRegion(context.WithoutCancel(t.Context()), rdmaWorkload, c.region.RKey); err != nil {
					t.Error(err)
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			data := randomBytes(1<<20 - 3)
			c.event.Length = uint32(len(data))
			var got []byte
			var err error
			if name == "RC" {
				if err = c.q.WriteImm(ctx, c.event.Region, data, 0); err == nil {
					got, err = c.event.Reply(ctx)
				}
			} else {
				// With UC, nobody knows whether something was lost.
				for try := 0; try < 20 && err == nil && !bytes.Equal(got, reversed(data)); try++ {
					if err = c.q.Write(ctx, c.event.Region, data); err == nil {
						got, err = c.event.Run(ctx)
					}
				}
			}
			t.Logf("%+v", c.q.Stats())
			if err != nil || !bytes.Equal(got, reversed(data)) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
		})
	}
}

// The requester tells why a message was refused.
func TestRDMARefusedOnTheWire(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, reverser(t, "4KiB", 1))
	c := newRDMAClient(t, n, rdmaWorkload, api.QueuePairRequest{MTU: 256}, impair.Faults{})
	var nak *roceclient.NAKError
	if err := c.q.Write(t.Context(), c.event.Region, make([]byte, 4097)); !errors.As(err, &nak) || nak.Syndrome != roce.SyndromeAccess {
		t.Errorf("a WRITE of more than the region: %v", err)
	}
	c.event.Region.RKey++
	if _, err := c.event.Run(t.Context()); !errors.Is(err, roceclient.ErrRefused) {
		t.Errorf("an event with another key: %v", err)
	}
}
