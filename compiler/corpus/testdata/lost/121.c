/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 121. */
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
static uint16_t g1;
static uint64_t g2;
static uint32_t g3;
static int8_t g4;
static int32_t a5[16];
static uint64_t a6[13];
static uint64_t a7[4];
static const int16_t k8[16] = {
	(int16_t)0,	     (int16_t)19473, (int16_t)(-1ll - 1), (int16_t)3,	  (int16_t)0,
	(int16_t)(-1ll - 1), (int16_t)0,     (int16_t)22162,	  (int16_t)32766, (int16_t)(-30898ll - 1),
	(int16_t)1,	     (int16_t)7,     (int16_t)34,	  (int16_t)32,	  (int16_t)0,
	(int16_t)10
};
static struct pair one, many[8];

static uint16_t f9(int8_t p10, uint8_t p11, int16_t p12)
{
	int16_t v13 = (((uint8_t)(uint16_t)7) + ((int64_t)one.d));
	int32_t *q14 = a5 + (((int8_t)10 ^ one.e) & 7);
	g1 *= (!(g2 && p11));
	v13 ^= ((v13 + k8[((uint32_t)a7[((uint32_t)0 & q14[((uint16_t)p12 % 19) & 7]) & 3] << (q14[3] & 31)) & 15]) |
		(-(int8_t)47));
	if (((one.d <= 1304442257150616368ull) ? p10 : (p12 ^ g1))) {
		for (int i15 = 0; i15 < 100; i15++) {
			many[i15 & 7].d--;
		}
	} else {
		one.c ^= ((v13 + (uint16_t)10) >= rest64(0ll, one.d));
	}
	p11++;
	g2--;
	return (~p10);
}
static int64_t f16(int16_t p17)
{
	int32_t v18 = (((uint8_t)g3) ^ (p17 - p17));
	uint64_t *q19 = a6 + ((uint32_t)(~v18) % 6);
	if ((((int32_t)(-151518850ll - 1) & one.c) || (!(int32_t)(-826976927ll - 1))))
		q19 = &a7[(one.b ^ p17) & 1];
	p17--;
	for (int i20 = 0; i20 < 31; i20 += 4) {
		int32_t v21 = ((uint16_t)0 & (p17 || one.e));
		g4 = f9((((uint32_t)51 | v21) - (q19[i20 & 1] - v21)), (g1 ? (-a5[12]) : (a7[i20 & 3] | (uint16_t)1)),
			((-one.a) * (a6[(uint32_t)i20 % 13] + a5[(v21 == g2) & 15])));
		one.c++;
	}
	if ((one.a & ((uint32_t)a7[(7ull ? (uint8_t)6 : (uint32_t)0) & 3] << (v18 & 31)))) {
		g3 = f9(v18, ((q19[p17 & 1] > p17) * (g4 - (uint8_t)179)),
			((one.a * p17) ? ((uint32_t)(int32_t)1) : (g1 & (uint16_t)3)));
		switch (((~(uint32_t)3010655118) - (one.d - q19[(22ull + g3) & 1])) & 7) {
		case 0:
			switch (((q19[((uint64_t)one.a / ((uint32_t)p17 | 1u)) & 1] & (int8_t)51) +
				 (one.e != q19[(a6[(uint32_t)one.a % 13] - q19[1]) & 1])) &
				7) {
			case 2:
				one.e -= ((uint64_t)(q19[k8[v18 & 15] & 1] & one.e));
				break;
			case 0:
				q19[((uint32_t)2 > v18) & 1] &= ((v18 * p17) & (g3 * (int16_t)24642));
				break;
			case 5:
				one.d ^= (~(one.b | (int8_t)126));
				break;
			default:
				many[one.c & 7].d = ((uint32_t)((uint64_t)(uint8_t)2 / ((uint32_t)p17 | 1u)) %
						     ((14389829647913448500ull & 0x3fff) + 1));
			}
			if ((p17 + (g3 * a7[(uint8_t)7 & 3]))) {
				g1 = (((uint8_t)2 | v18) - ((uint32_t)1 | q19[q19[(one.e < one.c) & 1] & 1]));
			}
			break;
		case 6:
			p17++;
			memmove(many + (q19[1] & 3),
				many + (((uint32_t)g4 / (((uint32_t)4294967294 & 0x3fff) + 1)) & 3),
				4 * sizeof(many[0]));
		default:
			g3 = (~(k8[g1 & 15] * p17));
		}
	}
	for (int i22 = (int)((a6[(uint32_t)(one.e ? one.b : one.b) % 13] > (-p17)) & 7); i22 > 0; i22--) {
		for (int i23 = 0; i23 < (int)((uint16_t)65535 & 1); i23++) {
			p17 = f9(i23, q19[(i22 & i23) & 1], v18);
			int i24 = 0;
			do {
				many[i24 & 7].d = ((p17 && a7[i22 & 3]) + q19[0]);
			} while (++i24 < 7 && ((int8_t)126 >= (~(uint16_t)7)));
		}
		g2 = (int32_t)7;
	}
	return one.a;
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
	h = mix(h, &g3, sizeof(g3));
	h = mix(h, &g4, sizeof(g4));
	h = mix(h, a5, sizeof(a5));
	h = mix(h, a6, sizeof(a6));
	h = mix(h, a7, sizeof(a7));
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
	g1 = (uint16_t)in[0] * (uint16_t)3;
	g2 = (uint64_t)in[1] * 2ull;
	g3 = (uint32_t)in[2] * (uint32_t)10;
	g4 = (int8_t)in[3] * (int8_t)(-1ll - 1);
	for (int i = 0; i < 16; i++)
		a5[i] = in[(i + 4) & 63] * (int32_t)(-58ll - 1);
	for (int i = 0; i < 13; i++)
		a6[i] = in[(i + 5) & 63] * 2ull;
	for (int i = 0; i < 4; i++)
		a7[i] = in[(i + 6) & 63] * 7ull;
	one.a = (int32_t)in[8] * (int32_t)(-2ll - 1);
	one.b = (uint64_t)in[9] * 0ull;
	one.c = (uint8_t)in[10] * (uint8_t)2;
	one.d = (int16_t)in[11] * (int16_t)3;
	one.e = (uint32_t)in[12] * (uint32_t)10;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f9((int8_t)(in[44] * (int8_t)(-3ll - 1)), (uint8_t)(in[22] * (uint8_t)7),
			      (int16_t)(in[26] * (int16_t)42));
	out[2] = (uint64_t)f16((int16_t)(in[52] * (int16_t)1));
	out[3] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
