/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of messages of several packets. */
#ifndef LN_MESSAGES_MAPS_H
#define LN_MESSAGES_MAPS_H

#include "../maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, struct ln_bucket);
} ln_messages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ln_grants);
} ln_granting SEC(".maps");

#endif
