// SPDX-License-Identifier: Apache-2.0
/* Tags packets by a key of a namespace, and checks the tags of answers (docs/protocol.md, "Tags"). */
#include <ctype.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "internal.h"
#include "siphash.h"

#define TAGGED offsetof(struct ln_rpc, tag) /* bytes of the header that the tag covers */
#define TAG_FLAGS (LN_FLAG_TAG | LN_FLAG_TAG_PAYLOAD | LN_FLAG_ODD_KEY)
#define SECRET_LEN 16 /* bytes */
#define SECRET_TEXT 22 /* as many characters of base64, whose last four bits are zero */

/* Reading a key's text: lnk1:NAMESPACE:NUMBER:SECRET */

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	const char *d = c ? strchr(digits, c) : NULL;

	return d ? (int)(d - digits) : -1;
}

/* read_number reads a key's number up to the colon. Returns where it ends, or NULL. */
static const char *read_number(const char *s, uint32_t *number)
{
	uint64_t n = 0;

	for (; *s >= '0' && *s <= '9'; s++) {
		n = n * 10 + (uint64_t)(*s - '0');
		if (n > UINT32_MAX)
			return NULL;
	}
	*number = (uint32_t)n;
	return n && *s == ':' ? s : NULL;
}

static bool read_secret(const char *s, uint8_t secret[SECRET_LEN])
{
	uint32_t bits = 0, have = 0;
	size_t n = 0;

	for (size_t i = 0; i < SECRET_TEXT; i++) {
		int d = base64_digit(s[i]);

		if (d < 0)
			return false;
		bits = bits << 6 | (uint32_t)d;
		have += 6;
		if (have >= 8) {
			have -= 8;
			secret[n++] = (uint8_t)(bits >> have);
			bits &= (1U << have) - 1;
		}
	}
	for (s += SECRET_TEXT; isspace((unsigned char)*s); s++)
		;
	return !bits && !*s;
}

bool tagger_read(struct tagger *t, const char *key, bool header_only)
{
	uint8_t secret[SECRET_LEN];
	uint32_t number;
	bool right;

	while (isspace((unsigned char)*key))
		key++;
	if (strncmp(key, "lnk1:", 5) || key[5] == ':')
		return false;
	key = strchr(key + 5, ':');
	key = key ? read_number(key + 1, &number) : NULL;
	if (!key)
		return false;
	right = read_secret(key + 1, secret);
	memcpy(&t->k0, secret, sizeof(t->k0));
	memcpy(&t->k1, secret + sizeof(t->k0), sizeof(t->k1));
	explicit_bzero(secret, sizeof(secret));
	t->k0 = le64toh(t->k0);
	t->k1 = le64toh(t->k1);
	t->flags =
		(uint8_t)(LN_FLAG_TAG | (header_only ? 0 : LN_FLAG_TAG_PAYLOAD) | (number % 2 ? LN_FLAG_ODD_KEY : 0));
	return right;
}

bool tagger_identify(struct tagger *t)
{
	t->sent = 0;
	return getrandom(&t->client, sizeof(t->client), 0) == sizeof(t->client);
}

/* Tags */

/* word reads up to eight bytes as SipHash does. */
static uint64_t word(const uint8_t *p, size_t len)
{
	uint64_t w = 0;

	if (len)
		memcpy(&w, p, MIN(len, sizeof(w)));
	return le64toh(w);
}

/* tag_of is the tag over a header's bytes before it and, if the key is for both, the payload. */
static uint64_t tag_of(const struct tagger *t, const void *header, const uint8_t *payload, size_t len)
{
	const uint8_t *p = header;
	__u64 v[4];
	size_t i;

	if (!(t->flags & LN_FLAG_TAG_PAYLOAD))
		len = 0;
	ln_sip_begin(v, t->k0, t->k1);
	for (i = 0; i < TAGGED; i += 8)
		ln_sip_word(v, word(p + i, 8));
	for (i = 0; len - i >= 8; i += 8)
		ln_sip_word(v, word(payload + i, 8));
	return ln_sip_end(v, (uint32_t)(TAGGED + len), word(len > i ? payload + i : NULL, len - i));
}

void tagger_tag(struct tagger *t, struct ln_rpc *header, const uint8_t *payload, size_t len)
{
	const uint64_t n = ++t->sent;
	uint32_t client = t->client + (uint32_t)(n >> 32);

	if (!client) /* the anonymous one */
		client = UINT32_C(1) << 31;
	header->flags |= t->flags;
	header->client = htobe32(client);
	header->sequence = htobe32((uint32_t)n);
	header->tag = htobe64(tag_of(t, header, payload, len));
}

bool tagger_accepts(const struct tagger *t, const struct header *h, const void *packet)
{
	const uint8_t *payload = (const uint8_t *)packet + sizeof(struct ln_rpc);

	return (h->flags & TAG_FLAGS) == t->flags && h->tag == tag_of(t, packet, payload, h->length);
}
