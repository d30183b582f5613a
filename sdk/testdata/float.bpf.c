/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program for each function of lambda_float.h: it takes operands of 64 bits from the packet and leaves the result behind them.
 * The function is global, so that the verifier proves it once for all operands.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define LAMBDA_FLOAT __attribute__((noinline))
#include "lambda_float.h"

#define PROGRAM(name, expression) \
	SEC("xdp") int name(struct xdp_md *ctx) \
	{ \
		volatile uint64_t *v = (void *)(long)ctx->data; \
		uint64_t a, b, c; \
		if ((void *)(v + 4) > (void *)(long)ctx->data_end) \
			return XDP_ABORTED; \
		a = v[0]; \
		b = v[1]; \
		c = v[2]; \
		(void)b, (void)c; \
		v[3] = (expression); \
		return XDP_PASS; \
	}

#define UNARY(name) PROGRAM(name, lambda_##name(a))
#define BINARY(name) PROGRAM(name, lambda_##name(a, b))
#define TERNARY(name) PROGRAM(name, lambda_##name(a, b, c))

BINARY(f32_add)
BINARY(f32_sub)
BINARY(f32_mul)
BINARY(f32_div)
BINARY(f32_compare)
BINARY(f32_round)
TERNARY(f32_fma)
UNARY(f32_sqrt)
UNARY(f32_to_f64)
UNARY(f32_to_i64)
UNARY(f32_to_u64)
BINARY(f64_add)
BINARY(f64_sub)
BINARY(f64_mul)
BINARY(f64_div)
BINARY(f64_rem)
BINARY(f64_compare)
BINARY(f64_round)
TERNARY(f64_fma)
UNARY(f64_sqrt)
UNARY(f64_to_f32)
UNARY(f64_to_i64)
UNARY(f64_to_u64)
UNARY(i64_to_f32)
UNARY(u64_to_f32)
UNARY(i64_to_f64)
UNARY(u64_to_f64)
PROGRAM(nothing, a)
TERNARY(f32_mul_add)
TERNARY(f64_mul_add)
TERNARY(f32_add_mul)
TERNARY(f64_add_mul)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
