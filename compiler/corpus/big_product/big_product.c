/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The product of two big integers in decimal. Request: the digits of one, a blank, those of the other. Reply: the product's digits. */
#include <lambda.h>
#include <string.h>

#define LIMBS 80
#define BASE 1000000000u

/* Reads nine digits into each limb, from the last on. Returns the number of limbs. */
static int parse(const char *p, int n, uint32_t *limb)
{
	int k = 0;

	for (int end = n; end > 0; end -= 9) {
		uint32_t v = 0;

		for (int i = end > 9 ? end - 9 : 0; i < end; i++)
			v = v * 10 + (p[i] - '0');
		limb[k++] = v;
	}
	return k;
}

static void multiply(const uint32_t *a, int n, const uint32_t *b, int m, uint32_t *c)
{
	memset(c, 0, (n + m) * sizeof(c[0]));
	for (int i = 0; i < n; i++) {
		uint64_t carry = 0;

		for (int j = 0; j < m; j++) {
			uint64_t t = (uint64_t)a[i] * b[j] + c[i + j] + carry;

			c[i + j] = t % BASE;
			carry = t / BASE;
		}
		c[i + m] = carry;
	}
}

static int print(const uint32_t *limb, int n, char *out)
{
	char digits[9];
	int len = 0;

	while (n > 1 && !limb[n - 1])
		n--;
	for (int i = n - 1; i >= 0; i--) {
		uint32_t v = limb[i];
		int first = 8;

		for (int k = 8; k >= 0; k--, v /= 10) {
			digits[k] = '0' + v % 10;
			if (v)
				first = k;
		}
		if (i < n - 1)
			first = 0;
		memcpy(out + len, digits + first, 9 - first);
		len += 9 - first;
	}
	return len;
}

int big_product(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[700], out[18 * LIMBS];
	uint32_t a[LIMBS], b[LIMBS], c[2 * LIMBS];
	int len = lambda_read(headers, in, sizeof(in)), split = 0, n, m;

	(void)match_data;
	while (split < len && in[split] != ' ')
		split++;
	if (!split || split + 1 >= len)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	n = parse(in, split, a);
	m = parse(in + split + 1, len - split - 1, b);
	multiply(a, n, b, m, c);
	return lambda_write(headers, out, print(c, n + m, out));
}
