/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 931. */
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
static int64_t g2;
static uint32_t g3;
static int8_t g4;
static uint16_t a5[4];
static uint16_t a6[32];
static const int16_t k7[8] = {
	(int16_t)(-21841ll - 1), (int16_t)(-2ll - 1), (int16_t)(-10ll - 1), (int16_t)(-55ll - 1),
	(int16_t)(-2ll - 1),	 (int16_t)7,	      (int16_t)22147,	    (int16_t)(-2ll - 1)
};
static struct pair one, many[8];

static uint8_t f8(int32_t p9, uint64_t p10, struct pair s)
{
	uint16_t v11 = g2;
	uint64_t l12[64] = { (v11 | (int8_t)7) };
	uint16_t *q13 = a6 + ((one.a * g2) & 15);
	if (a5[(one.d | (int8_t)(-40ll - 1)) & 3])
		q13 = &a5[0];
	switch (((q13[(uint32_t)0 & 1] + a6[((uint32_t)one.e / ((s.c & 0x3fff) + 1)) & 31]) +
		 ((int8_t)p10 >> (s.d & 7))) &
		7) {
	case 1:
		l12[((uint32_t)7 & s.a) & 63] = (((uint16_t)10 + (uint32_t)74) + s.a);
		break;
	case 4:
		g3++;
		break;
	default:
		g1 = ((uint32_t)g3 << ((s.b && one.b) & 31));
	}
	q13[(one.a | one.c) & 1] += ((uint8_t)(g3 ? g2 : one.a));
	switch (((g1 + g2) - ((int16_t)0 ? s.b : s.a)) & 7) {
	case 4:
		s.c *= (k7[(uint32_t)10 & 7] + (k7[(g1 + a5[g1 & 3]) & 7] ? one.e : one.c));
		break;
	case 5:
		one = many[0];
		break;
	case 3:
		if ((int16_t)2) {
			for (int i14 = 0; i14 < (int)(((one.c != 9223372036854775807ll) - (one.c | g2)) & 30); i14++) {
				s.b = s.b;
			}
		}
		break;
	case 2:
		g2++;
		break;
	default:
		l12[(s.c > s.b) & 63] |=
			(((uint64_t)(uint32_t)2 >> (k7[(g1 == 7ll) & 7] & 63)) | ((int8_t)127 * (uint32_t)1));
	}
	return (3ll || (one.d | s.c));
}
static int64_t f15(int16_t p16, uint8_t p17)
{
	uint16_t v18 = (((uint16_t)7 - g3) ? ((uint8_t)a5[2] << (p17 & 7)) : one.e);
	int32_t l19[13] = { ((uint64_t)a6[((uint32_t)(int8_t)86 / (((int8_t)0 & 0x3fff) + 1)) & 31] %
			     ((uint32_t)p17 | 1u)) };
	uint16_t *q20 = a6 + (1);
	if ((((int32_t)3 - k7[5]) ? (g2 + v18) : (a5[((uint32_t)p16) & 3] + (uint32_t)0)))
		q20 = &a5[g3 & 1];
	v18++;
	one.d = f8((one.b | q20[1]), (((int8_t)126 - (uint8_t)254) + (q20[(int8_t)(-3ll - 1) & 1] - p16)),
		   many[(v18 - a6[p16 & 31]) & 7]);
	one.a &= (q20[1] + ((uint16_t)65534 == (uint32_t)4294967295));
	g3 = (q20[g4 & 1] ^ (!g2));
	p17 = (v18 + l19[(uint32_t)(v18 - (uint16_t)18333) % 13]);
	return (p17 ? ((uint32_t)g2 % 84) : (p17 & q20[(7ll * v18) & 1]));
}
static int32_t f21(uint16_t p22, int64_t p23, uint64_t p24)
{
	uint8_t v25 = ((9223372036854775807ll >= a6[((uint8_t)0 ^ (int8_t)2) & 31]) - (g1 && p24));
	for (int i26 = 0; i26 < 16; i26++) {
		int32_t v27 = ((uint16_t)1 - (p23 + (int8_t)(-7ll - 1)));
		memmove(many + (0), many + (i26 & 3), 4 * sizeof(many[0]));
		if (quotient64((-9223372036854775806ll), (!g2))) {
			v25 = f8(v25, (~(int8_t)(-0ll - 1)), many[(-(int32_t)7) & 7]);
		}
	}
	p23 &= ((uint32_t)p22 << ((int16_t)2 & 31));
	for (int i28 = 0; i28 < 64; i28++) {
		a5[(v25 ? p24 : i28) & 3]--;
	}
	return ((v25 - p23) | ((uint64_t)(uint8_t)3 >> (p23 & 63)));
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
	uint64_t out[5], h = 0xcbf29ce484222325ull;
	uint32_t n = lambda_read(headers, in, sizeof(in));

	(void)match_data;
	g1 = (uint32_t)in[0] * (uint32_t)0;
	g2 = (int64_t)in[1] * 2606971735927468582ll;
	g3 = (uint32_t)in[2] * (uint32_t)21;
	g4 = (int8_t)in[3] * (int8_t)7;
	for (int i = 0; i < 4; i++)
		a5[i] = in[(i + 4) & 63] * (uint16_t)2;
	for (int i = 0; i < 32; i++)
		a6[i] = in[(i + 5) & 63] * (uint16_t)2;
	one.a = (int32_t)in[7] * (int32_t)2147483646;
	one.b = (uint64_t)in[8] * 996152182334290234ull;
	one.c = (uint8_t)in[9] * (uint8_t)10;
	one.d = (int16_t)in[10] * (int16_t)2;
	one.e = (uint32_t)in[11] * (uint32_t)2;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8((int32_t)(in[52] * (int32_t)(-1950773429ll - 1)), (uint64_t)(in[40] * 7ull), many[3]);
	out[2] = (uint64_t)f15((int16_t)(in[25] * (int16_t)7), (uint8_t)(in[8] * (uint8_t)10));
	out[3] = (uint64_t)f21((uint16_t)(in[16] * (uint16_t)2), (int64_t)(in[1] * 1ll), (uint64_t)(in[61] * 7ull));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
