// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* XDP programs of others, which share an interface with a NIC program. Each drops the datagrams to a UDP port of its own. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

static __always_inline int drop_port(struct xdp_md *ctx, __u16 port)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct udphdr *udp = data + sizeof(struct ethhdr) + sizeof(struct iphdr);

	if ((void *)(udp + 1) > end)
		return XDP_PASS;
	return udp->dest == bpf_htons(port) || udp->source == bpf_htons(port) ? XDP_DROP : XDP_PASS;
}

SEC("xdp.frags")
int early(struct xdp_md *ctx)
{
	return drop_port(ctx, 9001);
}

/* It takes no packets of several fragments. */
SEC("xdp")
int late_with_a_long_name(struct xdp_md *ctx)
{
	return drop_port(ctx, 9002);
}

SEC("xdp")
int last(struct xdp_md *ctx)
{
	return drop_port(ctx, 9003);
}

char LICENSE[] SEC("license") = "GPL";
