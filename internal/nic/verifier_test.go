package nic

import (
	"strings"
	"testing"
)

func TestObjection(t *testing.T) {
	const log = `
	0: R1=ctx() R10=fp0
	; uint32_t zero = 0; @ lambda_entry.h:83
	0: (62) *(u32 *)(r10 -28) = 0         ; R10=fp0 fp-32=0000????
	; uint8_t *p = payload(headers, 0, 8); @ bad.c:5
	11: (26) if w2 > 0xff goto pc+7
	; return data + len > end ? NULL : data; @ lambda_bpf.h:60
	12: (71) r3 = *(u8 *)(r1 +0)
	invalid access to packet, off=0 size=1, R1(id=2,off=0,r=0)
	processed 12 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 mark_read 0`
	line, why := objection(strings.Split(log, "\n"))
	if line != "bad.c:5" || why != "invalid access to packet, off=0 size=1, R1(id=2,off=0,r=0)" {
		t.Errorf("got %q, %q", line, why)
	}
	if line, _ := objection(strings.Split("0: R1=ctx()\n; int i = 0;\nno line", "\n")); line != "" {
		t.Errorf("a kernel that names no lines: got %q", line)
	}
}
