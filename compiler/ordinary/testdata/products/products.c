/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Products that may overflow, and what is done with 128 bits beside arithmetic. Request: two numbers of 128 bits. */
#include <lambda.h>
#include <stdint.h>

typedef unsigned __int128 wide;

__attribute__((noinline)) static wide rotated(wide a, unsigned by)
{
	return a << (by & 127) | a >> (-by & 127);
}

static wide sum(wide a, wide b)
{
	return a + b;
}

static wide product(wide a, wide b)
{
	return a * b;
}

static wide (*const operations[])(wide, wide) = { sum, product };

__attribute__((noinline)) static uint64_t six(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11;
}

int products(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	wide in[2], out[12] = { 0 }, w;
	uint64_t a, b, u;
	int64_t s;
	__int128 x;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	a = (uint64_t)in[0], b = (uint64_t)in[1];
	out[0] = b && a > UINT64_MAX / b;
	out[0] |= (wide)(a && a * b / a != b) << 1;
	out[0] |= (wide)__builtin_mul_overflow(a, b, &u) << 2;
	out[0] |= (wide)__builtin_mul_overflow((int64_t)a, (int64_t)b, &s) << 3;
	out[0] |= (wide)__builtin_mul_overflow((uint32_t)a, (uint32_t)b, &(uint32_t){ 0 }) << 4;
	out[0] |= (wide)__builtin_mul_overflow((int32_t)a, (int32_t)b, &(int32_t){ 0 }) << 5;
	out[0] |= (wide)__builtin_mul_overflow(in[0], in[1], &w) << 6;
	out[0] |= (wide)__builtin_mul_overflow((__int128)in[0], (__int128)in[1], &x) << 7;
	out[0] |= (wide)__builtin_add_overflow(in[0], in[1], &out[9]) << 8;
	out[0] |= (wide)__builtin_sub_overflow((__int128)in[0], (__int128)in[1], (__int128 *)&out[10]) << 9;
	out[1] = u, out[2] = (wide)s, out[3] = w, out[4] = (wide)x;
	out[5] = in[0] << (b & 127);
	out[6] = in[0] >> (b & 127);
	out[7] = (wide)((__int128)in[0] >> (b & 127));
	out[8] = rotated(in[0], (unsigned)b) ^ operations[b & 1](in[0], in[1]);
	out[11] = six(a, b, a >> 7, b >> 9, a ^ b, a & b) + (unsigned)__builtin_popcountll(a);
	return lambda_write(headers, out, sizeof(out));
}
