// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/* The XDP program of an interface that has ikernels, but no NIC program of λ-NIC. */
#include "../../bpf/demux.h"
#include "../../bpf/parse.h"

SEC("xdp.frags")
int ln_demux(struct xdp_md *ctx)
{
	struct ln_packet pkt;

	if (!ln_parse(ctx, &pkt))
		bpf_tail_call(ctx, &ln_ikernels, bpf_ntohs(pkt.dport));
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
