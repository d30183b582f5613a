/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 165. */
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
static uint8_t g3;
static int32_t a4[4];
static uint8_t a5[32];
static const int32_t k6[7] = { (int32_t)1,	    (int32_t)1,		 (int32_t)10,	     (int32_t)1,
			       (int32_t)(-1ll - 1), (int32_t)(-0ll - 1), (int32_t)(-7ll - 1) };
static const int8_t k7[5] = { (int8_t)7, (int8_t)(-0ll - 1), (int8_t)(-110ll - 1), (int8_t)(-0ll - 1), (int8_t)1 };
static struct pair one, many[8];

static int32_t f8(void)
{
	uint64_t v9 = ((one.b ^ one.e) | (one.b | (uint16_t)7));
	int32_t *q10 = a4 + ((v9 - v9) & 1);
	one.d = (~((uint16_t)v9 >> (k6[(uint32_t)(g3 * 18446744073709551615ull) % 7] & 15)));
	if ((!((uint32_t)(uint16_t)65534 >> (g2 & 31)))) {
		one.e = one.e;
		for (int i11 = 4; i11 > 0; i11--) {
			v9 += (q10[i11 & 1] | ((uint16_t)v9 << (a5[i11 & 31] & 15)));
		}
	} else {
		int8_t v12 = ((q10[0] + a4[(k6[3] - (int8_t)1) & 3]) +
			      (q10[q10[((uint8_t)v9 << (57ull & 7)) & 1] & 1] | (int8_t)(-10ll - 1)));
		memset(many, (31ll ^ v9), sizeof(many) / 2);
		v9 |= g3;
	}
	if ((v9 + (18446744073709551615ull * (int32_t)1))) {
		many[0].d &= quotient64((a5[(int32_t)(-2ll - 1) & 31] - q10[((int8_t)(-18ll - 1) == v9) & 1]),
					(int16_t)(-3ll - 1));
	}
	q10[1] = (one.c && (g2 ? one.e : q10[g3 & 1]));
	return v9;
}
static int16_t f13(int64_t p14, uint16_t p15, uint16_t p16)
{
	uint32_t v17 = p16;
	one.d++;
	p15--;
	return ((p14 | v17) | (p14 != a4[(one.a <= p15) & 3]));
}
static uint32_t f18(int32_t p19, int32_t p20, int32_t p21)
{
	int64_t v22 = ((uint32_t)((uint16_t)65534 & p19));
	uint8_t l23[4] = { 18446744073709551614ull };
	int32_t *q24 = a4 + (1);
	for (int i25 = 16; i25 > 0; i25--) {
		if (quotient64((one.d ? one.b : 3ull), i25)) {
			p19 = f8();
			if ((int16_t)2) {
				int32_t v26 = g1;
				one.d *= (quotient64(v26, g1) * i25);
				a5[i25 & 31] += (p19 <= (g3 & one.b));
			}
		} else {
			if ((((int8_t)a5[((int8_t)127 |
					  l23[((uint64_t)l23[p20 & 3] % ((uint32_t)q24[i25 & 1] | 1u)) & 3]) &
					 31] /
			      28) >= (-p20))) {
				p20 ^= i25;
				p20 |= (one.b <= ((uint32_t)10 - v22));
			} else {
				uint64_t v27 = 3ull;
				many[i25 & 7].e &= ((v22 || 9223372036854775806ll)
							    ? (uint8_t)7
							    : ((uint32_t)one.b << (l23[0] & 31)));
				g2 *= ((v27 && p19) | k7[(uint32_t)i25 % 5]);
			}
			q24[1] = (-(-k6[4]));
		}
		p19 = (!9223372036854775807ll);
	}
	many[(q24[(q24[(18446744073709551614ull ^ k6[2]) & 1] <= one.a) & 1] - one.b) & 7].b = (!(g3 == p19));
	return one.e;
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
	uint64_t out[5], h = 0xcbf29ce484222325ull;
	uint32_t n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	g1 = (uint64_t)in[0] * 18446744073709551615ull;
	g2 = (uint32_t)in[1] * (uint32_t)2736514715;
	g3 = (uint8_t)in[2] * (uint8_t)2;
	for (int i = 0; i < 4; i++)
		a4[i] = in[(i + 3) & 63] * (int32_t)3;
	for (int i = 0; i < 32; i++)
		a5[i] = in[(i + 4) & 63] * (uint8_t)254;
	one.a = (int32_t)in[7] * (int32_t)1;
	one.b = (uint64_t)in[8] * 19ull;
	one.c = (uint8_t)in[9] * (uint8_t)103;
	one.d = (int16_t)in[10] * (int16_t)7;
	one.e = (uint32_t)in[11] * (uint32_t)2;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8();
	out[2] = (uint64_t)f13((int64_t)(in[32] * (int64_t)(-9223372036854775807ll - 1)),
			       (uint16_t)(in[60] * (uint16_t)65534), (uint16_t)(in[54] * (uint16_t)7));
	out[3] = (uint64_t)f18((int32_t)(in[62] * (int32_t)10), (int32_t)(in[44] * (int32_t)2),
			       (int32_t)(in[40] * (int32_t)958780087));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
