package fuzz

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/nic"
	"github.com/lambdanic/lambdanic/test/packets"
)

// assembleSpec has messages forgotten soon: mutated ones are never whole.
const assembleSpec = `name: probe
message: {mode: assemble, max: 8KiB, in_flight: 1024, timeout: 100ms}
limits: {memory: 16MiB}
`

// deployAssemble puts test/lambdas/probe on the NIC, in mode assemble: its method 0 answers a message with itself.
func deployAssemble(t *testing.T, n *nic.NIC) {
	t.Helper()
	dir := t.TempDir()
	source, err := os.ReadFile("../lambdas/probe/probe.c")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "probe.c"), source, 0o600),
			os.WriteFile(filepath.Join(dir, api.SpecFile), []byte(assembleSpec), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	build(t, n, dir, workloads["assemble"])
}

// messageCases are all packets that a message in assembly can meet, those of several messages among them.
func messageCases() (cases []packets.Case) {
	const size, count = 100, 3
	text := string(bytes.Repeat([]byte("m"), size))
	for id := range uint64(4) {
		n, length := uint32(count), uint32(size*count)
		for i := range n {
			request := packets.RPC{
				Workload: "assemble", Flags: api.FlagAckWanted, Request: id, Index: i, Count: &n, MessageLen: &length, Payload: text, Room: size,
			}
			pull, part := request, uint32(size)
			typ := api.TypePull
			pull.Type, pull.Flags, pull.Payload, pull.Revision, pull.MessageLen = &typ, 0, "", 1, &part
			cases = append(cases, packets.Case{Frame: packets.Frame{RPC: request}}, packets.Case{Frame: packets.Frame{RPC: pull}})
		}
		typ := api.TypeAck
		cases = append(cases, packets.Case{Frame: packets.Frame{RPC: packets.RPC{Workload: "assemble", Type: &typ, Flags: api.FlagDone, Request: id}}})
	}
	return cases
}

// askMessage sends a message of several packets, again where mutated ones leave no record for it, and where a busy machine
// asked so late for the reply that it was forgotten.
func askMessage(t *testing.T, conn *net.UDPConn, i int) {
	c, err := lambdanic.Dial(conn.RemoteAddr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	r := rand.New(rand.NewPCG(uint64(i), 0))
	body := make([]byte, 2000+r.IntN(6000))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		answer, err := c.Call(ctx, lambdanic.Request{Workload: workloads["assemble"], Body: body})
		if (errors.Is(err, lambdanic.ErrBusy) || errors.Is(err, lambdanic.ErrStale)) && ctx.Err() == nil {
			continue
		}
		if err != nil || answer.Status != api.StatusOK || !bytes.Equal(answer.Body, body) {
			t.Errorf("message %d of %d bytes: status %d, %d bytes, %v", i, len(body), answer.Status, len(answer.Body), err)
		}
		return
	}
}
