/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 274. */
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
static int8_t a2[4];
static const int32_t k3[16] = {
	(int32_t)(-3ll - 1), (int32_t)(-2ll - 1), (int32_t)2,	       (int32_t)10,
	(int32_t)2,	     (int32_t)7,	  (int32_t)(-3ll - 1), (int32_t)2,
	(int32_t)(-2ll - 1), (int32_t)991896003,  (int32_t)(-3ll - 1), (int32_t)67,
	(int32_t)2,	     (int32_t)2,	  (int32_t)2,	       (int32_t)(-2147483646ll - 1)
};
static const uint8_t k4[16] = { (uint8_t)254, (uint8_t)146, (uint8_t)97, (uint8_t)255, (uint8_t)7, (uint8_t)2,
				(uint8_t)1,   (uint8_t)254, (uint8_t)10, (uint8_t)2,   (uint8_t)3, (uint8_t)7,
				(uint8_t)3,   (uint8_t)1,   (uint8_t)1,	 (uint8_t)10 };
static struct pair one, many[8];

static int32_t f5(int16_t p6, uint32_t p7, int8_t p8)
{
	uint8_t v9 = p7;
	uint16_t *h10 = malloc(2 * sizeof(uint16_t));
	if (!h10)
		return 1;
	for (int i = 0; i < 2; i++)
		h10[i] = i * (uint16_t)2;
	one.b ^= ((p8 | (int8_t)1) - (p6 + v9));
	p6 ^= ((g1 | a2[(-p6) & 3]) && (p6 - v9));
	if ((p6 + (one.e ^ (int8_t)(-7ll - 1)))) {
		one.b |= ((h10[(9223372036854775806ll - p8) & 1] ^ (int16_t)(-32766ll - 1)) - (p6 * v9));
	} else {
		if ((int8_t)8) {
			int32_t v11 = ((h10[(h10[(k4[(g1 + k4[(p7 ^ one.c) & 15]) & 15] + p6) & 1] & p8) & 1] && v9)
					       ? (p7 - p7)
					       : (one.b && p7));
			h10[(v11 + 18446744073709551615ull) & 1]--;
			switch ((-v9) & 7) {
			case 1:
				v11 = ((g1 - one.d) ^ ((int16_t)one.e));
				break;
			case 6:
				one.a |= one.d;
				p6 &= (!(!one.d));
				break;
			default:
				p8 = one.d;
			}
		}
		int i12 = 0;
		for (;;) {
			if (++i12 > 8 || (9223372036854775806ll * ((uint8_t)v9)))
				break;
			v9 |= ((p8 + h10[i12 & 1]) || (one.e && (int32_t)2147483647));
		}
	}
	for (int i13 = 8; i13 > 0; i13--) {
		uint16_t v14 = ((int8_t)((uint8_t)255 & (int8_t)(-126ll - 1)) >> (i13 & 7));
		p6 += i13;
	}
	free(h10);
	return (one.d || ((int16_t)10 - (int16_t)(-1ll - 1)));
}
static int64_t f15(void)
{
	int16_t v16 = ((int64_t)k4[(one.e == one.c) & 15]);
	int16_t l17[7] = { (int8_t)3 };
	int8_t *q18 = a2 + (1);
	q18[(!(int32_t)(-1ll - 1)) & 1] |=
		(one.c != (v16 * l17[(uint32_t)(!l17[(uint32_t)(v16 ? one.d : v16) % 7]) % 7]));
	for (int i19 = 0; i19 < 8; i19 += 1) {
		if (((one.c ^ q18[i19 & 1]) | ((int32_t)10 + (uint8_t)17))) {
			many[i19 & 7].e++;
			l17[(uint32_t)i19 % 7] = ((uint64_t)q18[i19 & 1] / ((uint32_t)(one.e ^ one.d) | 1u));
		}
		one.e ^= (g1 - (q18[(one.e ^ (uint16_t)65534) & 1] || one.e));
	}
	many[(one.e & l17[(uint32_t)((uint64_t)k3[q18[v16 & 1] & 15] / ((uint32_t)l17[5] | 1u)) % 7]) & 7] = many[1];
	return ((q18[(!(uint8_t)2) & 1] ? a2[2] : q18[1]) - ((uint8_t)9223372036854775806ll % 23));
}
static uint16_t f20(uint16_t p21, uint32_t p22, struct pair s)
{
	uint32_t v23 = ((a2[(s.d - (int16_t)32767) & 3] + g1) + (9223372036854775806ll - one.a));
	int16_t l24[16] = { (s.a && one.e) };
	int8_t *q25 = a2 + ((s.d ^ a2[2]) & 1);
	uint16_t *h26 = malloc(13 * sizeof(uint16_t));
	if (!h26)
		return 1;
	for (int i = 0; i < 13; i++)
		h26[i] = i * (uint16_t)0;
	for (int i27 = 0; i27 < 100; i27++) {
		many[i27 & 7] = many[i27 & 7];
		s.d = f15();
	}
	one.a = f15();
	for (int i28 = 0; i28 < 16; i28 += 1) {
		int64_t v29 = (((uint8_t)43 == one.c) - v23);
		s.c |= ((int16_t)(-2ll - 1) - (one.c | l24[(one.d * one.c) & 15]));
	}
	if (((q25[0] && (uint8_t)10) & ((int64_t)one.b))) {
		q25[(s.a * a2[h26[(uint32_t)(-(int8_t)1) % 13] & 3]) & 1] ^= p22;
		if (((one.b & k4[((uint16_t)s.c) & 15])
			     ? one.b
			     : ((uint32_t)h26[(uint32_t)(-a2[((uint32_t)s.c << (9223372036854775806ll & 31)) & 3]) % 13]
				<< ((int8_t)(-127ll - 1) & 31)))) {
			one.a = ((k4[v23 & 15] * p21) - (one.e ^ s.a));
		} else {
			one.b++;
			switch (((uint8_t)(-q25[(v23 - one.e) & 1]) << ((s.a * p21) & 7)) & 7) {
			case 0:
				one.c = quotient64((one.e ^ p21), ((int8_t)87 ^ (int32_t)1591094636));
				p22 = ((uint8_t)(-one.a));
				break;
			case 6:
				one.e |= (3ll * one.a);
				one.b = (((uint32_t)3ll) - one.e);
				break;
			case 2:
				one.b = ((int64_t)(g1 || p22) >> ((-one.a) & 63));
			default:
				many[one.a & 7].e ^= quotient32((s.a | p21), ((int16_t)51 && p21));
			}
		}
	} else {
		if (34ull) {
			int16_t v30 = ((s.c & 2ll) - (one.c | s.e));
			if (((one.e * a2[(s.b + (int8_t)(-1ll - 1)) & 3]) ? (one.b | (uint8_t)80)
									  : ((int32_t)(-2071651482ll - 1) != one.b))) {
				uint16_t v31 =
					(((uint8_t)194 + (int16_t)(-2ll - 1)) & (q25[(-(int16_t)0) & 1] - one.d));
				s.c = (~((int64_t)(int32_t)10 >> (one.e & 63)));
				q25[((uint32_t)
					     h26[(uint32_t)(k4[((uint32_t)3 == (uint16_t)2) & 15] & (uint8_t)2) % 13] /
				     (((uint8_t)57 & 0x3fff) + 1)) &
				    1] = (((int32_t)(-7ll - 1) ? one.c : one.b) ||
					  (18446744073709551614ull > a2[(one.d + (uint16_t)65534) & 3]));
			} else {
				one.d ^= ((g1 != q25[one.a & 1]) & one.a);
			}
		}
		switch ((((uint16_t)q25[((int32_t)10ull >> ((uint16_t)10 & 31)) & 1] % 66) +
			 (s.e && (int32_t)(-2ll - 1))) &
			7) {
		case 2:
			one.b *= (s.b * (one.e ? (uint16_t)65535 : k3[(q25[1] || a2[2]) & 15]));
			switch (((s.d - v23) * (s.c * one.a)) & 7) {
			case 2:
				h26[11] &= (((int8_t)26 - s.e) * (one.e || g1));
				break;
			case 6:
				s.b |= (uint8_t)254;
				break;
			default:
				p22 = (int32_t)2147483647;
			}
			break;
		case 3:
			switch ((uint32_t)1 & 7) {
			case 6:
				many[(l24[(s.a * s.d) & 15] * one.e) & 7].e =
					((uint32_t)((uint32_t)3 + s.d) >> ((s.b + k4[((uint32_t)2 > g1) & 15]) & 31));
				p21 ^= (((uint64_t)(uint16_t)65535 % ((uint32_t)q25[((int16_t)s.a) & 1] | 1u))
						? ((int8_t)one.d)
						: (1ull != k4[((int32_t)s.c) & 15]));
				break;
			case 7:
				p22 *= (((int32_t)a2[g1 & 3]) | one.a);
				break;
			case 3:
				one.b = ((int16_t)(p21 | s.a) >>
					 ((p21 & k4[(q25[(uint8_t)1 & 1] * k3[s.e & 15]) & 15]) & 15));
				s.e &= q25[(~k3[(g1 - q25[((int32_t)(-1059969616ll - 1) + one.b) & 1]) & 15]) & 1];
				break;
			default:
				many[((int8_t)one.c) & 7].b *=
					((uint64_t)((int8_t)(-3ll - 1) + one.e) / ((uint32_t)(!p22) | 1u));
			}
			break;
		default:
			q25[(s.e & one.c) & 1] &= ((h26[(uint32_t)(s.c + one.c) % 13] ^ one.b) - (s.a - one.e));
		}
	}
	free(h26);
	return (uint8_t)7;
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
	g1 = (uint8_t)in[0] * (uint8_t)77;
	for (int i = 0; i < 4; i++)
		a2[i] = in[(i + 1) & 63] * (int8_t)(-2ll - 1);
	one.a = (int32_t)in[4] * (int32_t)7;
	one.b = (uint64_t)in[5] * 10ull;
	one.c = (uint8_t)in[6] * (uint8_t)0;
	one.d = (int16_t)in[7] * (int16_t)(-32766ll - 1);
	one.e = (uint32_t)in[8] * (uint32_t)7;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f5((int16_t)(in[8] * (int16_t)(-3ll - 1)), (uint32_t)(in[16] * (uint32_t)10),
			      (int8_t)(in[26] * (int8_t)2));
	out[2] = (uint64_t)f15();
	out[3] = (uint64_t)f20((uint16_t)(in[7] * (uint16_t)65535), (uint32_t)(in[51] * (uint32_t)0), many[3]);
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
