// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * The NIC program: drops requests by CoAP whose token none of the keys has signed. All else goes to the server untouched.
 */
#include "base64.h"
#include "cbor.h"
#include "coap.h"
#include "header.h"
#include "hmac.h"
#include "../../bpf/chain.h"
#include "../../bpf/server.h"

char cj_license[] SEC("license") = "Dual BSD/GPL";

const volatile __u16 cj_port;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cj_scratch);
} cj_scratches SEC(".maps");

struct cj_counts {
	__u64 counts[CJ_VERDICTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cj_counts);
} cj_counters SEC(".maps");

/* Reads the token: its header, the claims' characters, and the signature. CJ_PASSED: it is a token for HS256. */
static __noinline int cj_read_token(struct cj_scratch *s)
{
	__u32 len = s->token_len, dot, end;
	int verdict;

	s->json.values.kid = 0;
	dot = cj_usual(s);
	if (!dot) {
		dot = cj_decode_header(s);
		if (!dot || dot >= len)
			return CJ_TOKEN_FORM;
		verdict = cj_read_header(s);
		if (verdict != CJ_PASSED)
			return verdict;
	}
	if (len < dot + 1 + 1 + CJ_SIGNATURE)
		return CJ_TOKEN_FORM;
	end = len - CJ_SIGNATURE - 1; /* where the second dot is */
	ln_opaque(end);
	if (end > CJ_SIGNED || dot >= end || s->token[end] != '.')
		return CJ_TOKEN_FORM;
	if (!cj_is_part_of_token(s, dot + 1, end - dot - 1) || !cj_decode_signature(s, end + 1))
		return CJ_TOKEN_FORM;
	s->signed_len = end;
	return CJ_PASSED;
}

/* Judges a datagram to the server. */
static __noinline int cj_judge(struct xdp_md *ctx, struct cj_scratch *s, const struct ln_packet *pkt)
{
	__u32 len = pkt->udp_len - sizeof(struct udphdr), payload = pkt->l4 + sizeof(struct udphdr);
	int verdict;

	s->len = len;
	if (len > CJ_MESSAGE)
		return CJ_LARGE;
	if (!ln_length_fits(len, CJ_MESSAGE) || bpf_xdp_load_bytes(ctx, payload, s->message, len))
		return CJ_MALFORMED;
	verdict = cj_read_coap(s);
	if (verdict == CJ_PASSED)
		verdict = cj_read_cbor(ctx, s, payload);
	if (verdict == CJ_PASSED)
		verdict = cj_read_token(s);
	if (verdict == CJ_PASSED)
		verdict = cj_check(s);
	return verdict;
}

SEC("xdp.frags")
int cj_guard(struct xdp_md *ctx)
{
	struct cj_counts *c;
	struct cj_scratch *s;
	struct ln_packet pkt;
	__u32 zero = 0, verdict;

	if (ln_parse(ctx, &pkt) || pkt.dport != bpf_htons(cj_port))
		return XDP_PASS;
	s = bpf_map_lookup_elem(&cj_scratches, &zero);
	c = bpf_map_lookup_elem(&cj_counters, &zero);
	if (!s || !c || ln_save_flow(ctx, &pkt, &s->flow) || !ln_is_servers(&s->flow))
		return ln_pass(ctx, 0);
	verdict = cj_judge(ctx, s, &pkt);
	if (verdict >= CJ_VERDICTS)
		return XDP_DROP;
	c->counts[verdict]++;
	return verdict == CJ_OTHER || verdict == CJ_PASSED ? ln_pass(ctx, 0) : XDP_DROP;
}

/* Named here so that BTF, and the Go types made from it, have them. */
const enum cj_limit *cj_limit_ __attribute__((unused));
const enum cj_verdict *cj_verdict_ __attribute__((unused));
const struct cj_secrets *cj_secrets_ __attribute__((unused));
