/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random program 389. */
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
static uint32_t g1;
static uint8_t g2;
static uint8_t g3;
static int16_t g4;
static uint8_t a5[13];
static int32_t a6[16];
static int16_t a7[4];
static const uint8_t k8[13] = { (uint8_t)116, (uint8_t)0,   (uint8_t)3, (uint8_t)46,  (uint8_t)7,
				(uint8_t)0,   (uint8_t)2,   (uint8_t)0, (uint8_t)254, (uint8_t)3,
				(uint8_t)2,   (uint8_t)255, (uint8_t)53 };
static struct pair one, many[8];

static int64_t f9(uint32_t p10, int64_t p11, struct pair s)
{
	int64_t v12 = p10;
	int32_t l13[4] = { (s.b - s.a) };
	uint8_t *q14 = a5 + ((uint32_t)(a5[(uint32_t)rest32(one.c, (uint8_t)3) % 13] + s.b) % 6);
	uint8_t *h15 = malloc(5 * sizeof(uint8_t));
	if (!h15)
		return 1;
	for (int i = 0; i < 5; i++)
		h15[i] = i * (uint8_t)7;
	one.a = (((uint64_t)a5[4]) != (one.b - v12));
	one.a ^= 3ull;
	for (int i16 = 0; i16 < (int)(l13[one.d & 3] & 7); i16++) {
		uint32_t v17 = s.a;
		a5[(uint32_t)i16 % 13] *= one.e;
	}
	free(h15);
	return ((int32_t)((uint32_t)(uint16_t)1 % ((one.a & 0x3fff) + 1)));
}
static int32_t f18(uint16_t p19, uint32_t p20, uint64_t p21)
{
	int64_t v22 = ((a5[10] - g1) + (one.a + one.b));
	uint16_t l23[2] = { (0ull * k8[4]) };
	uint8_t *q24 = a5 + ((uint32_t)p20 % 6);
	uint32_t *h25 = malloc(16 * sizeof(uint32_t));
	if (!h25)
		return 1;
	for (int i = 0; i < 16; i++)
		h25[i] = i * (uint32_t)46;
	if (((!l23[one.b & 1]) == (g1 >= (int8_t)78))) {
		switch (((g2 ^ v22) - ((int64_t)one.a >> ((uint16_t)1 & 63))) & 7) {
		case 6:
			for (int i26 = 0; i26 < (int)(a7[(uint16_t)10 & 3] & 1); i26++) {
				one.e -= (g1 | p19);
			}
			one.a--;
			break;
		case 0:
			for (int i27 = 0; i27 < (int)((g2 | (-one.b)) & 7); i27++) {
				int16_t v28 = p21;
				one.c = ((h25[(v22 | a7[(p20 | one.e) & 3]) & 15] != l23[i27 & 1]) +
					 (a5[(uint32_t)i27 % 13] == one.b));
			}
			break;
		case 4:
			one = many[(-p21) & 7];
			memmove(many + (((int64_t)(-30ll - 1) ^ one.d) & 3),
				many + (((int64_t)(-82ll - 1) < 9223372036854775806ll) & 3), 4 * sizeof(many[0]));
			break;
		case 3:
			p21 = f9(((p19 > one.e) ? (a5[(uint32_t)h25[(g3 - g2) & 15] % 13] <= (int16_t)(-54ll - 1))
						: a7[(g4 ^ p21) & 3]),
				 (int8_t)1,
				 many[((uint64_t)q24[(uint32_t)(g2 <= (int8_t)2) % 6] %
				       ((uint32_t)q24[(uint32_t)(!7ull) % 6] | 1u)) &
				      7]);
			l23[0] += ((uint64_t)(p20 == one.e)
				   << (((uint16_t)k8[(uint32_t)(p20 == h25[(k8[(uint32_t)(one.c * (uint32_t)89) % 13] -
									    (int8_t)(-3ll - 1)) &
									   15]) %
						     13] /
					93) &
				       63));
			break;
		default:
			l23[1] *= (quotient64(h25[12], p19) < (v22 + 7ull));
		}
	} else {
		one.d = f9(((int8_t)((int32_t)7ull) >> ((one.d & 82ll) & 7)),
			   ((l23[(uint32_t)1 & 1] + a7[1]) || ((int16_t)one.e)), many[7]);
	}
	if (a7[(7ll - l23[1]) & 3]) {
		p20 |= (((uint8_t)254 == p19) + (g2 - one.d));
		g2 ^= (((uint16_t)7 * a6[8]) + ((int8_t)(-7ll - 1) == p20));
	}
	for (int i29 = 0; i29 < 7; i29++) {
		p21 = f9((v22 ? (one.c + 3ull) : (g1 | one.e)), ((a5[5] | p21) - p21), many[i29 & 7]);
	}
	if (one.d) {
		switch (a5[(uint32_t)(!one.d) % 13] & 7) {
		case 6:
			one.d--;
			break;
		case 3:
			g4 = f9((v22 | (p19 + h25[(p21 * one.a) & 15])),
				rest32(((uint64_t)q24[0] << (3ull & 63)), (p19 | g4)), many[7]);
			one.a--;
			break;
		case 0:
			one = many[(l23[v22 & 1] * p21) & 7];
			break;
		default:
			h25[(a5[(uint32_t)((uint64_t)(int64_t)(-9223372036854775807ll - 1) >> (one.c & 63)) % 13]
				     ? l23[((uint64_t)p19 % ((uint32_t)v22 | 1u)) & 1]
				     : one.e) &
			    15] &= ((int8_t)(l23[one.b & 1] - one.a));
		}
	}
	one.d = f9(((a5[(uint32_t)(-p20) % 13] | (uint32_t)7) < p20),
		   ((int8_t)(h25[p20 & 15] + q24[(uint32_t)one.d % 6]) / 57), many[(g3 | v22) & 7]);
	free(h25);
	return q24[(uint32_t)k8[(uint32_t)p21 % 13] % 6];
}
static int8_t f30(uint8_t p31, uint8_t p32)
{
	uint64_t v33 = (p31 | (18446744073709551615ull && g4));
	int16_t l34[5] = { p31 };
	int16_t *q35 = a7 + ((g3 - p31) & 1);
	if ((l34[(uint32_t)g3 % 5] || ((uint64_t)v33 / ((uint32_t)2ull | 1u))))
		q35 = &l34[l34[(uint32_t)((uint32_t)34 + one.d) % 5] & 1];
	l34[(uint32_t)(a5[(uint32_t)((uint8_t)v33) % 13] ? one.e : p32) % 5] &=
		((int32_t)p32 >>
		 ((k8[(uint32_t)(g4 && p32) % 13] | a6[(0ull - (int64_t)(-9223372036854775807ll - 1)) & 15]) & 31));
	memset(many, (q35[(-one.e) & 1] ? v33 : v33), sizeof(many) / 2);
	one = many[1];
	for (int i36 = 0; i36 < (int)((~p32) & 7); i36++) {
		int8_t v37 = (uint8_t)3;
		switch (9223372036854775806ll & 7) {
		case 0:
			if ((((int16_t)p31 >> (p31 & 15)) | ((int16_t)1 * l34[(uint32_t)i36 % 5]))) {
				g3 = ((uint16_t)(a7[(one.b |
						     l34[(uint32_t)(one.d ? 18446744073709551614ull : i36) % 5]) &
						    3] -
						 p31)
				      << (((uint8_t)one.d) & 15));
			} else {
				l34[(uint32_t)((int8_t)5 ? a5[(uint32_t)i36 % 13] : v33) % 5] =
					((p31 >= one.b) + ((int32_t)2147483647 + g3));
			}
			one.c &= one.c;
			break;
		case 5:
			l34[(uint32_t)i36 % 5] = a5[(uint32_t)i36 % 13];
			many[p32 & 7].d = (a7[1] - ((uint8_t)(int16_t)90 << (g3 & 7)));
			break;
		case 6:
			v37 = f18(((q35[i36 & 1] ? one.b : g3) | (int16_t)2),
				  ((int64_t)((uint32_t)p32 / 2) >> ((2ll + v37) & 63)),
				  ((uint32_t)(q35[i36 & 1] ? (int32_t)10 : one.d) %
				   ((((uint64_t)(int8_t)3 / ((uint32_t)p31 | 1u)) & 0x3fff) + 1)));
			v33 += (int16_t)0;
			break;
		default:
			one.b = (q35[i36 & 1] ? ((uint64_t)v33 << (q35[i36 & 1] & 63)) : (g1 && g1));
		}
	}
	if (a7[(a7[((int16_t)one.c % 27) & 3] ? p31 : (uint32_t)3) & 3]) {
		many[p31 & 7].c = (((uint16_t)65534 || (uint8_t)10) && (v33 + (uint8_t)1));
		for (int i38 = 4; i38 > 0; i38--) {
			for (int i39 = 0; i39 < (int)(((int8_t)(l34[(uint32_t)i38 % 5] ? g1 : 3ll)) & 3); i39++) {
				uint64_t v40 = (one.a * ((uint64_t)l34[3]));
				g2 *= (((uint8_t)1 & l34[(uint32_t)i39 % 5]) | (int32_t)(-27ll - 1));
			}
			many[i38 & 7].e ^= ((uint16_t)rest64(v33, (uint32_t)2) >> ((p31 | one.e) & 15));
		}
	}
	return ((one.c * (uint32_t)4294967295) + (q35[(l34[1] - (uint8_t)254) & 1] * (int8_t)7));
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
	h = mix(h, a7, sizeof(a7));
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
	g1 = (uint32_t)in[0] * (uint32_t)4294967294;
	g2 = (uint8_t)in[1] * (uint8_t)0;
	g3 = (uint8_t)in[2] * (uint8_t)7;
	g4 = (int16_t)in[3] * (int16_t)60;
	for (int i = 0; i < 13; i++)
		a5[i] = in[(i + 4) & 63] * (uint8_t)7;
	for (int i = 0; i < 16; i++)
		a6[i] = in[(i + 5) & 63] * (int32_t)2147483646;
	for (int i = 0; i < 4; i++)
		a7[i] = in[(i + 6) & 63] * (int16_t)32766;
	one.a = (int32_t)in[8] * (int32_t)1;
	one.b = (uint64_t)in[9] * 7ull;
	one.c = (uint8_t)in[10] * (uint8_t)1;
	one.d = (int16_t)in[11] * (int16_t)3;
	one.e = (uint32_t)in[12] * (uint32_t)706334929;
	for (int i = 0; i < 8; i++)
		many[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };
	out[0] = h = mix(h, in, n);
	out[1] = (uint64_t)f9((uint32_t)(in[62] * (uint32_t)74), (int64_t)(in[15] * 0ll), many[3]);
	out[2] = (uint64_t)f18((uint16_t)(in[21] * (uint16_t)7), (uint32_t)(in[43] * (uint32_t)4294967295),
			       (uint64_t)(in[47] * 18446744073709551615ull));
	out[3] = (uint64_t)f30((uint8_t)(in[57] * (uint8_t)255), (uint8_t)(in[19] * (uint8_t)254));
	out[4] = sum(h);
	return lambda_write(headers, out, sizeof(out));
}
