/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LZ4 decompression of one block. Reply: 'y' and what the request holds, or 'n' if it is malformed or too long. */
#include <lambda.h>
#include <string.h>

#define MAX 1399

/* A length of 15 continues in further bytes, up to one that is not 255. */
static int length(const uint8_t **in, const uint8_t *end, int n)
{
	uint8_t more = 255;

	if (n < 15)
		return n;
	while (more == 255) {
		if (*in == end || n > MAX)
			return -1;
		more = *(*in)++;
		n += more;
	}
	return n;
}

static int copy_match(uint8_t *out, int at, int offset, int n)
{
	if (offset == 0 || offset > at || n > MAX - at)
		return -1;
	for (int i = 0; i < n; i++) /* the source may overlap the output */
		out[at + i] = out[at + i - offset];
	return at + n;
}

static int decompress(const uint8_t *in, const uint8_t *end, uint8_t *out)
{
	int at = 0;

	while (in < end) {
		int token = *in++, n = length(&in, end, token >> 4), offset;

		if (n < 0 || n > end - in || n > MAX - at)
			return -1;
		memcpy(out + at, in, n);
		at += n;
		in += n;
		if (in == end)
			return at;
		if (end - in < 2)
			return -1;
		offset = in[0] | in[1] << 8;
		in += 2;
		n = length(&in, end, token & 15);
		if (n < 0)
			return -1;
		at = copy_match(out, at, offset, n + 4);
		if (at < 0)
			return -1;
	}
	return -1; /* a block ends with literals */
}

int lz4(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400], out[1 + MAX];
	int n = decompress(in, in + lambda_read(headers, in, sizeof(in)), out + 1);

	(void)match_data;
	out[0] = n < 0 ? 'n' : 'y';
	return lambda_write(headers, out, n < 0 ? 1 : 1 + n);
}
