#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <memory.h>
#include <pif_plugin.h>
#include <pif_plugin_metadata.h>
#include <pif_common.h>

/* How many greetings were given. */
volatile __export __imem uint32_t greetings;

int pif_plugin_greet(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_job_T *job = pif_plugin_hdr_get_job(headers);

	job->__data_0 = 0x48656c6c; /* "Hell" */
	job->__data_1 = 0x6f206f66; /* "o of" */
	job->__data_2 = 0x2074776f; /* " two" */
	job->__data_3 = 0x20756c0a; /* " ul\n" */
	greetings++;
	return PIF_PLUGIN_RETURN_FORWARD;
}

int pif_plugin_count(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_job_T *job = pif_plugin_hdr_get_job(headers);

	job->__data_0 = 0;
	job->__data_1 = 0;
	job->__data_2 = 0;
	job->__data_3 = greetings;
	return PIF_PLUGIN_RETURN_FORWARD;
}
