#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <memory.h>
#include <pif_plugin.h>
#include <pif_common.h>

#define SIDE 256

/* The host writes the image, then the flag; the lambda answers with the same. */
volatile __export __emem uint8_t image_ready = 0;
volatile __export __emem uint8_t result_ready = 0;
volatile __export __emem uint32_t image[SIDE][SIDE]; /* red in the low byte, then green and blue */
volatile __export __emem uint8_t result[SIDE][SIDE];

int pif_plugin_grayscale(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_job_T *job = pif_plugin_hdr_get_job(headers);
	int x, y;

	while (!image_ready) {
		sleep(1000);
	}
	for (y = 0; y < SIDE; y++) {
		for (x = 0; x < SIDE; x++) {
			uint32_t pixel = image[y][x];

			result[y][x] = (uint8_t)(((pixel & 0xff) + ((pixel >> 8) & 0xff) + ((pixel >> 16) & 0xff)) / 3);
		}
	}
	image_ready = 0;
	result_ready = 1;
	job->__data_0 = SIDE;
	job->__data_1 = SIDE;
	return PIF_PLUGIN_RETURN_FORWARD;
}
