/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the NIC program (bpf/root.bpf.c) does for the plainest requests, around one lambda: one packet of UDP over IPv4 without
 * tags and options. The card answers these with the same bytes as the NIC program; all other packets go to the host,
 * where that program runs.
 */
#ifndef LAMBDA_NFP_ENTRY_H
#define LAMBDA_NFP_ENTRY_H

/* Which requests are the lambda's. */
struct lambda_nfp_config {
	__u32 workload;
	__u32 revision;
	__be32 address; /* 0: any */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lambda_nfp_config);
} lambda_nfp_configs SEC(".maps");

/* What a reply needs of the request, out of the lambda's reach. */
struct lambda_nfp_flow {
	__u64 eth;
	__u32 eth_rest;
	__be32 peer, own;
	__be16 peer_port, own_port;
	__u8 tos;
	struct ln_rpc rpc;
};

struct lambda_nfp_answer {
	__u8 type;
	__u8 code;
	__s32 off; /* of the payload in the request's */
	__u32 len;
	__u32 message_len;
	__u32 revision;
};

/* How long the packet is. The verifier knows the distance of two pointers as a number of 64 bits only. */
static __always_inline __u32 lambda_nfp_held(const struct xdp_md *ctx)
{
	__u64 n = (void *)(long)ctx->data_end - (void *)(long)ctx->data;

	lambda_opaque(n);
	return n;
}

static __always_inline __u16 lambda_nfp_sum(const __u32 *words)
{
	__u64 sum = 0;

	for (int i = 0; i < 5; i++)
		sum += words[i];
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Reads the headers; -1 for a packet that goes to the host. */
static __always_inline int lambda_nfp_parse(struct xdp_md *ctx, struct lambda_nfp_flow *flow, __u32 *room)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct iphdr *ip = data + ETH_HLEN;
	const struct udphdr *udp = (const void *)(ip + 1);
	const __u64 *words = (const void *)(udp + 1);
	__u32 len, udp_len;

	if (data + LAMBDA_NFP_BASE > end || (((__u8 *)data)[0] | ((__u8 *)data)[6]) & 1 ||
	    *(__be16 *)(data + 12) != bpf_htons(ETH_P_IP))
		return -1;
	if (*(const __u8 *)ip != 0x45 || ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(0x3fff) ||
	    lambda_nfp_sum((const __u32 *)ip) != 0xffff)
		return -1;
	len = bpf_ntohs(ip->tot_len);
	udp_len = bpf_ntohs(udp->len);
	if (!udp->source || udp->dest != bpf_htons(LN_RPC_PORT) || udp_len < sizeof(*udp) + sizeof(struct ln_rpc) ||
	    udp_len + sizeof(*ip) > len || ETH_HLEN + len > lambda_nfp_held(ctx))
		return -1;
	*room = udp_len - sizeof(*udp) - sizeof(struct ln_rpc);
	flow->eth = *(__u64 *)data;
	flow->eth_rest = *(__u32 *)(data + 8);
	flow->tos = ip->tos;
	flow->peer = ip->saddr;
	flow->own = ip->daddr;
	flow->peer_port = udp->source;
	flow->own_port = udp->dest;
	for (int i = 0; i < sizeof(flow->rpc) / 8; i++)
		((__u64 *)&flow->rpc)[i] = words[i];
	return 0;
}

/* Whether a request comes from an address that may ask, to one that is ours (bpf/match.h). */
static __always_inline int lambda_nfp_is_ours(const struct lambda_nfp_flow *flow,
					      const struct lambda_nfp_config *config)
{
	__u32 own = bpf_ntohl(flow->own) >> 24, peer = bpf_ntohl(flow->peer) >> 24;

	if (config->address && config->address != flow->own)
		return 0;
	return own < 224 && flow->peer != flow->own && peer && peer != 127 && peer < 224;
}

/* Describes a whole request to the lambda; -1 for one that goes to the host. */
static __always_inline int lambda_nfp_describe(struct ln_request *req, const struct ln_rpc *rpc, __u32 room,
					       const struct lambda_nfp_config *config)
{
	__u32 len = bpf_ntohs(rpc->length);

	if (rpc->magic != bpf_htons(LN_RPC_MAGIC) || rpc->version != LN_RPC_VERSION || rpc->type != LN_TYPE_REQUEST ||
	    bpf_ntohl(rpc->workload) != config->workload || rpc->index || rpc->count != bpf_htonl(1) ||
	    rpc->flags & (LN_FLAG_ONCE | LN_FLAG_REGION) || /* the card remembers nothing, and has no regions */
	    len != bpf_ntohl(rpc->message_len) || len > room || len > LAMBDA_MESSAGE_MAX)
		return -1;
	*req = (struct ln_request){ .match = {
					    .event = LAMBDA_EVENT_REQUEST,
					    .workload = config->workload,
					    .revision = config->revision,
					    .method = bpf_ntohl(rpc->method),
					    .request = bpf_be64_to_cpu(rpc->request),
					    .message_len = len,
					    .payload_len = len,
					    .room = room,
					    .window_len = room < LN_RPC_MAX_PAYLOAD ? room : LN_RPC_MAX_PAYLOAD,
					    .record = ~0U,
				    } };
	return 0;
}

