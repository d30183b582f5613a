/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A backtracking matcher of regular expressions with . * + ? ^ $, after Pike's in The Practice of Programming. Request: the
 * expression, a NUL, the text. Reply: where it first matches, -1 for nowhere.
 */
#include <lambda.h>

static int here(const char *re, const char *text);

static int fits(char c, char text)
{
	return text && (c == '.' || c == text);
}

/* Tries the longest repetition first, then shorter ones. */
static int repeated(char c, const char *re, const char *text, int least, int most)
{
	int n = 0;

	while (n < most && fits(c, text[n]))
		n++;
	for (; n >= least; n--)
		if (here(re, text + n))
			return 1;
	return 0;
}

static int here(const char *re, const char *text)
{
	if (!re[0])
		return 1;
	if (re[0] == '$' && !re[1])
		return !*text;
	switch (re[1]) {
	case '*':
		return repeated(re[0], re + 2, text, 0, 1400);
	case '+':
		return repeated(re[0], re + 2, text, 1, 1400);
	case '?':
		return repeated(re[0], re + 2, text, 0, 1);
	}
	return fits(re[0], *text) && here(re + 1, text + 1);
}

static int search(const char *re, const char *text)
{
	const char *at = text;

	if (re[0] == '^')
		return here(re + 1, text) ? 0 : -1;
	do
		if (here(re, at))
			return at - text;
	while (*at++);
	return -1;
}

int regex_match(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[401];
	int32_t at;
	uint32_t n = lambda_read(headers, in, sizeof(in) - 1), text = 0;

	(void)match_data;
	in[n] = 0;
	while (in[text])
		text++;
	if (text == n)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	at = search(in, in + text + 1);
	return lambda_write(headers, &at, sizeof(at));
}
