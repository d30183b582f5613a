/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 41. */
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
static uint16_t a2[7];
static struct pair one, many[8];

static uint8_t f3(uint32_t p4, int32_t p5)
{
	uint8_t v6 = (((uint32_t)g1 / ((g1 & 0x3fff) + 1)) + ((uint16_t)one.a));
	uint64_t l7[4] = { one.d };
	switch ((rest32(v6, one.a) * ((int8_t)1 - l7[3])) & 7) {
	case 6:
		one.b *= (((uint32_t)0 - (uint8_t)255) - ((uint16_t)one.d));
		for (int i8 = 0; i8 < 16; i8 += 1) {
			for (int i9 = 31; i9 > 0; i9--) {
				g1 -= ((one.c && (int16_t)7) * (~i9));
			}
		}
		break;
	case 3:
		many[(p5 | p5) & 7].a &= 9223372036854775807ll;
		break;
	default:
		one.c = (!((uint8_t)59 | (uint16_t)2));
	}
	if (one.b) {
		g1 = ((int16_t)((int32_t)2147483646 != one.d) >> ((a2[(uint32_t)p4 % 7] - 7ull) & 15));
		one.e = ((v6 || g1) + (uint8_t)2);
	}
	one.c |= ((uint32_t)l7[(-p4) & 3] << (p5 & 31));
	for (int i10 = (int)((rest64((int32_t)1, one.d) & p5) & 99); i10 > 0; i10--) {
		one.d = ((uint64_t)(-one.a) << (rest64(i10, (int16_t)10) & 63));
		p4 |= (((int64_t)(-9223372036854775807ll - 1) ? one.d : (int16_t)1) || i10);
	}
	one.d &= (p5 | ((uint8_t)7 - (uint32_t)4294967295));
	return ((one.e | l7[((int32_t)(-3ll - 1) <= v6) & 3]) ^ v6);
}
static int16_t f11(uint16_t p12, uint64_t p13)
{
	uint8_t v14 = one.c;
	p13 = f3(p12, (uint8_t)10);
	p12 |= ((!v14) >= (g1 + one.a));
	if (p13) {
		for (int i15 = 0; i15 < 16; i15++) {
			int64_t v16 = (uint32_t)17;
			one.d = g1;
			one = many[i15 & 7];
		}
	}
	for (int i17 = 0; i17 < (int)(((uint64_t)((uint8_t)128 || one.a)) & 6); i17++) {
		uint64_t v18 = (one.c + (one.d < (uint32_t)1));
		p13 = f3((((int64_t)one.c) | (v18 ? v18 : one.a)), i17);
		v18 = ((uint32_t)one.d << ((9223372036854775806ll ^ (uint32_t)4294967294) & 31));
	}
	return ((p13 ? p13 : (int8_t)127) - ((uint32_t)886564050 * one.c));
}
static uint8_t f19(int32_t p20, int32_t p21, int8_t p22)
{
	int8_t v23 = one.c;
	uint32_t l24[8] = { g1 };
	uint32_t *q25 = l24 + ((~(uint8_t)255) & 3);
	for (int i26 = 0; i26 < 16; i26++) {
		one.b--;
		one.b = f3(((10ll + a2[(uint32_t)i26 % 7]) ? (g1 || p20) : (p20 * p20)), (uint16_t)0);
	}
	for (int i27 = 2; i27 > 0; i27--) {
		q25[i27 & 3]++;
	}
	one.a ^= (~g1);
	one.a = f11(one.d, ((~v23) - ((int32_t)p22)));
	return v23;
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
	h = mix(h, a2, sizeof(a2));
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
	g1 = (uint64_t)in[0] * 2ull;
	for (int i = 0; i < 7; i++)
		a2[i] = in[(i + 1) & 63] * (uint16_t)0;
	one.a = (int32_t)in[2] * (int32_t)(-2147483646ll - 1);
	one.b = (uint64_t)in[3] * 18446744073709551614ull;
	one.c = (uint8_t)in[4] * (uint8_t)3;
	one.d = (int16_t)in[5] * (int16_t)(-2ll - 1);
	one.e = (uint32_t)in[6] * (uint32_t)4294967294;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f3((uint32_t)(in[9] * (uint32_t)167782277), (int32_t)(in[55] * (int32_t)2147483647));
	out[2] = (uint64_t)f11((uint16_t)(in[13] * (uint16_t)1), (uint64_t)(in[25] * 1ull));
	out[3] = (uint64_t)f19((int32_t)(in[52] * (int32_t)21), (int32_t)(in[29] * (int32_t)(-3ll - 1)),
			       (int8_t)(in[13] * (int8_t)7));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
