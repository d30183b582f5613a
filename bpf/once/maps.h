/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The map of requests of one packet that are executed at most once. */
#ifndef LN_ONCE_MAPS_H
#define LN_ONCE_MAPS_H

#include "../maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LN_ONCE_BUCKETS);
	__type(key, __u32);
	__type(value, struct ln_once_bucket);
} ln_onces SEC(".maps");

#endif
