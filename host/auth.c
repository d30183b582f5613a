// SPDX-License-Identifier: Apache-2.0
/*
 * Authentication, as in the NIC program's bpf/auth.h: a packet's tag is SipHash-2-4 under a key of the lambda's namespace, and each sequence
 * number of a client is good for one packet. The windows are in a file that the lambda's next process maps as well, so that a packet which one
 * of them accepted is not good for the other. A lambda can write to its windows as it can to all memory of its process: no other lambda's
 * process may map them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"
#include "siphash.h"
#include "window.h"

enum {
	TAG_FLAGS = LN_FLAG_TAG | LN_FLAG_TAG_PAYLOAD | LN_FLAG_ODD_KEY,
	TAGGED = offsetof(struct ln_rpc, tag), /* bytes of the header that a tag covers */
	LOCKS = 64, /* each for some of the sets */
};

static struct table {
	uint32_t ready;
	pthread_mutex_t locks[LOCKS];
	struct ln_windows sets[LN_WINDOW_SETS]; /* all clients have one owner */
} *table;

/* A process that dies while it holds a lock leaves a window that is whole: the lock's next holder goes on. */
static int make_locks(void)
{
	pthread_mutexattr_t attr;
	int err = 0;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < LOCKS && !err; i++)
		err = -pthread_mutex_init(&table->locks[i], &attr);
	pthread_mutexattr_destroy(&attr);
	return err;
}

/* Maps the windows, and makes them if there are none. */
int auth_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), err = 0;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX) || ftruncate(fd, sizeof(*table))) {
		err = -errno;
		close(fd);
		return err;
	}
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		err = -errno;
	else if (!table->ready)
		err = make_locks();
	if (!err)
		table->ready = 1;
	flock(fd, LOCK_UN); /* the mapping keeps the file open */
	close(fd);
	return err;
}

/* Whether keys can be used: there are windows. */
bool auth_ready(void)
{
	return table;
}

static uint64_t tag(const struct ln_key *key, const struct ln_rpc *rpc, const uint8_t *payload, uint32_t len)
{
	__u64 v[4];
	uint64_t word;

	ln_sip_begin(v, key->word[0], key->word[1]);
	for (uint32_t i = 0; i < TAGGED; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)rpc + i, sizeof(word));
		ln_sip_word(v, le64toh(word));
	}
	for (uint32_t i = 0; i < len / sizeof(word); i++) {
		memcpy(&word, payload + i * sizeof(word), sizeof(word));
		ln_sip_word(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, payload + len / sizeof(word) * sizeof(word), len % sizeof(word));
	return ln_sip_end(v, TAGGED + len, le64toh(word));
}

/* The key that a packet names; NULL if there is none. */
static const struct ln_key *key_of(const struct ln_rpc *rpc)
{
	const struct ln_key *key = &host.keys.key[!!(rpc->flags & LN_FLAG_ODD_KEY)];

	return key->valid ? key : NULL;
}

static bool has_right_tag(const struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;
	const struct ln_key *key = key_of(rpc);
	uint32_t len = rpc->flags & LN_FLAG_TAG_PAYLOAD ? be16toh(rpc->length) : 0;

	/* Anonymous clients would share a window. */
	return key && rpc->client && len <= p->flow.room && tag(key, rpc, p->base, len) == be64toh(rpc->tag);
}

static bool is_replay(uint32_t client, uint32_t sequence)
{
	uint32_t number = ln_window_set(0, client);
	pthread_mutex_t *lock = &table->locks[number % LOCKS];
	bool replay;

	if (pthread_mutex_lock(lock) == EOWNERDEAD)
		pthread_mutex_consistent(lock);
	replay = ln_window_replay(&table->sets[number], 0, client, sequence);
	pthread_mutex_unlock(lock);
	return replay;
}

/* Whether a packet may be served. */
enum authenticity auth_check(struct packet *p)
{
	const struct ln_rpc *rpc = &p->flow.rpc;

	if (!(rpc->flags & LN_FLAG_TAG))
		return host.keys.required ? AUTH_BAD_TAG : AUTH_GENUINE;
	if (!has_right_tag(p))
		return AUTH_BAD_TAG;
	if (is_replay(be32toh(rpc->client), be32toh(rpc->sequence)))
		return AUTH_REPLAYED;
	p->flow.tagged = true;
	return AUTH_GENUINE;
}

/* Tags an answer, whose payload is len bytes, as its request is. If the key is gone, the answer has no tag. */
void auth_sign(const struct flow *flow, struct ln_rpc *rpc, const uint8_t *payload, uint32_t len)
{
	const struct ln_key *key = key_of(&flow->rpc);

	if (!flow->tagged || !key)
		return;
	rpc->flags |= flow->rpc.flags & TAG_FLAGS;
	rpc->tag = htobe64(tag(key, rpc, payload, rpc->flags & LN_FLAG_TAG_PAYLOAD ? len : 0));
}
