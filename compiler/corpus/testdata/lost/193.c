/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 193. */
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
static uint8_t g1;
static int8_t g2;
static uint64_t a3[7];
static const int16_t k4[5] = { (int16_t)32766, (int16_t)(-32766ll - 1), (int16_t)(-10ll - 1), (int16_t)92,
			       (int16_t)50 };
static struct pair one, many[8];

static int16_t f5(int64_t p6, int32_t p7)
{
	uint8_t v8 = ((p7 + p6) - (p7 + k4[0]));
	uint16_t l9[4] = { (p6 & v8) };
	for (int i10 = 16; i10 > 0; i10--) {
		uint64_t v11 = (((int8_t)g2) && (-p7));
		switch (((!l9[(~(int16_t)10) & 3]) ? (one.e & p7) : (one.c || one.d)) & 7) {
		case 6:
			int i12 = 0;
			do {
				one.c = (((int16_t)l9[i12 & 3]) ^ l9[1]);
			} while (++i12 < 64 &&
				 (((int32_t)(-2147483647ll - 1) + one.e) ? one.a
									 : ((uint16_t)one.b >> ((uint32_t)46 & 15))));
			v11 ^= ((uint64_t)(g2 + p7) << ((v11 || i10) & 63));
			break;
		case 7:
			int i13 = 0;
			for (;;) {
				if (++i13 > 7 || ((uint16_t)(~(int16_t)0) / 91))
					break;
				many[i10 & 7].d ^= ((uint8_t)10 || ((uint32_t)one.c << ((uint8_t)254 & 31)));
			}
			v11 = one.e;
			break;
		case 3:
			l9[i10 & 3] ^= (((int32_t)(-2147483647ll - 1) || (int8_t)(-3ll - 1)) |
					((uint32_t)l9[i10 & 3] % (((uint32_t)845392824 & 0x3fff) + 1)));
			g2 = ((uint16_t)(l9[i10 & 3] - k4[(uint32_t)i10 % 5])
			      << (((int8_t)7 + k4[(uint32_t)i10 % 5]) & 15));
			break;
		case 0:
			one.c &= v11;
			int i14 = 0;
			do {
				one.e = ((int64_t)one.b);
			} while (++i14 < 31 && (~(g2 * i14)));
		default:
			p7 *= (g1 + (one.c ^ v8));
		}
		p6 *= a3[0];
	}
	l9[(p7 ^ (uint8_t)10) & 3] += ((v8 - p6) - ((int16_t)3 - k4[(uint32_t)(p7 < (int8_t)34) % 5]));
	v8 |= ((!one.d) - ((int64_t)9223372036854775806ll));
	many[a3[(uint32_t)one.d % 7] & 7].c |= ((one.d || one.e) + (~one.a));
	return ((l9[(l9[(uint16_t)65534 & 3] - one.d) & 3]
			 ? one.c
			 : a3[(uint32_t)((uint64_t)one.d / ((uint32_t)k4[(uint32_t)p7 % 5] | 1u)) % 7]) -
		(!(uint32_t)10));
}
static uint16_t f15(uint16_t p16, int64_t p17)
{
	uint16_t v18 = ((uint64_t)(p16 ^ one.b) << ((one.d - p17) & 63));
	uint16_t l19[16] = { one.e };
	p17 = f5(rest32((p17 + p16), ((uint64_t)one.e / ((uint32_t)l19[p17 & 15] | 1u))), (int16_t)32766);
	many[((uint8_t)255 || v18) & 7].c |= ((uint64_t)(one.e + one.e) % ((uint32_t)(v18 & (int8_t)127) | 1u));
	return ((int16_t)30 - 2ull);
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
	g1 = (uint8_t)in[0] * (uint8_t)254;
	g2 = (int8_t)in[1] * (int8_t)2;
	for (int i = 0; i < 7; i++)
		a3[i] = in[(i + 2) & 63] * 0ull;
	one.a = (int32_t)in[4] * (int32_t)2147483647;
	one.b = (uint64_t)in[5] * 18446744073709551615ull;
	one.c = (uint8_t)in[6] * (uint8_t)254;
	one.d = (int16_t)in[7] * (int16_t)10;
	one.e = (uint32_t)in[8] * (uint32_t)3;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f5((int64_t)(in[46] * 9223372036854775806ll), (int32_t)(in[6] * (int32_t)83));
	out[2] = (uint64_t)f15((uint16_t)(in[38] * (uint16_t)65535), (int64_t)(in[6] * 0ll));
	out[3] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
