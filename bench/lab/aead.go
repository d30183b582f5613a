package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/test/rig"
)

const sourceAEAD = "ChaCha20-Poly1305 of 1 KiB by sdk/aead.h: BPF_PROG_TEST_RUN of the NIC program, less a run that does nothing; x_crypto: Go's, in assembly"

// The methods of bench/loops/aead_loop.
const (
	aeadNothing = iota
	aeadSeal
)

// sealing measures how long a lambda on the NIC takes to encrypt 1 KiB, beside Go's own cipher.
func sealing(ctx context.Context, r *rig.Rig, o measure.Options) (rs []report.Result, err error) {
	if err := putLoop(ctx, r, "aead_loop"); err != nil {
		return withoutFigure(o, "aead_loop", err)
	}
	defer func() { err = errors.Join(err, r.Remove(ctx)) }()
	cipher, err := chacha20poly1305.New(make([]byte, chacha20poly1305.KeySize))
	if err != nil {
		return nil, err
	}
	nonce, text := make([]byte, chacha20poly1305.NonceSize), make([]byte, 1024)
	want := cipher.Seal(nil, nonce, text, nil)[len(text):]
	// The request's bytes mean nothing; they make room for the reply.
	body := make([]byte, len(want))
	if got, err := r.AskNIC(aeadSeal, body); err != nil || !bytes.Equal(got.Payload, want) {
		return nil, errors.Join(fmt.Errorf("%w: the tag of 1 KiB: got %v, want %x", measure.ErrWrong, got, want), err)
	}
	var ours, theirs report.Samples
	for round := range o.Rounds {
		o.Log("compiler: encryption, round %d of %d", round+1, o.Rounds)
		err := measure.OnCPU(measure.ServerCPU(), func() error {
			d, err := loopTime(r, body, aeadNothing, aeadSeal)
			ours = append(ours, d/1e3)
			theirs = append(theirs, median(timeSeals(func() { text = cipher.Seal(text[:0], nonce, text[:1024], nil) }))/1e3)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	runtime.KeepAlive(text)
	return []report.Result{report.Compare("seal_1KiB", "µs", report.Lower, sourceAEAD, ours, map[string]report.Samples{"x_crypto": theirs})}, nil
}

// timeSeals times a call as often as loopTime() times a run.
func timeSeals(seal func()) (times []time.Duration) {
	for range loopRuns {
		start := time.Now()
		seal()
		times = append(times, time.Since(start))
	}
	return times
}
