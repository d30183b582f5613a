//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two ways to send a reply of many packets. `pull` turns each packet of the client into one packet of the reply. `multiply`
 * has the kernel clone one request by a devmap broadcast, and `clone` makes a packet of the reply from each. Both do the
 * same to a packet, and nothing more than needed.
 */
#include "../frame.h"

enum ln_multiply_limit {
	LN_MULTIPLY_PACKETS = 8, /* a power of two */
	LN_MULTIPLY_SIZE = LN_RPC_FRAGMENT, /* bytes of the message in each */
};

const volatile enum ln_multiply_limit limits; /* puts the enum into BTF, from which Go takes it */

__u8 text[LN_MULTIPLY_PACKETS * LN_MULTIPLY_SIZE];
const volatile __u32 packets; /* of the reply */

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, LN_MULTIPLY_PACKETS);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} clones SEC(".maps");

/* Which clone is next. */
struct turn {
	__be64 request;
	__u32 index;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct turn);
} turns SEC(".maps");

/* Turns the packet around and gives the headers the reply's length. IPv4 lets UDP go without a checksum (RFC 768). */
static __always_inline void write_headers(struct frame *f)
{
	__u32 len = sizeof(f->udp) + sizeof(f->rpc) + LN_MULTIPLY_SIZE, sum = 0;
	const __u16 *ip = (void *)f + sizeof(f->eth);

	swap_ends(f);
	f->ip.tot_len = bpf_htons(sizeof(f->ip) + len);
	f->ip.check = 0;
	for (int i = 0; i < (int)sizeof(f->ip) / 2; i++)
		sum += ip[i];
	sum = (sum & 0xffff) + (sum >> 16);
	f->ip.check = ~((sum & 0xffff) + (sum >> 16));
	f->udp.len = bpf_htons(len);
	f->udp.check = 0;
}

/* Makes packet `index` of the reply from the request; 0, or -1 where it cannot. */
static __always_inline int answer(struct xdp_md *ctx, __u32 index)
{
	int grow = (int)sizeof(struct frame) + LN_MULTIPLY_SIZE - (int)(ctx->data_end - ctx->data);
	struct frame *f;

	if (grow && bpf_xdp_adjust_tail(ctx, grow))
		return -1;
	f = rpc_frame(ctx);
	if (!f)
		return -1;
	write_headers(f);
	f->rpc.type = LN_TYPE_RESPONSE;
	f->rpc.code = 0;
	f->rpc.length = bpf_htons(LN_MULTIPLY_SIZE);
	f->rpc.index = bpf_htonl(index);
	f->rpc.count = bpf_htonl(packets);
	f->rpc.message_len = bpf_htonl(packets * LN_MULTIPLY_SIZE);
	index &= LN_MULTIPLY_PACKETS - 1;
	return bpf_xdp_store_bytes(ctx, sizeof(*f), &text[index * LN_MULTIPLY_SIZE], LN_MULTIPLY_SIZE);
}

SEC("xdp.frags")
int pull(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);

	if (!f)
		return XDP_PASS;
	return answer(ctx, bpf_ntohl(f->rpc.index)) ? XDP_DROP : XDP_TX;
}

SEC("xdp.frags")
int multiply(struct xdp_md *ctx)
{
	return rpc_frame(ctx) ? bpf_redirect_map(&clones, 0, BPF_F_BROADCAST) : XDP_PASS;
}

/*
 * Clones do not say which entry of the map they are of. A program for each entry cannot tell either: bq_enqueue() of
 * kernel/bpf/devmap.c keeps one program per device and bulk, and all entries are of one device. But the clones of a request
 * come in the map's order, one after the other, on one CPU.
 */
SEC("xdp.frags/devmap")
int clone(struct xdp_md *ctx)
{
	struct frame *f = rpc_frame(ctx);
	__u32 key = 0, index;
	struct turn *turn = bpf_map_lookup_elem(&turns, &key);

	if (!f || !turn)
		return XDP_DROP;
	if (turn->request != f->rpc.request || turn->index >= packets) {
		turn->request = f->rpc.request;
		turn->index = 0;
	}
	index = turn->index++;
	return answer(ctx, index) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
