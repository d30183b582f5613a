/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 184. */
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
static uint32_t g1;
static int32_t g2;
static int8_t g3;
static uint64_t a4[8];
static uint16_t a5[7];
static int64_t a6[13];
static const uint8_t k7[7] = {
	(uint8_t)2, (uint8_t)1, (uint8_t)254, (uint8_t)42, (uint8_t)255, (uint8_t)10, (uint8_t)7
};
static struct pair one, many[8];

static int32_t f8(uint64_t p9)
{
	uint64_t v10 = (!(10ll | k7[(uint32_t)((int8_t)(-23ll - 1) ^ p9) % 7]));
	uint16_t l11[2] = { (one.b ^ (uint32_t)3) };
	uint64_t *q12 = a4 + (((int16_t)l11[((uint16_t)one.c << ((int16_t)3 & 15)) & 1] % 72) & 3);
	double d = rest64(p9, l11[1]);
	g2 *= (((uint32_t)3 + (uint8_t)2) == (int16_t)44);
	one.e -= ((l11[(v10 & v10) & 1] - l11[1]) < (a6[(uint32_t)((uint8_t)2 - g3) % 13] + one.a));
	for (int i13 = 0; i13 < 31; i13 += 3) {
		for (int i14 = 0; i14 < 7; i14++) {
			uint8_t v15 = (uint16_t)54220;
			switch (((one.b + (uint32_t)1) & (~l11[i14 & 1])) & 7) {
			case 1:
				v10 *= (int16_t)2;
				break;
			case 2:
				one.b -= (i14 + v10);
				g2 = ((k7[(uint32_t)i14 % 7] ^ a5[3]) ? ((int16_t)v10 >> (3ull & 15)) : (uint8_t)255);
			case 6:
				one.c = (((int64_t)p9) - v15);
				a4[i14 & 7] &= g1;
				break;
			default:
				v15 ^= ((int32_t)(9223372036854775807ll & k7[6]));
			}
		}
	}
	g1 += d > -1e9 && d < 1e9 ? (int64_t)(d * 16) : 5;
	return ((int64_t)(v10 - one.d) >> ((v10 + q12[(l11[g1 & 1] & (uint8_t)254) & 3]) & 63));
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
	h = mix(h, a6, sizeof(a6));
	h = h * 31 + one.a + one.b * 3 + one.c * 5 + one.d * 7 + one.e * 11;
	for (int i = 0; i < 8; i++)
		h = h * 33 + many[i].a + many[i].b * 3 + many[i].c * 5 + many[i].d * 7 + many[i].e * 11;
	return h;
}
int random_program(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[64] = { 0 };
	uint64_t out[3], h = 0xcbf29ce484222325ull;
	uint32_t n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	g1 = (uint32_t)in[0] * (uint32_t)3024449559;
	g2 = (int32_t)in[1] * (int32_t)2147483647;
	g3 = (int8_t)in[2] * (int8_t)0;
	for (int i = 0; i < 8; i++)
		a4[i] = in[(i + 3) & 63] * 10ull;
	for (int i = 0; i < 7; i++)
		a5[i] = in[(i + 4) & 63] * (uint16_t)0;
	for (int i = 0; i < 13; i++)
		a6[i] = in[(i + 5) & 63] * (int64_t)(-10ll - 1);
	one.a = (int32_t)in[7] * (int32_t)7;
	one.b = (uint64_t)in[8] * 10ull;
	one.c = (uint8_t)in[9] * (uint8_t)255;
	one.d = (int16_t)in[10] * (int16_t)10;
	one.e = (uint32_t)in[11] * (uint32_t)68;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8((uint64_t)(in[13] * 3ull));
	out[2] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
