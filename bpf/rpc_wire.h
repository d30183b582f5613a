/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Generated from api/wire.go by api/genheader. Do not edit. */
#ifndef LN_RPC_WIRE_H
#define LN_RPC_WIRE_H

#include <linux/types.h>

enum {
	LN_RPC_PORT = 4370,
	LN_RPC_MAGIC = 955,
	LN_RPC_VERSION = 1,
	LN_RPC_HEADER_LEN = 64,
	LN_RPC_MAX_PAYLOAD = 1408,
	LN_RPC_FRAGMENT = 1376,
	LN_RPC_MAX_MESSAGE = 94371840,
	LN_RPC_ASK_AFTER = 3,
	LN_TYPE_REQUEST = 1,
	LN_TYPE_RESPONSE = 2,
	LN_TYPE_ACK = 3,
	LN_TYPE_PULL = 4,
	LN_TYPE_ERROR = 5,
	LN_FLAG_TAG = 1,
	LN_FLAG_TAG_PAYLOAD = 2,
	LN_FLAG_ACK_WANTED = 4,
	LN_FLAG_DONE = 8,
	LN_FLAG_RESEND = 16,
	LN_FLAG_ONCE = 32,
	LN_FLAG_ODD_KEY = 64,
	LN_FLAG_REGION = 128,
	LN_CODE_UNKNOWN_WORKLOAD = 1,
	LN_CODE_OVER_QUOTA = 2,
	LN_CODE_BAD_TAG = 3,
	LN_CODE_MALFORMED = 4,
	LN_CODE_LAMBDA_FAULT = 5,
	LN_CODE_TOO_LARGE = 6,
	LN_CODE_BUSY = 7,
	LN_CODE_TIMEOUT = 8,
	LN_CODE_UNREACHABLE = 9,
	LN_CODE_STALE = 10,
	LN_CODE_DEADLINE = 11,
	LN_FAULT_OWN = 1,
	LN_FAULT_TIME = 2,
	LN_FAULT_BOUNDS = 3,
	LN_FAULT_RECURSION = 4,
	LN_FAULT_MEMORY = 5,
	LN_FAULT_DIVISION = 6,
	LN_FAULT_CRASH = 7,
	LN_STATUS_OK = 0,
	LN_STATUS_NOT_FOUND = 1,
	LN_STATUS_BAD_REQUEST = 2,
	LN_STATUS_FAILED = 3,
	LN_STATUS_SERVICE_ERROR = 4,
	LN_STATUS_HTTP400 = 100,
};

/* All fields are in network order. */
struct ln_rpc {
	__be16 magic;
	__u8 version;
	__u8 type;
	__u8 flags;
	__u8 code;
	__be16 length;
	__be32 workload;
	__be32 revision;
	__be64 request;
	__be32 index;
	__be32 count;
	__be32 message_len;
	__be32 method;
	__be32 deadline_us;
	__be32 client;
	__be32 sequence;
	__be32 grant;
	__be64 tag;
};

#ifndef __cplusplus
_Static_assert(sizeof(struct ln_rpc) == LN_RPC_HEADER_LEN, "the header has no padding");
#endif

#endif
