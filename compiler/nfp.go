package compiler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
)

// NFPConfig is the one element of NFPConfigMap: which requests are the lambda's (struct lambda_nfp_config in
// sdk/lambda_nfp_entry.h).
type NFPConfig struct {
	Workload uint32
	Revision uint32
	Address  [4]byte // of the NIC; zero: any
	_        uint32
}

// NFPConfigMap is the map that the loader fills.
const NFPConfigMap = "lambda_nfp_configs"

// NFPRemedy precedes the remedy in the compiler's messages about SDK functions that cards lack (sdk/lambda_nfp.h).
const NFPRemedy = ": the card has nothing for it: "

// nfpStack is the most that an instruction reaches, and more than any card has: target.Offload reports a stack that is too large, since
// LLVM would name no line.
const nfpStack = "32767"

// ErrNFP says that a lambda is of a kind that no Netronome card runs.
var ErrNFP = errors.New("not for a Netronome card")

// ForNFP compiles a packed source to the single program for a Netronome card: the lambda, with what the NIC program does for plain requests
// around it (sdk/lambda_nfp.h). None of our passes runs, as the card has neither our memory nor our fuel. target.Offload and the driver
// refuse what the card does not support.
func ForNFP(ctx context.Context, source []byte) ([]byte, error) {
	refuse := func(spec api.Spec) error {
		switch {
		case spec.P4 != "":
			return fmt.Errorf("%w: %s: p4: the program on the card parses its packets itself", ErrNFP, api.SpecFile)
		case spec.Message.Mode != api.ModePacket:
			return fmt.Errorf("%w: %s: message.mode: the card keeps no messages: use packet", ErrNFP, api.SpecFile)
		case len(spec.Services) > 0:
			return fmt.Errorf("%w: %s: services: the card calls none: leave that to target nic", ErrNFP, api.SpecFile)
		}
		return nil
	}
	object, err := emit(ctx, source, func(command []string) []string {
		return slices.Insert(slices.DeleteFunc(slices.Clone(command), isPlugin), 1, "-mllvm", "-bpf-stack-size="+nfpStack)
	}, around{ahead: "#define LAMBDA_NFP 1\n", accept: refuse})
	return renameSections(object), err
}
