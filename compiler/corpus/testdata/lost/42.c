/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 42. */
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
static uint16_t g1;
static uint16_t g2;
static uint16_t g3;
static uint64_t g4;
static int16_t a5[32];
static const uint32_t k6[16] = { (uint32_t)3,	       (uint32_t)10, (uint32_t)93,	   (uint32_t)41,
				 (uint32_t)0,	       (uint32_t)3,  (uint32_t)63,	   (uint32_t)71,
				 (uint32_t)3240110978, (uint32_t)3,  (uint32_t)3766539662, (uint32_t)811862996,
				 (uint32_t)10,	       (uint32_t)10, (uint32_t)4294967294, (uint32_t)49 };
static const int32_t k7[13] = { (int32_t)3,
				(int32_t)0,
				(int32_t)(-0ll - 1),
				(int32_t)1,
				(int32_t)(-60ll - 1),
				(int32_t)0,
				(int32_t)(-2147483647ll - 1),
				(int32_t)2,
				(int32_t)1,
				(int32_t)10,
				(int32_t)5,
				(int32_t)(-7ll - 1),
				(int32_t)(-10ll - 1) };
static struct pair one, many[8];

static uint16_t f8(int32_t p9, int64_t p10)
{
	uint16_t v11 = (((int8_t)10 >= one.b) + (one.d >= (int64_t)(-9223372036854775806ll - 1)));
	g4 = (uint16_t)2;
	v11 ^= ((int32_t)(one.c || one.b) >> ((-(int32_t)10) & 31));
	p10 += ((uint16_t)(~(uint8_t)3));
	for (int i12 = 2; i12 > 0; i12--) {
		int64_t v13 = ((g1 ? a5[i12 & 31] : i12) | ((int8_t)7 != one.c));
		one.b = ((one.e ? p9 : one.b) + ((int64_t)i12 >> (p9 & 63)));
		g4 = (int16_t)1;
	}
	return (((int64_t)one.b) * (g4 + 18446744073709551615ull));
}
static int16_t f14(uint8_t p15, int64_t p16, uint8_t p17, struct pair s)
{
	int16_t v18 = (int16_t)(-3ll - 1);
	int16_t *q19 = a5 + (((uint64_t)s.b / ((uint32_t)(uint32_t)1 | 1u)) & 15);
	for (int i20 = (int)((s.e - (v18 + 18446744073709551614ull)) & 63); i20 > 0; i20--) {
		int16_t v21 = ((p16 ? g4 : g1) + (uint16_t)33176);
		s.c = f8(((uint8_t)s.b), (int16_t)10);
		one.d |= ((20ull + k7[(uint32_t)i20 % 13]) != q19[i20 & 15]);
	}
	one.d ^= (2ull || (k6[one.c & 15] * one.c));
	for (int i22 = 0; i22 < (int)(((p16 ? p17 : one.d) + (~one.a)) & 3); i22++) {
		int32_t v23 = (g4 && quotient64(p16, (int8_t)126));
		g4 = f8(a5[i22 & 31], (((uint64_t)p15 % ((uint32_t)(int16_t)2 | 1u)) - s.a));
	}
	switch ((uint16_t)10 & 7) {
	case 2:
		memset(many, s.a, sizeof(many) / 2);
		switch (((uint32_t)(p15 - g1) << ((!(int8_t)(-126ll - 1)) & 31)) & 7) {
		case 6:
			for (int i24 = 0;
			     i24 <
			     (int)(((g1 ? s.d : (uint16_t)0) * k6[(k7[6] + k7[(uint32_t)(one.e - one.e) % 13]) & 15]) &
				   63);
			     i24++) {
				g4 = (~(s.a - k6[one.e & 15]));
				g1 += (int64_t)(-1ll - 1);
			}
			break;
		case 3:
			int i25 = 0;
			for (;;) {
				if (++i25 > 4 || g3)
					break;
				q19[i25 & 15] &= ((p17 & s.e) & g4);
			}
			g2 ^= one.e;
			break;
		case 2:
			for (int i26 = 0; i26 < 64; i26++) {
				a5[i26 & 31] = (i26 | ((int16_t)(int32_t)10));
			}
			one.b = (quotient32(g2, s.b) | (one.c - k6[9223372036854775807ll & 15]));
			break;
		case 4:
			if (((s.c | 10ull) && s.d)) {
				many[(k7[(uint32_t)quotient32(g4, (int16_t)(-0ll - 1)) % 13] | (int16_t)26027) & 7].a ^=
					(one.c < ((uint16_t)18446744073709551614ull));
			} else {
				one.a += quotient64(((uint32_t)0 & (uint32_t)0),
						    (s.e * k6[q19[(a5[p17 & 31] + (uint16_t)3) & 15] & 15]));
				g1 = a5[10];
			}
			g4 = (((uint32_t)q19[((uint64_t)one.b % ((uint32_t)k6[(uint8_t)254 & 15] | 1u)) & 15]
			       << (g1 & 31)) |
			      (one.a <= one.e));
			break;
		default:
			s.e ^= (g1 ^ ((uint8_t)one.b));
		}
		break;
	case 5:
		s.e--;
		break;
	case 0:
		if (one.c) {
			g2 ^= ((uint16_t)p15 >> (((uint64_t)s.e << (p17 & 63)) & 15));
		}
		break;
	default:
		one.d = (k7[(uint32_t)(g1 + g3) % 13] & (g3 * one.b));
	}
	return q19[((uint8_t)g4 / 67) & 15];
}
static uint64_t f27(int32_t p28, uint8_t p29, int32_t p30)
{
	int32_t v31 = p29;
	v31 = a5[v31 & 31];
	v31 = ((g3 - 10ull) * ((uint16_t)0 < 5ull));
	if (((uint32_t)(p30 ? one.d : (uint8_t)0))) {
		switch ((p30 | (9223372036854775806ll * p29)) & 7) {
		case 3:
			if ((uint16_t)65534) {
				one.b |= k6[9];
				v31 |= one.b;
			} else {
				uint32_t v32 = one.d;
				p30 += (((uint32_t)10 ? (uint32_t)4294967295 : v32) >=
					(k7[(uint32_t)(p28 - p28) % 13] * k7[(uint32_t)g3 % 13]));
				one.a ^= ((p30 & 2ll) - ((uint16_t)10ull >> (p30 & 15)));
			}
			break;
		case 4:
			v31 = f14((((uint32_t)4294967294 + g3) & (g2 || g4)),
				  ((g1 ? a5[((uint32_t)9223372036854775807ll) & 31] : p30) * ((int16_t)3 + p29)),
				  (int16_t)(-1ll - 1), many[(uint16_t)7 & 7]);
			break;
		case 5:
			one.d = p29;
			p28 &= (~(one.d - g4));
			break;
		default:
			many[((int64_t)(-0ll - 1) != p29) & 7].d ^=
				((p30 ^ k7[(uint32_t)(p28 - (uint8_t)142) % 13]) || one.c);
		}
		p29 = v31;
	} else {
		g4 ^= ((p29 + g4) && v31);
	}
	return (((int64_t)g4 % 1) ? g1 : ((uint8_t)a5[((int16_t)g1 >> (p28 & 15)) & 31]));
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
	g1 = (uint16_t)in[0] * (uint16_t)10;
	g2 = (uint16_t)in[1] * (uint16_t)65535;
	g3 = (uint16_t)in[2] * (uint16_t)46;
	g4 = (uint64_t)in[3] * 52ull;
	for (int i = 0; i < 32; i++)
		a5[i] = in[(i + 4) & 63] * (int16_t)10;
	one.a = (int32_t)in[7] * (int32_t)7;
	one.b = (uint64_t)in[8] * 18446744073709551615ull;
	one.c = (uint8_t)in[9] * (uint8_t)10;
	one.d = (int16_t)in[10] * (int16_t)32766;
	one.e = (uint32_t)in[11] * (uint32_t)4294967294;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f8((int32_t)(in[28] * (int32_t)(-0ll - 1)), (int64_t)(in[46] * 1ll));
	out[2] = (uint64_t)f14((uint8_t)(in[17] * (uint8_t)3), (int64_t)(in[23] * 10ll), (uint8_t)(in[33] * (uint8_t)0),
			       many[3]);
	out[3] = (uint64_t)f27((int32_t)(in[19] * (int32_t)3), (uint8_t)(in[62] * (uint8_t)7),
			       (int32_t)(in[47] * (int32_t)98));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
