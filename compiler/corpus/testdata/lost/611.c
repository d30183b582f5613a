/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 611. */
#pragma clang diagnostic ignored "-Weverything"
#include <lambda.h>
#include <stdlib.h>
#include <string.h>

static int32_t quotient32(int32_t a, int32_t b)
{
	return !b || b == -1 ? a : a / b;
}
static int32_t rest32(int32_t a, int32_t b)
{
	return !b || b == -1 ? b : a % b;
}
static int64_t quotient64(int64_t a, int64_t b)
{
	return !b || b == -1 ? a : a / b;
}
static int64_t rest64(int64_t a, int64_t b)
{
	return !b || b == -1 ? b : a % b;
}
struct pair {
	int32_t a;
	uint64_t b;
	uint8_t c;
	int16_t d;
	uint32_t e : 11;
};
static int32_t g1;
static int16_t g2;
static int16_t a3[16];
static uint8_t a4[7];
static struct pair one, many[8];

static int16_t f5(int32_t p6, int8_t p7, uint32_t p8)
{
	uint64_t v9 = (a3[one.b & 15] ? ((int16_t)0 - 10ull) : quotient64((int32_t)(-2147483647ll - 1), p6));
	uint16_t l10[2] = { p8 };
	many[((uint32_t)2 - p6) & 7].d &= (one.d - ((int64_t)(-36ll - 1) - g2));
	p7 = (((uint64_t)v9 / ((uint32_t)l10[(a4[(uint32_t)p6 % 7] + p7) & 1] | 1u)) |
	      ((uint8_t)p6 << (a4[(uint32_t)quotient32((uint8_t)3, v9) % 7] & 7)));
	if (one.b) {
		for (int i11 = (int)(((p7 & one.a) > ((uint32_t)v9)) & 1); i11 > 0; i11--) {
			many[i11 & 7].e--;
			for (int i12 = (int)((((uint8_t)l10[i11 & 1] >> (l10[i11 & 1] & 7)) || (i11 && g1)) & 3);
			     i12 > 0; i12--) {
				l10[2ll & 1] *= g1;
				one.b &= (int32_t)(-2147483647ll - 1);
			}
		}
		p8 = ((int16_t)(p6 + 18446744073709551615ull));
	}
	if ((((int32_t)(-2147483647ll - 1) | p6) - ((int16_t)2 + p8))) {
		switch ((quotient32(one.b, v9) || ((uint16_t)2 * one.d)) & 7) {
		case 3:
			g1--;
			break;
		case 7:
			p6 |= (one.e || (int32_t)3);
			one.e *= (487351828486486591ll + l10[(one.e & one.d) & 1]);
			break;
		case 6:
			for (int i13 = 0; i13 < 100; i13 += 1) {
				one.d += (p6 + i13);
			}
			break;
		case 4:
			l10[(-l10[1]) & 1] |=
				(l10[1] ? (l10[(p6 ? g1 : a4[(uint32_t)((int32_t)2147483646 + one.e) % 7]) & 1] >= v9)
					: p7);
			p7 &= g1;
			break;
		default:
			g1 &= (((uint8_t)0 - a4[2]) ? (one.d + v9) : (int8_t)86);
		}
	} else {
		if (((one.c ^ g2) ^ ((uint64_t)v9 << ((int16_t)1 & 63)))) {
			many[((uint64_t)p8 / ((uint32_t)l10[0] | 1u)) & 7].d = l10[(!(int32_t)37) & 1];
			g2 ^= ((uint64_t)(one.d ? one.d : one.d) /
			       ((uint32_t)(l10[(18446744073709551614ull | a4[(uint32_t)one.a % 7]) & 1] |
					   a3[((uint64_t)one.e % ((uint32_t)p8 | 1u)) & 15]) |
				1u));
		}
	}
	return ((uint8_t)(l10[(p8 - a3[((uint32_t)4294967295 ^ 2ll) & 15]) & 1] & (uint32_t)4294967295));
}
static int32_t f14(int64_t p15, int64_t p16, int8_t p17)
{
	uint8_t v18 = one.a;
	uint8_t *q19 = a4 + ((uint32_t)(one.a + p17) % 3);
	uint64_t *h20 = malloc(4 * sizeof(uint64_t));
	if (!h20)
		return 1;
	for (int i = 0; i < 4; i++)
		h20[i] = i * 18446744073709551615ull;
	one.d += (-(int16_t)10);
	a4[(uint32_t)(q19[(uint32_t)((uint64_t)(uint8_t)3 % ((uint32_t)p16 | 1u)) % 3] - (uint32_t)4294967295) % 7] =
		p15;
	for (int i21 = 0; i21 < 4; i21++) {
		for (int i22 = 0; i22 < 7; i22++) {
			uint16_t v23 = ((uint8_t)((int8_t)84 + v18) >> ((one.a + 10ull) & 7));
			g2 = f5((quotient64(q19[(uint32_t)i22 % 3], g2) - i22),
				((uint64_t)h20[i21 & 3] % ((uint32_t)(uint32_t)4294967295 | 1u)),
				(p15 + ((int64_t)p16)));
			p16 -= (quotient64((uint16_t)484, v18) || ((int8_t)p15 % 20));
		}
	}
	p17 += ((int64_t)g1);
	free(h20);
	return (((int8_t)q19[(uint32_t)p16 % 3]) ? (one.a ? g1 : v18) : one.a);
}
static uint64_t mix(uint64_t h, const void *data, uint32_t n)
{
	const uint8_t *p = data;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}
static uint64_t sum(uint64_t h)
{
	h = mix(h, &g1, sizeof(g1));
	h = mix(h, &g2, sizeof(g2));
	h = mix(h, a3, sizeof(a3));
	h = mix(h, a4, sizeof(a4));
	h = h * 31 + one.a + one.b * 3 + one.c * 5 + one.d * 7 + one.e * 11;
	for (int i = 0; i < 8; i++)
		h = h * 33 + many[i].a + many[i].b * 3 + many[i].c * 5 + many[i].d * 7 + many[i].e * 11;
	return h;
}
int random_program(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[64] = { 0 };
	uint64_t out[4], h = 0xcbf29ce484222325ull;
	uint32_t n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	g1 = (int32_t)in[0] * (int32_t)2147483646;
	g2 = (int16_t)in[1] * (int16_t)0;
	for (int i = 0; i < 16; i++)
		a3[i] = in[(i + 2) & 63] * (int16_t)0;
	for (int i = 0; i < 7; i++)
		a4[i] = in[(i + 3) & 63] * (uint8_t)254;
	one.a = (int32_t)in[4] * (int32_t)2147483647;
	one.b = (uint64_t)in[5] * 7ull;
	one.c = (uint8_t)in[6] * (uint8_t)0;
	one.d = (int16_t)in[7] * (int16_t)(-3ll - 1);
	one.e = (uint32_t)in[8] * (uint32_t)4294967294;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f5((int32_t)(in[7] * (int32_t)10), (int8_t)(in[40] * (int8_t)(-126ll - 1)),
			      (uint32_t)(in[54] * (uint32_t)7));
	out[2] = (uint64_t)f14((int64_t)(in[6] * (int64_t)(-91ll - 1)), (int64_t)(in[36] * 2ll),
			       (int8_t)(in[25] * (int8_t)(-0ll - 1)));
	out[3] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
