/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic by recursive descent: + - * / % with C's rules, unary minus and parentheses. Request: an expression. Reply: its value, 64 bits;
 * nothing if it has none.
 */
#include <lambda.h>

#define DEEPEST 24

struct parser {
	const char *at;
	int depth, bad;
};

static int64_t sum(struct parser *p);

static int take(struct parser *p, char c)
{
	while (*p->at == ' ')
		p->at++;
	if (*p->at != c)
		return 0;
	p->at++;
	return 1;
}

static int64_t atom(struct parser *p)
{
	int64_t v = 0;

	if (take(p, '-'))
		return p->depth++ < DEEPEST ? -atom(p) : (p->bad = 1);
	if (take(p, '(')) {
		if (p->depth++ > DEEPEST)
			p->bad = 1;
		else
			v = sum(p);
		if (!take(p, ')'))
			p->bad = 1;
		return v;
	}
	if (*p->at < '0' || *p->at > '9')
		p->bad = 1;
	while (*p->at >= '0' && *p->at <= '9')
		v = v * 10 + (*p->at++ - '0');
	return v;
}

static int64_t product(struct parser *p)
{
	int64_t v = atom(p), w;

	while (!p->bad) {
		if (take(p, '*')) {
			v *= atom(p);
		} else if (take(p, '/')) {
			w = atom(p);
			v = w ? v / w : (p->bad = 1);
		} else if (take(p, '%')) {
			w = atom(p);
			v = w ? v % w : (p->bad = 1);
		} else {
			break;
		}
	}
	return v;
}

static int64_t sum(struct parser *p)
{
	int64_t v = product(p);

	while (!p->bad) {
		if (take(p, '+'))
			v += product(p);
		else if (take(p, '-'))
			v -= product(p);
		else
			break;
	}
	return v;
}

int calculator(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[301];
	struct parser p = { .at = in };
	uint32_t n = lambda_read(headers, in, sizeof(in) - 1);
	int64_t v;

	(void)match_data;
	in[n] = 0;
	v = sum(&p);
	take(&p, 0);
	return lambda_write(headers, &v, p.bad || p.at <= in + n ? 0 : sizeof(v));
}
