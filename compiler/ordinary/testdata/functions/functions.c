/* What of the C library no other test calls: a process has the host's, the NIC the SDK's. The fixed-point numbers are the SDK's on both. */
#include <lambda.h>
#include <fixed.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct request {
	double a, b;
	float x, y;
	int32_t i, j;
	int64_t wide, divisor;
	char text[32];
};

struct reply {
	uint64_t words[40];
	uint32_t n;
};

static void give(struct reply *r, uint64_t word)
{
	if (r->n < 40)
		r->words[r->n++] = word;
}

static void give_float(struct reply *r, float f)
{
	union {
		float f;
		uint32_t bits;
	} u = { f };

	give(r, f != f ? 0x7fc00000 : u.bits); /* NaNs differ in signs and payloads */
}

static void floats(struct reply *r, const struct request *in)
{
	float x = in->x, y = in->y, whole = 0;
	int power = 0;

	give_float(r, ldexpf(x, in->i % 300));
	give_float(r, frexpf(x, &power));
	give(r, isfinite(x) ? (uint32_t)power : 0);
	give_float(r, modff(x, &whole));
	give_float(r, whole);
	give_float(r, fdimf(x, y));
	give_float(r, copysignf(x, y));
	give(r, fabs(in->a) < 1e18 ? lrint(in->a) : 0);
	give(r, fabsf(x) < 1e18f ? lrintf(x) : 0);
	give(r, fabsf(x) < 1e18f ? lroundf(x) : 0);
	give(r, fabs(in->b) < 1e18 ? lround(in->b) : 0);
	give(r, isgreater(in->a, in->b) | isgreaterequal(in->a, in->b) << 1 | isless(in->a, in->b) << 2 |
			islessequal(in->a, in->b) << 3 | islessgreater(x, y) << 4 | isunordered(x, y) << 5 |
			!!isnormal(in->a) << 6 | !!signbit(y) << 7);
}

static void integers(struct reply *r, const struct request *in)
{
	int64_t d = in->divisor ? in->divisor : 7, n = in->wide >> 1;
	char copy[64], *end = 0;
	ldiv_t l = ldiv(n, d);
	lldiv_t ll = lldiv(n, -d);

	give(r, l.quot), give(r, l.rem), give(r, ll.quot), give(r, ll.rem);
	give(r, labs(n)), give(r, llabs(n));
	give(r, atol(in->text)), give(r, atoll(in->text));
	give(r, strtoll(in->text, &end, 0)), give(r, end - in->text);
	give(r, strtoull(in->text, &end, 16)), give(r, end - in->text);
	give(r, stpcpy(stpcpy(copy, in->text), "!") - copy);
	give(r, strlen(copy));
}

static void fixed(struct reply *r, const struct request *in)
{
	__fixed64 a = fixed64_from_int(in->i >> 4);

	give(r, fixed64_to_int(a));
	give(r, fixed_narrow(FIXED64(1.5)));
	give(r, fixed_widen(FIXED(-2.25)));
	give(r, fixed64_mul(a, FIXED64(0.5)));
	give(r, fixed_to_int(fixed_from_int(in->j % 30000)));
}

int functions(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	struct reply r = { 0 };
	struct request in;

	if (lambda_read(headers, &in, sizeof(in)) != sizeof(in))
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	in.text[31] = 0;
	floats(&r, &in);
	integers(&r, &in);
	fixed(&r, &in);
	return lambda_write(headers, r.words, sizeof(r.words));
}
