/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 265. */
#pragma clang diagnostic ignored "-Weverything"
#include <lambda.h>
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
static uint64_t g1;
static uint32_t g2;
static uint16_t g3;
static uint16_t a4[16];
static int64_t a5[64];
static const uint16_t k6[4] = { (uint16_t)10, (uint16_t)65534, (uint16_t)10, (uint16_t)10 };
static const uint16_t k7[64] = { (uint16_t)2,	  (uint16_t)3,	   (uint16_t)65535, (uint16_t)46,    (uint16_t)14,
				 (uint16_t)48,	  (uint16_t)65534, (uint16_t)0,	    (uint16_t)3,     (uint16_t)9,
				 (uint16_t)43,	  (uint16_t)2,	   (uint16_t)7,	    (uint16_t)65535, (uint16_t)65534,
				 (uint16_t)3,	  (uint16_t)3,	   (uint16_t)65534, (uint16_t)37,    (uint16_t)38,
				 (uint16_t)11,	  (uint16_t)7,	   (uint16_t)7,	    (uint16_t)3,     (uint16_t)36,
				 (uint16_t)0,	  (uint16_t)32913, (uint16_t)53214, (uint16_t)7,     (uint16_t)65535,
				 (uint16_t)1,	  (uint16_t)7,	   (uint16_t)12345, (uint16_t)65534, (uint16_t)7,
				 (uint16_t)1,	  (uint16_t)65535, (uint16_t)1,	    (uint16_t)65534, (uint16_t)65534,
				 (uint16_t)10,	  (uint16_t)65534, (uint16_t)1,	    (uint16_t)65534, (uint16_t)22639,
				 (uint16_t)20,	  (uint16_t)10,	   (uint16_t)65535, (uint16_t)25,    (uint16_t)60,
				 (uint16_t)65535, (uint16_t)7,	   (uint16_t)98,    (uint16_t)3,     (uint16_t)3,
				 (uint16_t)7,	  (uint16_t)65535, (uint16_t)7,	    (uint16_t)19,    (uint16_t)65535,
				 (uint16_t)10,	  (uint16_t)65535, (uint16_t)2,	    (uint16_t)65534 };
static struct pair one, many[8];

static uint64_t f8(int64_t p9)
{
	int8_t v10 = ((uint64_t)(k6[p9 & 3] - (int8_t)2) % 50);
	p9 ^= ((p9 | p9) <= (v10 ^ 2ull));
	int i11 = 0;
	do {
		many[i11 & 7].c -= ((!i11) | (int8_t)127);
	} while (++i11 < 2 && ((i11 & p9) + (k7[i11 & 63] + i11)));
	many[(uint8_t)3 & 7].d &= (k7[(one.c & v10) & 63] * (v10 * 534479291959108794ll));
	return p9;
}
static uint32_t f12(void)
{
	uint64_t v13 = k6[g3 & 3];
	g2 = f8((uint8_t)10);
	a5[((int16_t)(int8_t)(-20ll - 1)) & 63] = (-v13);
	many[7].b = ((uint16_t)(8622396694636127870ll + (uint8_t)19) >> (v13 & 15));
	if (v13) {
		for (int i14 = 0; i14 < 100; i14 += 2) {
			for (int i15 = (int)((-(one.d | k7[21])) & 15); i15 > 0; i15--) {
				v13 = ((uint64_t)v13 << (g2 & 63));
				v13 += (((uint64_t)one.c % ((uint32_t)k7[i15 & 63] | 1u)) < (i15 <= a4[i14 & 15]));
			}
		}
		v13 = f8(((v13 | v13) <= (a5[((uint64_t)a4[(v13 | v13) & 15] >> (one.c & 63)) & 63]
						  ? k6[v13 & 3]
						  : (int16_t)(-1ll - 1))));
	} else {
		int32_t v16 = (g1 != (v13 <= 3ll));
		one.d &= ((uint64_t)((uint32_t)18446744073709551615ull << (one.e & 31)) /
			  ((uint32_t)((uint64_t)v13 >> (a4[((int32_t)(-810685215ll - 1) | one.b) & 15] & 63)) | 1u));
		v16 = f8(((uint64_t)(k6[(v16 * 2ll) & 3] <= v13) % ((uint32_t)((uint8_t)v16) | 1u)));
	}
	return ((uint8_t)((uint32_t)(uint32_t)81 << ((int32_t)2 & 31)));
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
	h = mix(h, a4, sizeof(a4));
	h = mix(h, a5, sizeof(a5));
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
	g1 = (uint64_t)in[0] * 1ull;
	g2 = (uint32_t)in[1] * (uint32_t)7;
	g3 = (uint16_t)in[2] * (uint16_t)2;
	for (int i = 0; i < 16; i++)
		a4[i] = in[(i + 3) & 63] * (uint16_t)39;
	for (int i = 0; i < 64; i++)
		a5[i] = in[(i + 4) & 63] * (int64_t)(-9223372036854775807ll - 1);
	one.a = (int32_t)in[7] * (int32_t)113799936;
	one.b = (uint64_t)in[8] * 2ull;
	one.c = (uint8_t)in[9] * (uint8_t)7;
	one.d = (int16_t)in[10] * (int16_t)(-3ll - 1);
	one.e = (uint32_t)in[11] * (uint32_t)7;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8((int64_t)(in[34] * (int64_t)(-0ll - 1)));
	out[2] = (uint64_t)f12();
	out[3] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
