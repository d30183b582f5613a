/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A web server of text pages: the request is a path, the reply the page (the λ-NIC paper, section 6.2a). */
#include <lambda.h>
#include <text.h>

#define PATH_MAX_LEN 8
#define PAGE_SIZE 2048

enum { PAGE_INDEX, PAGE_HELLO, PAGE_ABOUT, PAGE_LONG, PAGES };

#define INDEX \
	"<!doctype html>\n<title>lambda</title>\n" \
	"<h1>It works, before the kernel noticed</h1>\n" \
	"<p>This page was written into your request's own packet.</p>\n" \
	"<ul><li><a href=\"/hello\">hello</a></li><li><a href=\"/about\">about</a></li></ul>\n"
#define HELLO "Hello from the NIC.\n"
#define ABOUT "One C function, matched by a workload ID, run to completion, answered in place.\n"
#define LINE "All work and no sleep makes a lambda answer in microseconds. 0123\n"
#define LINES LINE LINE LINE LINE LINE
#define LONG LINES LINES LINES LINES LINES LINES

/* One page per row; the row behind the last is the spare room that lambda_reply_from() asks for. */
static const char pages[PAGES + 1][PAGE_SIZE] = {
	[PAGE_INDEX] = INDEX,
	[PAGE_HELLO] = HELLO,
	[PAGE_ABOUT] = ABOUT,
	[PAGE_LONG] = LONG,
};

/* A path of up to eight bytes as the number that a little-endian load of it gives. */
#define PATH(a, b, c, d, e, f, g, h) \
	((uint64_t)(a) | (uint64_t)(b) << 8 | (uint64_t)(c) << 16 | (uint64_t)(d) << 24 | (uint64_t)(e) << 32 | \
	 (uint64_t)(f) << 40 | (uint64_t)(g) << 48 | (uint64_t)(h) << 56)

/* Pages served, by page: it goes on counting in the next revision. A cache line for each CPU, so that none waits for another. */
LAMBDA_KEPT struct {
	uint64_t served[8];
} counters[LAMBDA_CPUS];

static uint64_t requested_path(EXTRACTED_HEADERS_T *headers, uint32_t len)
{
	const uint8_t *p = payload(headers, 0, PATH_MAX_LEN);
	uint64_t path = 0;

	if (p) {
		path = *(const uint64_t *)p;
		return len < PATH_MAX_LEN ? path & ((1ULL << (len * 8)) - 1) : path;
	}
	for (uint32_t i = 0; i < PATH_MAX_LEN && i < len; i++) {
		p = payload(headers, i, 1);
		if (p)
			path |= (uint64_t)*p << (i * 8);
	}
	return path;
}

/* How many pages were served, in decimal. It is written backwards, and the reply begins where the number does. */
static int visits(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint64_t total = 0;
	int32_t at;

	if (match_data->room < 10)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	for (uint32_t cpu = 0; cpu < LAMBDA_CPUS; cpu++)
		for (uint32_t i = 0; i < PAGES; i++)
			total += counters[cpu].served[i];
	at = lambda_put_number(headers, 10, total);
	return lambda_reply(headers, at, 10 - at);
}

int web_server(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t page, len, at = match_data->payload_len;

	if (at > PATH_MAX_LEN)
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	switch (requested_path(headers, at)) {
	case 0:
	case PATH('/', 0, 0, 0, 0, 0, 0, 0):
		page = PAGE_INDEX;
		len = sizeof(INDEX) - 1;
		break;
	case PATH('/', 'h', 'e', 'l', 'l', 'o', 0, 0):
		page = PAGE_HELLO;
		len = sizeof(HELLO) - 1;
		break;
	case PATH('/', 'a', 'b', 'o', 'u', 't', 0, 0):
		page = PAGE_ABOUT;
		len = sizeof(ABOUT) - 1;
		break;
	case PATH('/', 'l', 'o', 'n', 'g', 0, 0, 0):
		page = PAGE_LONG;
		len = sizeof(LONG) - 1;
		break;
	case PATH('/', 'v', 'i', 's', 'i', 't', 's', 0):
		return visits(headers, match_data);
	default:
		return lambda_fail(headers, LN_STATUS_NOT_FOUND);
	}
	if (!match_data->window)
		__sync_fetch_and_add(&counters[lambda_cpu()].served[page], 1);
	return lambda_reply_from(headers, match_data, pages, page * PAGE_SIZE, len);
}
