/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions that call themselves and each other, in all the forms that need care. Request: which one, and a number. */
#include <lambda.h>

static int32_t fibonacci(int32_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* At the end only: no frames are needed. */
static int32_t odd(uint32_t n);

static int32_t even(uint32_t n)
{
	return n ? odd(n - 1) : 1;
}

static int32_t odd(uint32_t n)
{
	return n ? even(n - 1) : 0;
}

/* Each other, in the middle (Hofstadter). */
static int32_t male(int32_t n);

static int32_t female(int32_t n)
{
	return n ? n - male(female(n - 1)) : 1;
}

static int32_t male(int32_t n)
{
	return n ? n - female(male(n - 1)) : 0;
}

/* From within loops, with memory of each call's own. */
static int32_t permute(const char *letters, int32_t k, char *out, int32_t n, uint32_t used)
{
	char own[4] = { 0 };
	int32_t sum = 0;

	own[k & 3] = letters[k % n];
	if (k == n)
		return out[0] * 3 + out[1];
	for (int32_t i = 0; i < n; i++) {
		if (used >> i & 1)
			continue;
		out[k] = letters[i];
		own[i & 3] += i;
		sum = sum * 31 + permute(letters, k + 1, out, n, used | 1u << i) + own[i & 3];
	}
	return sum;
}

/* A structure by value, which each call changes. */
struct numbers {
	int32_t v[12];
};

static int32_t add_up(struct numbers s, int32_t n)
{
	s.v[n % 12] += n;
	return n ? add_up(s, n - 1) + s.v[0] * 2 + s.v[7] : s.v[0] + s.v[1] + s.v[2] + s.v[3];
}

/* The caller's memory, through a pointer. */
static void count_down(int32_t n, int64_t *total, int32_t *deepest)
{
	int32_t mine = n * 3;

	if (n > 0) {
		count_down(n - 1, total, deepest);
		count_down(n - 3, total, &mine);
	}
	*total += mine;
	*deepest += n & 5;
}

static double series(double x, int32_t n)
{
	return n ? x / n + series(x * 0.5, n - 1) * 1.25 : x;
}

static int8_t narrow(int8_t n, uint16_t m)
{
	return n > 0 ? narrow(n - 1, m * 3) + (int8_t)m : 1;
}

static struct {
	uint32_t depth, size;
} nodes[5];

/* A variable that is changed after the call, through an address kept until then, is read by its name in the end. */
static uint32_t measure(uint32_t n, uint32_t depth)
{
	uint32_t size;

	if (n >= 5)
		return 0;
	nodes[n].depth = depth;
	size = 1 + measure(2 * n + 1, depth + 1);
	nodes[n].size = size;
	return size + measure(2 * n + 2, depth + 1);
}

static int64_t tree(uint32_t top)
{
	int64_t sum;

	for (int i = 0; i < 5; i++)
		nodes[i].depth = nodes[i].size = 0;
	sum = measure(top, 1);
	for (int i = 0; i < 5; i++)
		sum = sum * 100 + nodes[i].size * 10 + nodes[i].depth;
	return sum;
}

static int32_t cells[3];

/* The innermost call changes through one pointer what the call before it reads through another. */
static int32_t apart(int32_t *restrict a, int32_t *restrict b, uint32_t n)
{
	int32_t sum;

	if (!n)
		return (*b += 5);
	sum = apart(a, n == 1 ? a + 1 : b, n - 1);
	return sum * 3 + a[1];
}

int recursion(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct {
		uint32_t which;
		int32_t n;
	} in;
	struct numbers s = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
	char letters[8];
	int64_t result = 0;
	int32_t deepest = 0;

	(void)match_data;
	if (lambda_read(headers, &in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	switch (in.which) {
	case 0:
		result = fibonacci(in.n % 16);
		break;
	case 1:
		result = even(in.n);
		break;
	case 2:
		result = female(in.n % 20) * 100 + male(in.n % 20);
		break;
	case 3:
		result = permute("abcd", 0, letters, 4, in.n & 3);
		break;
	case 4:
		result = add_up(s, in.n % 30);
		break;
	case 5:
		count_down(in.n % 12, &result, &deepest);
		result += deepest;
		break;
	case 6:
		result = series(in.n, in.n % 40) * 1000;
		break;
	case 7:
		result = narrow(in.n % 100, in.n);
		break;
	case 8:
		result = tree(in.n % 5);
		break;
	case 9:
		cells[1] = in.n;
		result = apart(cells, cells + 2, 1 + in.n % 7);
		break;
	default:
		result = add_up(s, in.n); /* as deep as one likes */
	}
	return lambda_write(headers, &result, sizeof(result));
}
