/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares the SDK's C library with the host's, on random arguments of a fixed seed. Exits with 1 if they differ. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ours_memcmp(const void *, const void *, size_t), ours_strcmp(const char *, const char *);
int ours_strncmp(const char *, const char *, size_t), ours_atoi(const char *), ours_ctype(int);
int ours_fixed_mul(int, int), ours_fixed_div(int, int), ours_fixed_sqrt(int);
int64_t ours_fixed64_mul(int64_t, int64_t), ours_fixed64_div(int64_t, int64_t);
void *ours_memchr(const void *, int, size_t), *ours_malloc(size_t), *ours_realloc(void *, size_t),
	*ours_calloc(size_t, size_t);
size_t ours_strlen(const char *), ours_strnlen(const char *, size_t), ours_strspn(const char *, const char *);
size_t ours_strcspn(const char *, const char *);
char *ours_strcpy(char *, const char *), *ours_strncpy(char *, const char *, size_t),
	*ours_strcat(char *, const char *);
char *ours_strncat(char *, const char *, size_t), *ours_strchr(const char *, int), *ours_strrchr(const char *, int);
char *ours_strpbrk(const char *, const char *), *ours_strtok_r(char *, const char *, char **);
char *ours_strstr(const char *, const char *);
long ours_strtol(const char *, char **, int);
unsigned long ours_strtoul(const char *, char **, int);
double ours_scalbn(double, int), ours_frexp(double, int *), ours_modf(double, double *), ours_fmin(double, double);
double ours_fmax(double, double), ours_fdim(double, double);
double ours_exp(double), ours_exp2(double), ours_log(double), ours_log2(double), ours_log10(double), ours_sin(double);
double ours_cos(double), ours_tan(double), ours_atan(double), ours_atan2(double, double), ours_pow(double, double);
double ours_hypot(double, double);
void ours_qsort(void *, size_t, size_t, int (*)(const void *, const void *)), ours_free(void *), ours_begin(void);

static int failed;

