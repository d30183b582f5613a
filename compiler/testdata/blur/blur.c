/* Keeps the pixels of an image and answers with a checksum: plain loops over a large array, as an author writes them. */
#include "lambda.h"

#define PIXELS 65536
static uint32_t image[PIXELS];

int blur(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t i, first = match_data->offset / 4, n = match_data->payload_len / 4;
	uint32_t sum = 0;
	uint8_t *p;

	if (match_data->event == LAMBDA_FRAGMENT) {
		for (i = 0; i < 344 && i < n; i++) {
			p = payload(headers, 4 * i, 4);
			if (!p || first + i >= PIXELS)
				return RETURN_FAULT;
			image[first + i] = p[0] | p[1] << 8 | p[2] << 16;
		}
		return RETURN_KEEP;
	}
	n = match_data->message_len / 4;
	for (i = 0; i < n && i < 4096; i++)
		sum += image[i] & 0xff;
	p = payload(headers, 0, 4);
	if (!p)
		return RETURN_FAULT;
	p[0] = sum;
	return lambda_reply(headers, 0, 4);
}