static __always_inline void lambda_nfp_write(void *data, const struct lambda_nfp_flow *flow,
					     const struct lambda_nfp_answer *answer)
{
	__u32 udp_len = sizeof(struct udphdr) + sizeof(struct ln_rpc) + answer->len;
	__u32 *ip = data + ETH_HLEN;
	struct udphdr *udp = data + ETH_HLEN + sizeof(struct iphdr);
	struct ln_rpc *rpc = (void *)(udp + 1);
	__u32 words[5] = {
		bpf_htonl(0x45000000 | (__u32)flow->tos << 16 | (sizeof(struct iphdr) + udp_len)),
		bpf_htonl(0x4000),
		bpf_htonl(64 << 24 | IPPROTO_UDP << 16),
		flow->own,
		flow->peer,
	};

	*(__u64 *)data = flow->eth >> 48 | (__u64)flow->eth_rest << 16 | flow->eth << 48;
	*(__u32 *)(data + 8) = flow->eth >> 16;
	*(__be16 *)(data + 12) = bpf_htons(ETH_P_IP);
	for (int i = 0; i < 5; i++)
		ip[i] = words[i];
	((struct iphdr *)ip)->check = ~lambda_nfp_sum(words);
	udp->source = flow->own_port;
	udp->dest = flow->peer_port;
	udp->len = bpf_htons(udp_len);
	udp->check = 0;
	rpc->magic = bpf_htons(LN_RPC_MAGIC);
	rpc->version = LN_RPC_VERSION;
	rpc->type = answer->type;
	rpc->flags = 0;
	rpc->code = answer->code;
	rpc->length = bpf_htons(answer->len);
	rpc->workload = flow->rpc.workload;
	rpc->revision = bpf_htonl(answer->revision);
	rpc->request = flow->rpc.request;
	rpc->index = 0;
	rpc->count = bpf_htonl(1);
	rpc->message_len = bpf_htonl(answer->message_len);
	rpc->method = flow->rpc.method;
	rpc->deadline_us = 0;
	rpc->client = flow->rpc.client;
	rpc->sequence = flow->rpc.sequence;
	rpc->grant = 0;
	rpc->tag = 0;
}

/* Turns a verdict into an answer (ln_epilogue() and ln_forward() of the NIC program). */
static __always_inline struct lambda_nfp_answer lambda_nfp_epilogue(const struct ln_request *req, int verdict,
								    __u32 held)
{
	struct lambda_nfp_answer error = {
		.type = LN_TYPE_ERROR,
		.code = LN_CODE_LAMBDA_FAULT,
		.message_len = LN_FAULT_OWN,
	};
	__u32 len = req->out_len, total = req->out_total;

	if (verdict != RETURN_FORWARD) {
		error.message_len = ln_fault_of(verdict);
		return error;
	}
	if (len > req->match.room || len > LN_RPC_MAX_PAYLOAD || total > len) {
		error.code = LN_CODE_TOO_LARGE;
		error.message_len = total > LN_RPC_MAX_PAYLOAD ? 0 : total;
		return error;
	}
	if (req->out_off < -LN_PREFIX || req->out_off + (__s32)len > (__s32)held)
		return error;
	return (struct lambda_nfp_answer){
		.type = LN_TYPE_RESPONSE,
		.code = req->out_status,
		.off = req->out_off,
		.len = len,
		.message_len = total,
		.revision = req->match.revision,
	};
}

static __always_inline int lambda_nfp_answer(struct xdp_md *ctx, const struct lambda_nfp_flow *flow,
					     const struct lambda_nfp_answer *answer)
{
	__u32 held = lambda_nfp_held(ctx);
	int spare = held - LAMBDA_NFP_BASE - answer->off - answer->len;
	void *data;

	if (answer->off && bpf_xdp_adjust_head(ctx, answer->off))
		return XDP_DROP;
	if (spare > 0 && bpf_xdp_adjust_tail(ctx, -spare))
		return XDP_DROP;
	data = (void *)(long)ctx->data;
	if (data + LAMBDA_NFP_BASE > (void *)(long)ctx->data_end)
		return XDP_DROP;
	lambda_nfp_write(data, flow, answer);
	return XDP_TX;
}

SEC("xdp")
int lambda(struct xdp_md *ctx)
{
	struct lambda_nfp_config *config;
	struct lambda_nfp_answer answer;
	struct lambda_nfp_flow flow;
	struct ln_request req;
	EXTRACTED_HEADERS_T headers = { .ctx = ctx, .req = &req };
	__u32 zero = 0, room;
	int verdict;

	if (lambda_nfp_parse(ctx, &flow, &room))
		return XDP_PASS;
	config = bpf_map_lookup_elem(&lambda_nfp_configs, &zero);
	if (!config || !lambda_nfp_is_ours(&flow, config) || lambda_nfp_describe(&req, &flow.rpc, room, config))
		return XDP_PASS;
	verdict = LAMBDA_ENTRY(&headers, &req.match);
	if (verdict == RETURN_DROP)
		return XDP_DROP;
	answer = lambda_nfp_epilogue(&req, verdict, lambda_nfp_held(ctx) - LAMBDA_NFP_BASE);
	return lambda_nfp_answer(ctx, &flow, &answer);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
