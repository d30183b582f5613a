/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 491. */
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
static uint64_t g2;
static int64_t a3[13];
static uint8_t a4[7];
static int64_t a5[7];
static const uint8_t k6[13] = { (uint8_t)84, (uint8_t)137, (uint8_t)254, (uint8_t)10, (uint8_t)255,
				(uint8_t)3,  (uint8_t)3,   (uint8_t)255, (uint8_t)2,  (uint8_t)10,
				(uint8_t)7,  (uint8_t)10,  (uint8_t)2 };
static struct pair one, many[8];

static int32_t f7(uint32_t p8, uint32_t p9, struct pair s)
{
	uint16_t v10 = ((uint8_t)221 ? ((uint32_t)s.d % 4) : one.c);
	uint16_t l11[16] = { (one.b && s.d) };
	memset(many, (p8 != one.b), sizeof(many) / 2);
	one.c += (~s.c);
	many[v10 & 7].b ^= s.d;
	p8 *= (-(v10 - one.d));
	if (((uint64_t)s.b % ((uint32_t)one.b | 1u))) {
		many[4].d -= ((s.c || (int16_t)2) != (-v10));
		one.b++;
	}
	return s.e;
}
static int16_t f12(void)
{
	int8_t v13 = ((one.c * a5[(uint32_t)((uint32_t)3137464621 && (uint8_t)2) % 7]) + (one.c || one.a));
	int16_t l14[8] = { (!a4[(uint32_t)(v13 ? v13 : v13) % 7]) };
	int64_t *q15 = a5 + ((uint32_t)(one.b + 9223372036854775807ll) % 3);
	if (v13)
		q15 = &a3[(uint32_t)(a5[1] | l14[(one.b != a5[(uint32_t)(one.a | a5[6]) % 7]) & 7]) % 6];
	for (int i16 = 0; i16 < 64; i16++) {
		l14[i16 & 7] |= (int8_t)7;
	}
	if (((uint16_t)((int32_t)7 * (int64_t)(-9223372036854775806ll - 1)) >>
	     (((int16_t)(-1ll - 1) +
	       q15[(uint32_t)((uint8_t)l14[(one.c | q15[(uint32_t)l14[((uint32_t)v13 << (l14[4] & 31)) & 7] % 3]) & 7]
			      << (one.b & 7)) %
		   3]) &
	      15))) {
		memset(many, g1, sizeof(many) / 2);
		l14[one.c & 7] *= g1;
	}
	for (int i17 = 4; i17 > 0; i17--) {
		one.a -= l14[(a5[(uint32_t)(one.e | v13) % 7] * one.d) & 7];
		for (int i18 = 0; i18 < 16; i18++) {
			if (((one.b + (int32_t)(-2147483646ll - 1)) * 68ull)) {
				g1 += (-((uint64_t)q15[(uint32_t)i18 % 3] / ((uint32_t)(int16_t)10 | 1u)));
			}
			one.a = f7((((uint32_t)3172330278 + l14[i18 & 7]) + (g1 || one.e)),
				   (l14[3] ? (a5[(uint32_t)i18 % 7] + a4[1])
					   : (a3[(uint32_t)i18 % 13] - a3[(uint32_t)i18 % 13])),
				   many[i18 & 7]);
		}
	}
	a4[(uint32_t)(int16_t)(-0ll - 1) % 7] -= (int8_t)126;
	q15[(uint32_t)(uint16_t)7 % 3] += ((one.e <= g1) + v13);
	return q15[(uint32_t)((int64_t)g1 >> (l14[4] & 63)) % 3];
}
static int64_t t19(uint32_t x, int64_t y)
{
	return (!a4[(uint32_t)(-(int16_t)(-32766ll - 1)) % 7]);
}
static int64_t t20(uint32_t x, int64_t y)
{
	return ((77ull ^ y) * one.a);
}
static int64_t t21(uint32_t x, int64_t y)
{
	y &= x;
	return one.a;
}
static int64_t t22(uint32_t x, int64_t y)
{
	return ((2ull * y) || ((int16_t)(int8_t)(-1ll - 1)));
}
static int64_t (*const table[])(uint32_t, int64_t) = { t19, t20, t21, t22 };
static int64_t f23(uint32_t x, int64_t y)
{
	for (int i = 0; i < 3; i++) {
		int64_t (*run)(uint32_t, int64_t) = table[(x + i) & 3];

		y ^= run(x * 3 + i, y);
	}
	return y;
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
	g1 = (uint64_t)in[0] * 1ull;
	g2 = (uint64_t)in[1] * 10ull;
	for (int i = 0; i < 13; i++)
		a3[i] = in[(i + 2) & 63] * 2051156789973759035ll;
	for (int i = 0; i < 7; i++)
		a4[i] = in[(i + 3) & 63] * (uint8_t)33;
	for (int i = 0; i < 7; i++)
		a5[i] = in[(i + 4) & 63] * 9223372036854775806ll;
	one.a = (int32_t)in[6] * (int32_t)935210391;
	one.b = (uint64_t)in[7] * 7ull;
	one.c = (uint8_t)in[8] * (uint8_t)3;
	one.d = (int16_t)in[9] * (int16_t)(-7ll - 1);
	one.e = (uint32_t)in[10] * (uint32_t)1;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f7((uint32_t)(in[24] * (uint32_t)4294967295), (uint32_t)(in[7] * (uint32_t)4294967295),
			      many[3]);
	out[2] = (uint64_t)f12();
	out[3] = (uint64_t)f23((uint32_t)(in[62] * (uint32_t)2), (int64_t)(in[41] * 7ll));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