#define CHECK(condition) \
	do { \
		static int told; \
		if (!(condition) && !told++) { \
			printf("line %d: %s\n", __LINE__, #condition); \
			failed = 1; \
		} \
	} while (0)

static uint64_t draw(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33 ^ state >> 12;
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

/* Short texts of few letters, so that many are equal or contain each other. */
static void text(char *s, const char *letters)
{
	int n = draw() % 24, kinds = strlen(letters);

	for (int i = 0; i < n; i++)
		s[i] = letters[draw() % kinds];
	s[n] = 0;
}

static void check_strings(void)
{
	char a[128] = "", b[64] = "", x[128], y[128], *p, *q;
	size_t n = draw() % 32;
	int c = "abc\0"[draw() % 4];

	text(a, "ab\xff"
		"c");
	text(b, draw() & 1 ? "ab" : "cab\x80");
	CHECK(sign(ours_memcmp(a, b, n)) == sign(memcmp(a, b, n)));
	CHECK(sign(ours_strcmp(a, b)) == sign(strcmp(a, b)));
	CHECK(sign(ours_strncmp(a, b, n)) == sign(strncmp(a, b, n)));
	CHECK(ours_memchr(a, c, n) == memchr(a, c, n));
	CHECK(ours_strlen(a) == strlen(a));
	CHECK(ours_strnlen(a, n) == strnlen(a, n));
	CHECK(ours_strchr(a, c) == strchr(a, c));
	CHECK(ours_strrchr(a, c) == strrchr(a, c));
	CHECK(ours_strspn(a, b) == strspn(a, b));
	CHECK(ours_strcspn(a, b) == strcspn(a, b));
	CHECK(ours_strpbrk(a, b) == strpbrk(a, b));
	b[draw() % 4] = 0;
	CHECK(ours_strstr(a, b) == strstr(a, b));
	memset(x, 7, sizeof(x));
	memset(y, 7, sizeof(y));
	CHECK(ours_strcpy(x, a) == x && strcpy(y, a) && !memcmp(x, y, sizeof(x)));
	CHECK(ours_strcat(x, b) == x && strcat(y, b) && !memcmp(x, y, sizeof(x)));
	CHECK(ours_strncat(x, a, n) == x && strncat(y, a, n) && !memcmp(x, y, sizeof(x)));
	CHECK(ours_strncpy(x, b, n) == x && strncpy(y, b, n) && !memcmp(x, y, sizeof(x)));
	strcpy(x, a);
	strcpy(y, a);
	for (char *s = x, *t = y;; s = t = NULL) {
		char *token = ours_strtok_r(s, "ac", &p), *want = strtok_r(t, "ac", &q);

		CHECK(!token == !want && (!want || (token - x == want - y && !strcmp(token, want))));
		if (!want)
			break;
	}
}

static void check_numbers(void)
{
	static const int bases[] = { 0, 2, 8, 10, 16, 36 };
	char s[64], *end, *want;
	int base = bases[draw() % 6];

	text(s, draw() & 1 ? "0123456789" : " -+0x19afzZF");
	CHECK(ours_strtol(s, &end, base) == strtol(s, &want, base) && end == want);
	CHECK(ours_strtoul(s, &end, base) == strtoul(s, &want, base) && end == want);
	s[9] = 0;
	CHECK(ours_atoi(s) == atoi(s));
}

static int bits_equal(double x, double y)
{
	return (isnan(x) && isnan(y)) || !memcmp(&x, &y, sizeof(x));
}

static void check_math(void)
{
	uint64_t bits[2] = { draw() << 32 ^ draw(), draw() << 32 ^ draw() };
	double x, y, whole, whole_want;
	int n, n_want, by = (int)(draw() % 5000) - 2500;

	if (draw() & 1)
		bits[0] &= ~(0x7ffULL << 52) | 0x3ffULL << 52;
	if (!(draw() & 3))
		bits[0] &= ~(0x7ffULL << 52);
	memcpy(&x, &bits[0], sizeof(x));
	memcpy(&y, &bits[1], sizeof(y));
	CHECK(bits_equal(ours_scalbn(x, by), scalbn(x, by)));
	CHECK(bits_equal(ours_frexp(x, &n), frexp(x, &n_want)) && (!isfinite(x) || n == n_want));
	CHECK(bits_equal(ours_modf(x, &whole), modf(x, &whole_want)) && bits_equal(whole, whole_want));
	CHECK(bits_equal(ours_fmin(x, y), fmin(x, y)));
	CHECK(bits_equal(ours_fmax(x, y), fmax(x, y)));
	CHECK(bits_equal(ours_fdim(x, y), fdim(x, y)));
}

/* Whether a result is within so many units in the last place of the true value, or the same infinity or NaN, with the same sign. */
static int near(double x, long double want, double units)
{
	double rounded = want;
	int exponent;

	if (isnan(rounded) || isinf(rounded) || want == 0)
		return bits_equal(x, rounded);
	frexpl(want, &exponent);
	exponent = exponent < -1021 ? -1074 : exponent - 53;
	return !signbit(x) == !signbit(rounded) && fabsl(x - want) <= ldexpl(units, exponent);
}

/* The errors that docs/language.md states, and a little for those of long double. */
#define PRECISELY 0.551

static void check_power(double x, double y)
{
	CHECK(near(ours_pow(x, y), powl(x, y), y == 3 ? 1.5 : PRECISELY));
}

static void check_angle(double x)
{
	CHECK(near(ours_sin(x), sinl(x), PRECISELY));
	CHECK(near(ours_cos(x), cosl(x), PRECISELY));
	CHECK(near(ours_tan(x), tanl(x), 2.6));
}

static void check_logarithm(double x)
{
	CHECK(near(ours_log(x), logl(x), PRECISELY));
	CHECK(near(ours_log2(x), log2l(x), PRECISELY));
	CHECK(near(ours_log10(x), log10l(x), PRECISELY));
}

static void check_triangle(double x, double y)
{
	CHECK(near(ours_atan(x), atanl(x), 5));
	CHECK(near(ours_atan2(y, x), atan2l(y, x), 5));
	CHECK(near(ours_hypot(x, y), hypotl(x, y), 5));
}

static void check_elementary(double x, double y)
{
	check_angle(x);
	check_logarithm(x);
	check_power(x, y);
	CHECK(near(ours_exp(x), expl(x), PRECISELY));
	CHECK(near(ours_exp2(x), exp2l(x), PRECISELY));
	check_triangle(x, y);
}

/* From 0 to 1. */
static double part(void)
{
	return (double)(uint32_t)draw() * 0x1p-32 + (double)(uint32_t)draw() * 0x1p-64;
}

/* A number of any size. */
static double any(void)
{
	uint64_t bits;
	double x;

	do {
		bits = draw() << 32 ^ draw();
		memcpy(&x, &bits, sizeof(x));
	} while (!isfinite(x));
	return x;
}

/* Powers over their whole range: of any base, of a base near 1, and integer powers of a negative base. */
static void check_powers(void)
{
	double x = fabs(any()), scale = part() * 2160 - 1100;

	check_power(x, scale / log2(x));
	x = 1 + (part() - 0.5) * ldexp(1, -(int)(draw() % 50));
	check_power(x, scale / log2(x));
	x = (draw() & 1 ? 1.42 : 0.75) + part() * 0.08; /* where the logarithm's series is slowest */
	check_power(x, scale / log2(x));
	x = -exp2((part() - 0.5) * 8);
	check_power(x, trunc(scale / log2(-x)));
	check_power(x, (double)(draw() % 40) - 20);
	CHECK(near(ours_exp(scale * M_LN2), expl(scale * M_LN2), PRECISELY));
	CHECK(near(ours_exp2(scale), exp2l(scale), PRECISELY));
}

/* Cases with exact results. */
static void check_exact(void)
{
	double ten = 1;

	for (int n = -1074; n < 1024; n++)
		CHECK(ours_log2(ldexp(1, n)) == n && ours_exp2(n) == ldexp(1, n) && ours_pow(2, n) == ldexp(1, n));
	for (int n = 0; n <= 22; n++, ten *= 10)
		CHECK(ours_log10(ten) == n && ours_pow(10, n) == ten);
	for (int n = -300; n <= 300; n++)
		CHECK(ours_pow(n, 2) == (double)n * n && ours_pow(n, 4) == pow(n, 4) &&
		      ours_pow((double)n * n, 0.5) == abs(n));
}

static void check_all_elementary(void)
{
	static const double special[] = { 0,	       -0.0,	    1,		 -1,
					  INFINITY,    -INFINITY,   NAN,	 0.5,
					  -0.5,	       -2,	    3,		 -3,
					  4,	       1e300,	    -1e300,	 0x1p-1074,
					  -0x1p-1074,  0x1p52 + 1,  -0x1p52 - 1, 0x1p53 - 1,
					  1 - 0x1p-53, 1 + 0x1p-52, 0x1p53,	 0x1.fffffffffffffp+1023 };
	const int n = sizeof(special) / sizeof(special[0]);

	for (int i = 0; i < n * n; i++)
		check_elementary(special[i / n], special[i % n]);
	check_angle(6381956970095103.0 * 0x1p797); /* the double that is nearest to a multiple of pi / 2 */
	for (int i = 0; i < 100000; i++) {
		double x = (int32_t)draw() * 0x1p-31, y = (int32_t)draw() * 0x1p-31;

		check_elementary(i & 1 ? x * 4 : x * 300, i & 2 ? y * 9 : (int)(y * 20));
		check_angle(any());
		check_angle(ldexp(1 + part(), (int)(draw() % 1024)));
		check_angle((double)(draw() >> draw() % 40) * M_PI_2);
		check_logarithm(fabs(any()));
		check_logarithm(part() * 0x1p-1022);
		check_logarithm(1 + (part() - 0.5) * ldexp(1, -(int)(draw() % 52)));
		check_powers();
		x = any();
		check_triangle(x, any());
		check_triangle(x, x * (part() - 0.5));
		check_triangle(x, part() * 0x1p-1022);
		check_triangle(part() * 0x1p-1022, part() * ldexp(1, -1020 - (int)(draw() % 50)));
	}
	check_exact();
}

static void check_fixed(void)
{
	int64_t x = (int64_t)(draw() << 32 ^ draw()) >> draw() % 60,
		y = (int64_t)(draw() << 32 ^ draw()) >> draw() % 60;
	__int128 product = (__int128)x * y + (1LL << 31);
	int a = x, b = y;

	CHECK(ours_fixed64_mul(x, y) == (int64_t)(product >> 32));
	CHECK(!y || ours_fixed64_div(x, y) == (int64_t)((((__int128)x) * (1LL << 32)) / y));
	CHECK(ours_fixed_mul(a, b) == (int)(((int64_t)a * b + 32768) >> 16));
	CHECK(!b || ours_fixed_div(a, b) == (int)(((int64_t)a * 65536) / b));
	CHECK(a < 0 || ours_fixed_sqrt(a) == (int)sqrtl(a * 65536.0L));
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a >> 8, y = *(const uint32_t *)b >> 8;

	return (x > y) - (x < y);
}

static void check_sort(void)
{
	uint32_t v[40], sum = 0;
	int n = draw() % 40;

	for (int i = 0; i < n; i++)
		sum += v[i] = draw() & (draw() & 1 ? 0xfff : 0xffffffff);
	ours_qsort(v, n, sizeof(*v), compare);
	for (int i = 0; i < n; i++) {
		sum -= v[i];
		CHECK(!i || v[i - 1] >> 8 <= v[i] >> 8);
	}
	CHECK(!sum);
}

/* Blocks keep their contents while others are allocated and freed. */
static void check_heap(void)
{
	struct {
		unsigned char *at;
		size_t size, fill;
	} held[8] = { 0 };

	ours_begin();
	for (int i = 0; i < 200; i++) {
		int k = draw() % 8;
		size_t size = draw() % 300;

		for (size_t j = 0; j < held[k].size && held[k].at; j++)
			CHECK(held[k].at[j] == held[k].fill);
		if (!held[k].at || draw() & 1) {
			unsigned char *moved = ours_realloc(held[k].at, size);

			for (size_t j = 0; moved && held[k].at && j < size && j < held[k].size; j++)
				CHECK(moved[j] == held[k].fill);
			held[k].at = moved;
		} else {
			ours_free(held[k].at);
			held[k].at = draw() & 1 ? ours_calloc(1, size) : ours_malloc(size);
		}
		CHECK(held[k].at && (uintptr_t)held[k].at % 8 == 0);
		held[k].size = size;
		held[k].fill = draw() & 0xff;
		memset(held[k].at, held[k].fill, size);
	}
	CHECK(!ours_malloc(1 << 20));
	CHECK(!ours_calloc((size_t)1 << 33, (size_t)1 << 33));
}

int main(void)
{
	for (int c = 0; c < 128; c++)
		CHECK(ours_ctype(c) == (!!isalnum(c) | !!isalpha(c) << 1 | !!isblank(c) << 2 | !!iscntrl(c) << 3 |
					!!isdigit(c) << 4 | !!isgraph(c) << 5 | !!islower(c) << 6 | !!isprint(c) << 7 |
					!!ispunct(c) << 8 | !!isspace(c) << 9 | !!isupper(c) << 10 |
					!!isxdigit(c) << 11 | toupper(c) << 12 | tolower(c) << 20));
	for (int i = 0; i < 200000; i++) {
		check_strings();
		check_numbers();
		check_math();
		check_fixed();
	}
	check_all_elementary();
	for (int i = 0; i < 2000; i++) {
		check_sort();
		check_heap();
	}
	return failed;
}
