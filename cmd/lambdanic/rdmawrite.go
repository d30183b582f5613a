package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/api/roce"
	roceclient "github.com/lambdanic/lambdanic/client/roce"
	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// rdmaWritten is what `rdma write --json` prints.
type rdmaWritten struct {
	Bytes     int              `json:"bytes"`
	Seconds   float64          `json:"seconds"` // of the WRITE
	Transport roceclient.Stats `json:"transport"`
	Reply     []byte           `json:"reply"`
}

// An rdmaWrite is one run of `rdma write`.
type rdmaWrite struct {
	c               *daemon.Client
	in, name        string
	method          uint32
	fragmentsMethod uint32
	mtu             int
	icrc            string
}

func rdmaWriteCommand(o *options, namespace *string) *cobra.Command {
	w := &rdmaWrite{}
	var out string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "write NAME[.NAMESPACE] FILE",
		Short: "Write a file into a lambda's memory by RDMA, and run the lambda on it",
		Long: "Write a file into a lambda's memory from this host, which needs no RDMA hardware, have the lambda run on it by an event, and\n" +
			"print its reply. Region and queue pair are made for this, and removed afterwards.",
		Example: "  lambdanic rdma write image_transformer image.rgba --packets-method 1 --out handle",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readInput(cmd, args[1])
			if err != nil {
				return err
			}
			if w.c, err = o.client(); err != nil {
				return err
			}
			w.name, w.in = qualified(args[0], *namespace)
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			r, err := w.run(ctx, data)
			switch {
			case err != nil:
				return err
			case out != "":
				return os.WriteFile(out, r.Reply, 0o644) //nolint:gosec // a result for others to read, as a shell's > makes it
			case o.json:
				return ui.JSON(cmd.OutOrStdout(), r)
			}
			_, err = cmd.OutOrStdout().Write(r.Reply)
			return err
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&w.method, "method", 0, "method of the event")
	f.Uint32Var(&w.fragmentsMethod, "packets-method", 0, "method of the packets, for a lambda with message.mode: stream")
	f.IntVar(&w.mtu, "mtu", 1024, "payload of a packet: 256, 512, 1024, 2048 or 4096")
	f.StringVar(&w.icrc, "icrc", "check", "have the NIC check the packets' ICRC, or trust the link's checksum")
	f.StringVarP(&out, "out", "o", "", "write the reply to this file")
	f.DurationVar(&timeout, "timeout", time.Minute, "how long all of it may take")
	return cmd
}

// source is this host's address on the way to another.
func source(to netip.AddrPort) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the way to %v: %w", to.Addr(), err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

func (w *rdmaWrite) run(ctx context.Context, data []byte) (_ *rdmaWritten, err error) {
	f, err := w.c.Describe(ctx, w.in, w.name)
	if err != nil {
		return nil, err
	}
	from, err := source(f.Endpoint)
	if err != nil {
		return nil, err
	}
	region, err := w.c.AddRegion(ctx, w.in, w.name, api.RegionRequest{Method: w.fragmentsMethod})
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, w.c.RemoveRegion(context.WithoutCancel(ctx), w.in, w.name, region.RKey))
	}()
	psn, own := rand.Uint32()&roce.NumMask, rand.Uint32()&roce.NumMask
	qp, err := w.c.AddQueuePair(ctx, w.in, w.name, api.QueuePairRequest{Peer: from, PeerQPN: own, PSN: psn, MTU: w.mtu, ICRC: api.ICRC(w.icrc)})
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, w.c.RemoveQueuePair(context.WithoutCancel(ctx), w.in, w.name, qp.QPN))
	}()
	e, err := roceclient.Listen(from)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	q, err := e.Connect(roceclient.Connection{Remote: qp.Address, LocalQP: own, RemoteQP: qp.QPN, PSN: psn, MTU: w.mtu})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	to := roceclient.Region{VA: region.Address, RKey: region.RKey}
	if err := q.Write(ctx, to, data); err != nil {
		return nil, err
	}
	r := &rdmaWritten{Bytes: len(data), Seconds: time.Since(began).Seconds(), Transport: q.Stats()}
	r.Reply, err = roceclient.Event{Addr: f.Endpoint, Workload: f.Workload, Region: to, Length: uint32(len(data)), Method: w.method}.Run(ctx)
	return r, err
}
