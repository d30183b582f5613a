/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* More values are live at once than 512 bytes of stack hold. Request: which function, rounds, and the first number. */
#include <lambda.h>
#include <math.h>

/* DO(10) to DO(89). */
#define TEN(DO, tens) \
	DO(tens##0) \
	DO(tens##1) DO(tens##2) DO(tens##3) DO(tens##4) DO(tens##5) DO(tens##6) DO(tens##7) DO(tens##8) DO(tens##9)
#define EACH(DO) TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4) TEN(DO, 5) TEN(DO, 6) TEN(DO, 7) TEN(DO, 8)

/* Arrays in one loop, whose elements are added up: the sums may be computed late. */
#define ARRAY(n) static uint32_t array##n[n + 3];
EACH(ARRAY)

static uint32_t arrays(uint32_t rounds, uint32_t number)
{
	uint32_t sum = 0;

#define CLEAR(n) \
	for (uint32_t i = 0; i < n + 3; i++) \
		array##n[i] = 0;
	EACH(CLEAR)
	for (uint32_t i = 0; i < rounds; i++) {
#define ADD(n) \
	array##n[(number + i * n) % (n + 3)] += i; \
	sum += array##n[(i + 1) % (n + 3)];
		EACH(ADD)
	}
	return sum;
}

/* Variables that swap values in a loop: each is read when another's new value is known. */
static uint32_t places(uint32_t rounds, uint32_t number)
{
#define BEGIN(n) uint32_t v##n = number * n;
	EACH(BEGIN)
	double total = number;

	for (uint32_t i = 0; i < rounds; i++) {
		total = fma(total, 0.5, v10); /* by functions, which take stack, too */
#define WAS(n) uint32_t was##n = v##n;
		EACH(WAS)
#define MOVE(n) v##n = was##n + (i ^ n);
		EACH(MOVE)
#define MIX(a, b) \
	v##a = was##b * 3 + i; \
	v##b = was##a ^ (number + a);
		MIX(10, 89) MIX(11, 88) MIX(12, 87) MIX(20, 79) MIX(33, 34) MIX(45, 54) MIX(67, 76) if (v10 & 1)
		{
			uint32_t first = v80;

			v80 = v81;
			v81 = v82;
			v82 = v83;
			v83 = first;
		}
	}
	uint32_t sum = (uint32_t)(total * 3);
#define SUM(n) sum = sum * 31 + v##n;
	EACH(SUM)
	return sum;
}

typedef uint32_t eight __attribute__((vector_size(32)));

/* The same with vectors, of which each is eight words. */
static uint32_t vectors(uint32_t rounds, uint32_t number)
{
	eight a = { 1, 2, 3, 4, 5, 6, 7, 8 }, b = a * number, c = a ^ b, d = b - c, e = d + 7, f = e * 5, g = f ^ a,
	      h = g + b;

	for (uint32_t i = 0; i < rounds; i++) {
		eight was = a;

		a = b + i;
		b = c ^ number;
		c = d * 3;
		d = e - a;
		e = f + b;
		f = g ^ c;
		g = h + d;
		h = was + e;
	}
	a += b ^ c ^ d ^ e ^ f ^ g ^ h;
	return a[0] + a[1] * 3 + a[2] * 5 + a[3] * 7 + a[4] * 11 + a[5] * 13 + a[6] * 17 + a[7] * 19;
}

/* The same with numbers of two words each. */
static uint32_t wide(uint32_t rounds, uint32_t number)
{
#define HALF(DO) TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4)
#define WIDE(n) unsigned __int128 w##n = (unsigned __int128)number << n;
	HALF(WIDE)

	for (uint32_t i = 0; i < rounds; i++) {
#define TURN(n) w##n = (w##n << 1 | w##n >> 127) ^ ((unsigned __int128)i << n);
		HALF(TURN)
		w10 += w49 * 3;
		w49 ^= w25;
	}
	unsigned __int128 sum = 0;
#define WIDE_SUM(n) sum = sum * 31 + w##n;
	HALF(WIDE_SUM)
	return sum ^ sum >> 32 ^ sum >> 64 ^ sum >> 96;
}

int crowded(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t in[3], out = 0;

	(void)match_data;
	if (lambda_read(headers, in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	switch (in[0]) {
	case 0:
		out = arrays(in[1], in[2]);
		break;
	case 1:
		out = places(in[1], in[2]);
		break;
	case 2:
		out = vectors(in[1], in[2]);
		break;
	default:
		out = wide(in[1], in[2]);
	}
	return lambda_write(headers, &out, sizeof(out));
}
