#include <stdint.h>
#include <string.h>
#include <memory.h>
#include <pif_plugin.h>
#include <pif_plugin_metadata.h>
#include <pif_common.h>

#define JOB_SET 3

/* memcached's frame of a datagram: request 1, the first of one; then the command, filled up with blanks and line ends. */
int pif_plugin_write_query(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	PIF_PLUGIN_query_T *query = pif_plugin_hdr_get_query(headers);
	PIF_PLUGIN_udp_T *udp = pif_plugin_hdr_get_udp(headers);
	PIF_PLUGIN_ipv4_T *ipv4 = pif_plugin_hdr_get_ipv4(headers);

	query->__text_0 = 0x00010000;
	query->__text_1 = 0x00010000;
	if (pif_plugin_meta_get__origin__job(headers) == JOB_SET) {
		query->__text_2 = 0x73657420; /* "set " */
		query->__text_3 = 0x6b657920; /* "key " */
		query->__text_4 = 0x30203020; /* "0 0 " */
		query->__text_5 = 0x340d0a64; /* "4\r\nd" */
		query->__text_6 = 0x6174610d; /* "ata\r" */
		query->__text_7 = 0x0a0d0a0a; /* "\n" and what the length leaves out */
		udp->length_ = 8 + 29;
	} else {
		query->__text_2 = 0x67657420; /* "get " */
		query->__text_3 = 0x6b65790d; /* "key\r" */
		query->__text_4 = 0x0a000000; /* "\n" */
		udp->length_ = 8 + 17;
	}
	ipv4->totalLen = 20 + udp->length_;
	return PIF_PLUGIN_RETURN_FORWARD;
}
