/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Internet checksum (RFC 1071), by words of 32 bits in a sum of 64. Reply: the checksum of the request, in network order. */
#include <lambda.h>
#include <string.h>

int checksum(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t in[1400 + 3];
	uint32_t n = lambda_read(headers, in, 1400), word;
	uint64_t sum = 0;
	uint16_t out;

	(void)match_data;
	memset(in + n, 0, 3);
	for (uint32_t i = 0; i < n; i += 4) {
		memcpy(&word, in + i, sizeof(word));
		sum += word;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	out = ~sum;
	return lambda_write(headers, &out, sizeof(out));
}
