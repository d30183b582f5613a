/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program knows of the message at hand. */
#ifndef CJ_SCRATCH_H
#define CJ_SCRATCH_H

#include "../../bpf/parse.h"

enum cj_limit {
	CJ_MESSAGE = 2048, /* bytes of a CoAP message; a power of two */
	CJ_OPTIONS = 64, /* of a message */
	CJ_DEPTH = 16, /* arrays and maps within each other, in the payload; a power of two */
	CJ_SIGNED = 1024, /* bytes of a token before its signature */
	CJ_SIGNATURE = 43, /* characters */
	CJ_TOKEN = CJ_SIGNED + 1 + CJ_SIGNATURE,
	CJ_HEADER = 1024, /* a power of two above what CJ_SIGNED characters encode */
	CJ_BLOCK = 64, /* bytes, of SHA-256 */
	CJ_OUTER = 2 * CJ_TOKEN, /* where in the token's buffer is HMAC's last block */
	CJ_BUFFER = CJ_OUTER + CJ_BLOCK,
	CJ_KEYS = 8,
};

/* What becomes of a message. Each is a counter. */
enum cj_verdict {
	CJ_OTHER, /* passes: no request */
	CJ_PASSED, /* passes: a request with a token that one of the keys has signed */
	CJ_MALFORMED, /* no CoAP message */
	CJ_LARGE, /* longer than the program reads */
	CJ_BLOCKWISE, /* a part of a request */
	CJ_NO_TOKEN,
	CJ_PAYLOAD, /* the payload is not CBOR, no map, or has two tokens */
	CJ_TOKEN_FORM, /* the token is not three parts in base64url, of which the first is JSON */
	CJ_ALGORITHM, /* the token is not for HS256 */
	CJ_FORGED, /* none of the keys has signed it */
	CJ_VERDICTS,
	CJ_GOES_ON = CJ_VERDICTS, /* none yet */
};

/* An array, map or string of parts of the payload, whose end is still to come. */
struct cj_level {
	__u32 kind; /* enum cj_major */
	__u32 left; /* items that are still to come; CJ_UNKNOWN: until a break */
	__u32 items; /* that came */
	__u32 token; /* whether the next value, or the string, is the token */
};

/* What we read of a token's header (header.h). */
struct js_values {
	__u32 member; /* enum cj_member: whose value comes */
	__u32 seen; /* a bit for each of enum cj_member */
	__u32 is_hs256; /* so says member alg */
	__u32 len; /* bytes of the string so far */
	__u64 text; /* its last eight */
	__u64 hash; /* of the string */
	__u64 kid; /* the hash of member kid; 0: there is none */
};

#include "../json.h"

struct cj_scratch {
	struct ln_flow flow;
	__u32 len; /* bytes of the message */
	__u32 at; /* where in it the next byte is to be read */
	__u32 option; /* the number of the last option */
	__u32 depth; /* how many levels are open */
	__u32 tagged; /* the last item was a tag, which belongs to the next */
	__u32 found; /* whether there is a token */
	__u32 token_len;
	__u32 signed_len; /* bytes of the token that are signed */
	__u32 header_len; /* bytes of the header, decoded */
	__u32 hash[8];
	__u8 signature[32];
	struct js_reader json;
	struct cj_level levels[CJ_DEPTH];
	__u8 header[CJ_HEADER];
	__u8 token[CJ_BUFFER];
	__u8 message[CJ_MESSAGE + 16]; /* with room for what is read beyond its end */
};

#endif
