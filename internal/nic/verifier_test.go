package nic

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// If a kernel does not take the NIC program, the error is one line, with the verifier's last message; the debug log has all.
func TestRefused(t *testing.T) {
	c := testConfig(t)
	var log bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.alter = func(spec *ebpf.CollectionSpec) {
		rdma := spec.Programs["ln_rdma_module"]
		if rdma == nil {
			return // another module
		}
		insns := rdma.Instructions
		i := slices.IndexFunc(insns, func(insn asm.Instruction) bool { return insn.IsBuiltinCall() })
		insns[i].Constant = int64(asm.FnOverrideReturn) // which XDP does not have
	}
	_, err := Up(t.Context(), c)
	var fails *kernel.Error
	if !errors.As(err, &fails) {
		t.Fatalf("got error %v", err)
	}
	wantError(t, err, "Linux "+kernel.Release()+" does not take the NIC program (")
	wantError(t, err, "bpf_override_return#58): ")
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
	if !strings.Contains(log.String(), "processed ") {
		t.Errorf("the verifier's log is not logged: %s", &log)
	}
	checkGone(t, c)
}

// Only what the kernel lacks is blamed on it.
func TestRefusedForAnotherReason(t *testing.T) {
	for cause, blamed := range map[error]bool{
		unix.EPERM: false, unix.ENOMEM: false, unix.EMFILE: false, os.ErrNotExist: false,
		unix.EINVAL: true, enotsupp: true, ebpf.ErrNotSupported: true,
	} {
		var fails *kernel.Error
		err := (Config{}).withDefaults().refused(fmt.Errorf("load: %w", cause))
		if errors.As(err, &fails) != blamed || !errors.Is(err, cause) {
			t.Errorf("%v became %v", cause, err)
		}
	}
}
