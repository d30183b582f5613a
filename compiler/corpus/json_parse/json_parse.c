/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A JSON parser by recursive descent: functions that call each other. Reply: whether the request is a JSON text, how deep it is, and
 * how many objects, arrays, strings, numbers and words it has.
 */
#include <lambda.h>

#define DEEPEST 16

struct parser {
	const char *at;
	int bad, depth, deepest;
	int objects, arrays, strings, numbers, words;
};

static void value(struct parser *p);

static void space(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
		p->at++;
}

static int take(struct parser *p, char c)
{
	if (*p->at != c)
		return 0;
	p->at++;
	return 1;
}

static void escape(struct parser *p)
{
	if (!take(p, '"') && !take(p, '\\') && !take(p, 'n') && !take(p, 't'))
		p->bad = 1;
}

static void string(struct parser *p)
{
	p->strings++;
	if (!take(p, '"'))
		p->bad = 1;
	while (!p->bad && !take(p, '"')) {
		if ((unsigned char)*p->at < 0x20)
			p->bad = 1;
		else if (take(p, '\\'))
			escape(p);
		else
			p->at++;
	}
}

static void digits(struct parser *p)
{
	if (*p->at < '0' || *p->at > '9')
		p->bad = 1;
	while (*p->at >= '0' && *p->at <= '9')
		p->at++;
}

static void number(struct parser *p)
{
	p->numbers++;
	take(p, '-');
	if (!take(p, '0'))
		digits(p);
	if (take(p, '.'))
		digits(p);
	if (take(p, 'e') || take(p, 'E')) {
		if (!take(p, '+'))
			take(p, '-');
		digits(p);
	}
}

static void word(struct parser *p, const char *text)
{
	p->words++;
	while (*text)
		if (!take(p, *text++))
			p->bad = 1;
}

static void array(struct parser *p)
{
	p->arrays++;
	space(p);
	if (take(p, ']'))
		return;
	do
		value(p);
	while (!p->bad && take(p, ','));
	if (!take(p, ']'))
		p->bad = 1;
}

static void object(struct parser *p)
{
	p->objects++;
	space(p);
	if (take(p, '}'))
		return;
	do {
		space(p);
		string(p);
		space(p);
		if (!take(p, ':'))
			p->bad = 1;
		value(p);
	} while (!p->bad && take(p, ','));
	if (!take(p, '}'))
		p->bad = 1;
}

static void value(struct parser *p)
{
	if (++p->depth > DEEPEST)
		p->bad = 1;
	if (p->depth > p->deepest)
		p->deepest = p->depth;
	space(p);
	if (p->bad)
		;
	else if (take(p, '{'))
		object(p);
	else if (take(p, '['))
		array(p);
	else if (*p->at == '"')
		string(p);
	else if (*p->at == 't')
		word(p, "true");
	else if (*p->at == 'f')
		word(p, "false");
	else if (*p->at == 'n')
		word(p, "null");
	else
		number(p);
	space(p);
	p->depth--;
}

int json_parse(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[1401];
	struct parser p = { .at = in };
	uint32_t n = lambda_read(headers, in, sizeof(in) - 1);

	(void)match_data;
	in[n] = 0;
	value(&p);
	if (p.bad || p.at != in + n)
		return lambda_write(headers, "bad", 3);
	uint16_t out[] = { p.deepest, p.objects, p.arrays, p.strings, p.numbers, p.words };

	return lambda_write(headers, out, sizeof(out));
}
