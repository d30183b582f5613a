// Package echo is the limit with which the NIC program is compared: a bare XDP program that answers each λ-RPC request by
// turning its packet around.
package echo

import (
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

//go:generate go tool bpf2go -target bpfel bpf echo.bpf.c -- -I../../bpf

// Attach puts the echo on the measured end of the pair. Its answer has the length and the bytes of the request.
func Attach(p *link.Pair) (link.Attachment, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	xdp.Untie(spec) // as the program that it replaces
	var bpf bpfObjects
	if err := spec.LoadAndAssign(&bpf, nil); err != nil {
		return nil, fmt.Errorf("load the echo: %w", err)
	}
	a, err := p.AttachPeer(bpf.Echo)
	return a, errors.Join(err, bpf.Close())
}
