/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CRC-32 (IEEE 802.3) by a table that the first request makes. Reply: the sum of the request. */
#include <lambda.h>

static uint32_t table[256];

static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
		table[i] = c;
	}
}

int crc32(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400];
	uint32_t n = lambda_read(headers, in, sizeof(in)), c = ~0u;

	(void)match_data;
	if (!table[1])
		make_table();
	for (uint32_t i = 0; i < n; i++)
		c = table[(c ^ in[i]) & 0xff] ^ c >> 8;
	c = ~c;
	return lambda_write(headers, &c, sizeof(c));
}
