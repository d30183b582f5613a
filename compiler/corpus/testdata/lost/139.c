/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 139. */
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
static uint8_t g1;
static uint32_t g2;
static uint32_t g3;
static int64_t g4;
static uint8_t a5[32];
static int32_t a6[32];
static const int64_t k7[4] = { 3687833200332452349ll, (int64_t)(-1ll - 1), 0ll, (int64_t)(-1ll - 1) };
static struct pair one, many[8];

static uint16_t f8(uint64_t p9, int64_t p10, uint16_t p11)
{
	uint64_t v12 = ((uint32_t)4294967294 < (g1 & one.d));
	int32_t *q13 = a6 + (p9 & 15);
	one.a -= ((int32_t)(one.e - p10));
	g4 -= ((uint16_t)a5[(9223372036854775806ll - one.c) & 31] << ((48ull + one.e) & 15));
	p9 += ((v12 + v12) || (p10 == q13[(g3 - p9) & 15]));
	v12--;
	switch (((int16_t)rest64(p9, one.d) >> ((v12 + p10) & 15)) & 7) {
	case 0:
		a6[(p9 - q13[(-g2) & 15]) & 31]--;
		p10 = ((uint16_t)(p9 || g2));
		break;
	case 5:
		v12--;
		for (int i14 = 0; i14 < (int)(((p11 || 8718132491382700152ull) + (one.d >= g1)) & 30); i14++) {
			int i15 = 0;
			for (;;) {
				if (++i15 > 2 || ((uint8_t)(q13[i15 & 15] - one.e)))
					break;
				p9 |= (v12 & (one.b && one.a));
			}
		}
		break;
	case 7:
		for (int i16 = 100; i16 > 0; i16--) {
			if (((uint16_t)(one.c == p10) % 90)) {
				p9 = (int32_t)75;
			}
		}
		for (int i17 = 7; i17 > 0; i17--) {
			if (((uint32_t)((int16_t)3 + p9) / (((one.b + a6[i17 & 31]) & 0x3fff) + 1))) {
				v12 ^= ((i17 & p9) | p9);
				one.b = ((int16_t)(g3 && 10ll));
			}
			a6[((uint16_t)7 ? one.d : k7[i17 & 3]) & 31] &= (~10ll);
		}
		break;
	default:
		a5[(-p9) & 31] = one.c;
	}
	return ((int64_t)((int64_t)(-3ll - 1) && p10));
}
static uint8_t f18(void)
{
	int8_t v19 = (((uint16_t)a6[((int64_t)g4) & 31] / 93) ? ((int8_t)one.e / 1) : ((uint8_t)60 == g4));
	int64_t *h20 = malloc(16 * sizeof(int64_t));
	if (!h20)
		return 1;
	for (int i = 0; i < 16; i++)
		h20[i] = i * 79ll;
	one.e += ((a5[(h20[(v19 + g3) & 15] + one.a) & 31] && one.e) + (uint32_t)4294967295);
	v19 = f8((!(18446744073709551615ull || a6[one.c & 31])),
		 ((uint64_t)(h20[(v19 > one.e) & 15] || one.b) >>
		  (((uint32_t)(uint16_t)1 % (((uint16_t)7 & 0x3fff) + 1)) & 63)),
		 ((uint8_t)h20[(uint16_t)81 & 15]));
	if ((g1 != (v19 <= (uint16_t)27297))) {
		int32_t v21 = (uint16_t)0;
		switch (one.e & 7) {
		case 5:
			g1 = (one.b & (g2 + 3ll));
		case 4:
			if (((v21 ^ v21) && v21)) {
				one.c = (g2 | ((uint8_t)g2 << (v21 & 7)));
				v21 ^= ((one.d - (uint8_t)3) | ((uint32_t)h20[8]));
			}
			break;
		case 0:
			v19 = f8((!one.d), ((int8_t)(!(uint16_t)65534) >> ((v21 * one.d) & 7)),
				 ((one.b ^ v21) + (v21 & g3)));
			one.c = (int8_t)1;
			break;
		default:
			g3 += (((uint8_t)a6[3] % 43) ^ ((uint8_t)10 | h20[((int8_t)127 || (uint16_t)2) & 15]));
		}
	}
	h20[6]--;
	if (one.d) {
		h20[(h20[v19 & 15] & (int8_t)0) & 15] = (((uint32_t)v19) - (uint16_t)2);
		many[h20[((int8_t)(-1ll - 1) ? h20[2] : (uint16_t)2) & 15] & 7].b =
			((h20[(one.a & one.e) & 15] | v19) <=
			 ((uint8_t)h20[((uint8_t)h20[(!(int64_t)(-2ll - 1)) & 15] >> (h20[(int8_t)123 & 15] & 7)) & 15]
			  << (18446744073709551614ull & 7)));
	}
	free(h20);
	return g2;
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
	g1 = (uint8_t)in[0] * (uint8_t)2;
	g2 = (uint32_t)in[1] * (uint32_t)4294967295;
	g3 = (uint32_t)in[2] * (uint32_t)4294967294;
	g4 = (int64_t)in[3] * 3ll;
	for (int i = 0; i < 32; i++)
		a5[i] = in[(i + 4) & 63] * (uint8_t)6;
	for (int i = 0; i < 32; i++)
		a6[i] = in[(i + 5) & 63] * (int32_t)2;
	one.a = (int32_t)in[7] * (int32_t)(-938452071ll - 1);
	one.b = (uint64_t)in[8] * 78ull;
	one.c = (uint8_t)in[9] * (uint8_t)10;
	one.d = (int16_t)in[10] * (int16_t)(-10ll - 1);
	one.e = (uint32_t)in[11] * (uint32_t)10;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8((uint64_t)(in[2] * 14228702935155498853ull),
			      (int64_t)(in[41] * (int64_t)(-9223372036854775807ll - 1)),
			      (uint16_t)(in[61] * (uint16_t)16163));
	out[2] = (uint64_t)f18();
	out[3] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
