/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the C of every match stage needs. compiler/match makes the rest. */
#ifndef PIF_STAGE_H
#define PIF_STAGE_H

#include <bpf/bpf_endian.h>

/* What the steps of a pass return: 0, or one of these. */
#define PIF_STOP 1 /* the packet is dropped */
#define PIF_GO_ON 64 /* only the parser, which otherwise returns an XDP action */

/* The values of ports: match.PortWire and so on. */
#define PIF_PORT_WIRE 0
#define PIF_PORT_HOST 0x300
#define PIF_PORT_HOST_LAST 0x3ff
#define PIF_PORT_NONE 0xffff

static __always_inline uint16_t pif_get16(const uint8_t *p)
{
	return bpf_ntohs(*(const uint16_t *)p);
}

static __always_inline uint32_t pif_get32(const uint8_t *p)
{
	return bpf_ntohl(*(const uint32_t *)p);
}

static __always_inline void pif_put16(uint8_t *p, uint16_t v)
{
	*(uint16_t *)p = bpf_htons(v);
}

static __always_inline void pif_put32(uint8_t *p, uint32_t v)
{
	*(uint32_t *)p = bpf_htonl(v);
}

static __always_inline uint64_t pif_shift_left(uint64_t v, uint64_t n)
{
	return n < 64 ? v << n : 0;
}

static __always_inline uint64_t pif_shift_right(uint64_t v, uint64_t n)
{
	return n < 64 ? v >> n : 0;
}

/* The sum of the 16-bit words in a number, with the carries added in (RFC 1071). */
static __always_inline uint16_t pif_fold(uint64_t sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff);
}

/* The XDP action for a port: packets for a port that this NIC does not have are dropped. */
static __always_inline int pif_action(uint32_t port)
{
	if (port == PIF_PORT_WIRE)
		return XDP_TX;
	return port >= PIF_PORT_HOST && port <= PIF_PORT_HOST_LAST ? XDP_PASS : XDP_DROP;
}

struct ln_pass;

#if defined(PIF_WAITS) || defined(PIF_CLONES)
#include <pif_pass.h>
#endif
#ifdef PIF_RESIZES
#include <pif_resize.h>
#endif

#endif
