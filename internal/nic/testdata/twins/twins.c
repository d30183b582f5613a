#include <pif_plugin.h>

volatile __export uint32_t go;

int pif_plugin_hold(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	while (!go)
		sleep(1000);
	return PIF_PLUGIN_RETURN_FORWARD;
}
