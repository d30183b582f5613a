package nic

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/cilium/ebpf"
)

// noteRE is how the verifier's log names the source line that the next instructions come from (verbose_linfo in
// kernel/bpf/log.c).
var noteRE = regexp.MustCompile(`^; .* @ (\S+):(\d+)$`)

// verifierError says what the verifier objects to, and at which line of the author's.
func verifierError(err error) error {
	var ve *ebpf.VerifierError
	if !errors.As(err, &ve) {
		return fmt.Errorf("load the program: %w", err)
	}
	if line, objection := objection(ve.Log); line != "" && objection != "" {
		return fmt.Errorf("%w: %s: the kernel's verifier cannot prove this line safe: %s", ErrRefused, line, objection)
	}
	return fmt.Errorf("%w: the kernel's verifier cannot prove it safe: %w", ErrRefused, ve)
}

// objection finds the verifier's last word, and the last line of a C file before it: what stands in a header was inlined
// there.
func objection(log []string) (line, objection string) {
	for _, text := range log {
		text = strings.TrimSpace(text)
		if note := noteRE.FindStringSubmatch(text); note != nil {
			if strings.HasSuffix(note[1], ".c") {
				line = note[1] + ":" + note[2]
			}
		} else if text != "" && !strings.HasPrefix(text, "processed ") && !strings.HasPrefix(text, "; ") {
			objection = text
		}
	}
	return line, objection
}
