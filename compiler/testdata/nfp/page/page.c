/* A web server of constant texts that counts what it serves, for the NIC, a process, and a card. */
#include <lambda.h>
#include <text.h>

#define INDEX \
	"<!doctype html>\n<title>lambda</title>\n<h1>It works, before the host noticed</h1>\n<p>From the card.</p>\n"
#define HELLO "Hello from the NIC.\n"

enum { PAGE_INDEX, PAGE_HELLO, PAGES };

LAMBDA_COUNTERS(served, PAGES);

int page(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	if (match_data->payload_len == 6 && lambda_has_text(headers, 0, "/hello")) {
		lambda_count(served, PAGE_HELLO, 1);
		lambda_put_text(headers, 0, HELLO); /* where it has no room, the client is told how much it takes */
		return lambda_reply(headers, 0, sizeof(HELLO) - 1);
	}
	if (match_data->payload_len > 1 || (match_data->payload_len && !lambda_has_text(headers, 0, "/")))
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	lambda_count(served, PAGE_INDEX, 1);
	lambda_put_text(headers, 0, INDEX);
	return lambda_reply(headers, 0, sizeof(INDEX) - 1);
}
