/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fixture for state across revisions. Each request counts in three objects, one kept, one migrated and one that starts anew, and
 * gets all three counts. COUNTER_VERSION chooses the layout of the migrated one; version 2 counts in tens.
 */
#include <lambda.h>

#ifndef COUNTER_VERSION
#define COUNTER_VERSION 1
#endif

#if COUNTER_VERSION == 1
struct count {
	uint32_t hits;
	uint32_t unused;
};
#define HITS(count) ((count)->hits)
#define STEP 1
#else
struct count {
	uint8_t note[16];
	uint64_t tens;
};
#define HITS(count) ((count)->tens)
#define STEP 10
#endif

LAMBDA_KEPT uint32_t kept;
LAMBDA_MIGRATED struct count migrated;
static uint32_t fresh;

#ifdef COUNTER_FROM /* the members that the old object had */
struct old {
	COUNTER_FROM
};

LAMBDA_MIGRATE(struct old, old)
{
#ifdef COUNTER_FAULT
	volatile uint32_t *nowhere = NULL;

	*nowhere = 1;
#endif
#ifdef COUNTER_HANG
	volatile uint32_t forever = 1;

	while (forever)
		;
#endif
	migrated.tens = 10ULL * old->hits;
}
#endif

int counter(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint32_t *counts = (uint32_t *)payload(headers, 0, 12);

	if (!counts || match_data->payload_len < 12)
		return lambda_fail(headers, LN_STATUS_BAD_REQUEST);
	counts[0] = __sync_fetch_and_add(&kept, 1) + 1;
	counts[1] = (uint32_t)__sync_fetch_and_add(&HITS(&migrated), STEP) + STEP;
	counts[2] = __sync_fetch_and_add(&fresh, 1) + 1;
	return lambda_reply(headers, 0, 12);
}
