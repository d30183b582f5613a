/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A JSON tokenizer (RFC 8259). Reply: one letter for each token, { } [ ] : , as they are, s for a string, n for a number, t f z for
 * true, false, null; ! in place of a malformed token, which ends the reply.
 */
#include <lambda.h>
#include <string.h>

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Each of these gives the end of a token, or NULL. The text ends with a NUL. */
static const char *string(const char *p)
{
	for (p++; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return 0;
		if (*p != '\\')
			continue;
		p++;
		if (*p == 'u') {
			for (int i = 0; i < 4; i++)
				if (!is_hex(*++p))
					return 0;
		} else if (!*p || !strchr("\"\\/bfnrt", *p)) {
			return 0;
		}
	}
	return p + 1;
}

static const char *digits(const char *p)
{
	if (!is_digit(*p))
		return 0;
	while (is_digit(*p))
		p++;
	return p;
}

static const char *number(const char *p)
{
	if (*p == '-')
		p++;
	p = *p == '0' ? p + 1 : digits(p);
	if (p && *p == '.')
		p = digits(p + 1);
	if (p && (*p == 'e' || *p == 'E')) {
		p++;
		p = digits(*p == '+' || *p == '-' ? p + 1 : p);
	}
	return p;
}

static const char *word(const char *p, const char *text)
{
	size_t n = strlen(text);

	return strncmp(p, text, n) ? 0 : p + n;
}

static const char *token(const char *p, char *kind)
{
	*kind = *p;
	switch (*p) {
	case '{':
	case '}':
	case '[':
	case ']':
	case ':':
	case ',':
		return p + 1;
	case '"':
		*kind = 's';
		return string(p);
	case 't':
		return word(p, "true");
	case 'f':
		return word(p, "false");
	case 'n':
		*kind = 'z';
		return word(p, "null");
	default:
		*kind = 'n';
		return number(p);
	}
}

int json(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	char in[1401], out[1401];
	const char *p = in;
	uint32_t tokens = 0, n = lambda_read(headers, in, sizeof(in) - 1);

	(void)match_data;
	in[n] = 0;
	for (;;) {
		while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
			p++;
		if (!*p)
			break;
		p = token(p, &out[tokens]);
		if (!p)
			out[tokens] = '!';
		tokens++;
		if (!p)
			break;
	}
	return lambda_write(headers, out, tokens);
}
