// Package multiply has XDP's two ways to send a reply of many packets, each as a bare program: one packet of
// the reply for each that the client sends, or all of them cloned from one request.
package multiply

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel bpf multiply.bpf.c -- -I../../bpf

// Size is the bytes of message in a packet of a reply, and MaxPackets the most packets of a reply.
const (
	Size       = int(bpfLnMultiplyLimitLN_MULTIPLY_SIZE)
	MaxPackets = int(bpfLnMultiplyLimitLN_MULTIPLY_PACKETS)
)

// Text is the longest reply; others are its beginning.
func Text() []byte {
	r := rand.New(rand.NewPCG(4, 3))
	b := make([]byte, MaxPackets*Size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// AttachPull lets the measured end of the pair answer each request or pull with the packet of the reply that it names.
func AttachPull(p *link.Pair, packets int) (a link.Attachment, err error) {
	bpf, err := load(packets)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bpf.Close()) }()
	return p.AttachPeer(bpf.Pull)
}

// AttachMultiply lets the measured end of the pair answer each request with all packets of the reply.
func AttachMultiply(p *link.Pair, packets int) (a link.Attachment, err error) {
	bpf, err := load(packets)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bpf.Close()) }()
	entry := struct{ Interface, Program uint32 }{uint32(p.Peer.Index), uint32(bpf.Clone.FD())} // struct bpf_devmap_val
	for i := range packets {
		if err := p.In(func() error { return bpf.Clones.Put(uint32(i), entry) }); err != nil {
			return nil, fmt.Errorf("add clone %d of %d: %w", i, packets, err)
		}
	}
	return p.AttachPeer(bpf.Multiply)
}

func load(packets int) (*bpfObjects, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(spec.Variables[bpfVarPackets].Set(uint32(packets)), spec.Variables[bpfVarText].Set(Text())); err != nil {
		return nil, err
	}
	xdp.Untie(spec) // as the program that it replaces
	bpf := &bpfObjects{}
	if err := spec.LoadAndAssign(bpf, nil); err != nil {
		return nil, fmt.Errorf("load the multiplier: %w", err)
	}
	return bpf, nil
}

//go:embed long_text
var lambda embed.FS

// BuildLambda compiles a lambda whose reply has as many packets as the request's method says, for the NIC program to serve
// by pulls.
func BuildLambda(ctx context.Context) (*compiler.Artifact, error) {
	files, err := fs.Sub(lambda, "long_text")
	if err != nil {
		return nil, err
	}
	return compiler.BuildFS(ctx, files, compiler.Options{})
}
