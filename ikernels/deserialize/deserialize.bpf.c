// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//go:build ignore

/*
 * deserialize reads JSON (RFC 8259), and hands a struct over by a ring instead of the message. A message is an object; its members that have the names of
 * fields become the struct, and it skips all others, with whatever is nested in them. The application notes the fields once, before it attaches a socket. A note
 * of fields that cannot be is a fault.
 *
 * The message goes to the socket instead if
 *
 * - it is no such object, or one whose arrays and objects are nested deeper than JS_NESTED, or it is longer than DESERIALIZE_MESSAGE (counted as malformed),
 * - a field is missing, is there twice, or has a value that does not fit (unfit). An integer fits if it has no fraction and no exponent, not even those of 1.0
 *   and 1e3, and is one of 64 bits. A string fits if it has not more bytes than its field, and its escapes are characters: no half of a pair (\ud800),
 * - or its ring is full, or there are no rings or no fields yet.
 *
 * Strings come as UTF-8. Bytes that are not UTF-8 stay as they are.
 */
struct ik_registers {
	unsigned long long fields; /* how many there are; 0: the application has noted none */
	unsigned long long bytes; /* of the struct */
	unsigned long long taken; /* messages that became a struct, whether or not a ring had room for it */
	unsigned long long malformed;
	unsigned long long unfit;
};

#include "../notes.h"
#include "../rings.h"

enum deserialize_limit {
	DESERIALIZE_FIELDS = 16,
	DESERIALIZE_NAME = 32, /* bytes of a field's name */
	DESERIALIZE_STRUCT = 512, /* bytes; a power of two */
	DESERIALIZE_MESSAGE = 2048, /* bytes; a power of two */
};

enum ik_own_fault {
	DESERIALIZE_FAULT_IMPOSSIBLE_FIELDS = IK_FAULT_OWN, /* no struct can have the fields of the note */
};

enum deserialize_type {
	DESERIALIZE_NONE,
	DESERIALIZE_INTEGER, /* eight bytes, signed */
	DESERIALIZE_STRING, /* its length in four bytes, and its bytes, with zeros behind them up to a multiple of eight */
};

/* What a note has for each field, in the order in which the struct has them. Numbers are in the machine's byte order. */
struct deserialize_field {
	__u32 type; /* enum deserialize_type */
	__u32 size; /* most bytes of a string; 0 for an integer */
	__u64 name[DESERIALIZE_NAME / 8]; /* with zeros behind it */
};

struct deserialize_place {
	struct deserialize_field field;
	__u32 name_len;
	__u32 at; /* where in the struct */
};

struct deserialize_form {
	__u32 count; /* of fields */
	__u32 bytes;
	struct deserialize_place places[DESERIALIZE_FIELDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct deserialize_form);
} deserialize_forms SEC(".maps");

struct js_values {
	__u32 type; /* enum deserialize_type, of the field whose value comes */
	__u32 size; /* and its other properties */
	__u32 at;
	__u32 seen; /* a bit for each field */
	__u32 unfit;
	__u32 len; /* bytes of the string so far */
	__u32 high; /* the half of a pair whose other half has to come */
	__u32 negative;
	__u64 number; /* without its sign */
	union {
		__u64 words[DESERIALIZE_NAME / 8];
		__u8 bytes[DESERIALIZE_NAME];
	} name;
	union {
		__u64 words[DESERIALIZE_STRUCT / 8];
		__u8 bytes[DESERIALIZE_STRUCT];
	} out;
};

#include "../json.h"

struct deserialize_scratch {
	struct js_reader json;
	__u8 message[DESERIALIZE_MESSAGE];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct deserialize_scratch);
} deserialize_scratches SEC(".maps");

/* Whether the string at hand is a field's value, or may be its name. */
static __always_inline int deserialize_reads(const struct js_reader *r)
{
	return r->depth == 1 && (r->is_name || r->values.type == DESERIALIZE_STRING);
}

static __always_inline void js_begin_text(struct js_reader *r)
{
	r->values.len = 0;
	r->values.high = 0;
	if (!r->is_name)
		return;
	for (int i = 0; i < DESERIALIZE_NAME / 8; i++)
		r->values.name.words[i] = 0;
}

/* The string at hand is no field's value, or name. */
static __always_inline void deserialize_refuse(struct js_reader *r)
{
	if (r->is_name)
		r->values.len = DESERIALIZE_NAME + 1;
	else
		r->values.unfit = 1;
}

static __always_inline void deserialize_put(struct js_reader *r, __u8 c)
{
	struct js_values *v = &r->values;
	__u32 at = v->len;

	if (at >= (r->is_name ? DESERIALIZE_NAME : v->size)) {
		deserialize_refuse(r);
		return;
	}
	v->len++;
	if (r->is_name) {
		ln_opaque(at);
		v->name.bytes[at % DESERIALIZE_NAME] = c;
		return;
	}
	at += v->at + 4;
	ln_opaque(at);
	v->out.bytes[at % DESERIALIZE_STRUCT] = c;
}

static __always_inline void js_add(struct js_reader *r, __u8 c)
{
	if (!deserialize_reads(r))
		return;
	if (r->values.high)
		deserialize_refuse(r);
	else
		deserialize_put(r, c);
}

/* Adds a character above ASCII as UTF-8 has it. */
static __always_inline void deserialize_put_wide(struct js_reader *r, __u32 code)
{
	__u32 more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

	deserialize_put(r, (0xff00 >> (more + 1) & 0xff) | code >> 6 * more);
	if (more > 2)
		deserialize_put(r, 0x80 | (code >> 12 & 0x3f));
	if (more > 1)
		deserialize_put(r, 0x80 | (code >> 6 & 0x3f));
	deserialize_put(r, 0x80 | (code & 0x3f));
}

static __always_inline void js_add_unit(struct js_reader *r, __u32 unit)
{
	struct js_values *v = &r->values;
	__u32 is_low = unit >> 10 == 0xdc00 >> 10;

	if (!deserialize_reads(r))
		return;
	if (is_low != (v->high != 0)) {
		deserialize_refuse(r);
		return;
	}
	if (unit >> 10 == 0xd800 >> 10) {
		v->high = unit;
		return;
	}
	if (is_low)
		unit = 0x10000 + ((v->high & 0x3ff) << 10) + (unit & 0x3ff);
	v->high = 0;
	if (unit < 0x80)
		deserialize_put(r, unit);
	else
		deserialize_put_wide(r, unit);
}

static __always_inline int deserialize_is_named(const struct deserialize_place *p, const struct js_values *v)
{
	__u64 differs = p->name_len ^ v->len;

	for (int i = 0; i < DESERIALIZE_NAME / 8; i++)
		differs |= p->field.name[i] ^ v->name.words[i];
	return !differs;
}

/* Finds the field that has a member's name. */
LN_GLOBAL int deserialize_find(struct js_values *v)
{
	struct deserialize_form *f;
	__u32 zero = 0;

	f = bpf_map_lookup_elem(&deserialize_forms, &zero);
	if (!f || !v)
		return 0;
	v->type = DESERIALIZE_NONE;
	if (v->high)
		return 0;
	for (__u32 i = 0; i < DESERIALIZE_FIELDS && i < f->count; i++) {
		const struct deserialize_place *p = &f->places[i];

		if (!deserialize_is_named(p, v))
			continue;
		v->unfit |= v->seen >> i & 1;
		v->seen |= 1 << i;
		v->type = p->field.type;
		v->size = p->field.size;
		v->at = p->at;
		return 0;
	}
	return 0;
}

static __always_inline int js_end_name(struct js_reader *r)
{
	if (r->depth == 1)
		deserialize_find(&r->values);
	return 1;
}

static __always_inline void js_end_text(struct js_reader *r)
{
	struct js_values *v = &r->values;
	__u32 at = v->at / 8;

	if (!deserialize_reads(r))
		return;
	if (v->high)
		v->unfit = 1;
	ln_opaque(at);
	*(__u32 *)&v->out.words[at % (DESERIALIZE_STRUCT / 8)] = v->len;
}

static __always_inline void js_add_digit(struct js_reader *r, __u8 c)
{
	struct js_values *v = &r->values;
	__u32 at = v->at / 8;

	if (r->depth != 1 || v->type != DESERIALIZE_INTEGER)
		return;
	if (!js_is_digit(c) || v->number > (1ULL << 63) / 10) {
		v->unfit = 1;
		return;
	}
	v->number = v->number * 10 + (c - '0');
	if (v->number > (1ULL << 63) - 1 + v->negative)
		v->unfit = 1;
	ln_opaque(at);
	v->out.words[at % (DESERIALIZE_STRUCT / 8)] = v->negative ? -v->number : v->number;
}

static __always_inline void js_begin_value(struct js_reader *r, __u8 c)
{
	struct js_values *v = &r->values;

	if (r->depth != 1 || v->type == DESERIALIZE_NONE)
		return;
	if (v->type == DESERIALIZE_STRING) {
		if (c != '"')
			v->unfit = 1;
		return;
	}
	v->number = 0;
	v->negative = c == '-';
	if (!v->negative)
		js_add_digit(r, c);
}

LN_GLOBAL int deserialize_byte(struct js_reader *r, __u32 c)
{
	return r ? js_read(r, c) : 0;
}

static long deserialize_step(__u32 at, void *unused)
{
	struct deserialize_scratch *s;
	__u32 zero = 0;
	int goes_on;

	s = bpf_map_lookup_elem(&deserialize_scratches, &zero);
	if (!s || at >= DESERIALIZE_MESSAGE)
		return 1;
	goes_on = deserialize_byte(&s->json, s->message[at]);
	ln_opaque(goes_on); /* or Clang would compute what the verifier has to see: 0 or 1 */
	return goes_on ? 0 : 1;
}

enum deserialize_verdict {
	DESERIALIZE_TAKEN,
	DESERIALIZE_MALFORMED,
	DESERIALIZE_UNFIT,
};

/* Reads a message of which the scratch has len bytes. */
static __noinline int deserialize_read(struct deserialize_scratch *s, __u32 len, __u32 fields)
{
	static const struct js_reader begin;

	s->json = begin;
	bpf_loop(len, deserialize_step, NULL, 0);
	if (s->json.state != JS_END)
		return DESERIALIZE_MALFORMED;
	return s->json.values.unfit || s->json.values.seen != (1 << fields) - 1 ? DESERIALIZE_UNFIT : DESERIALIZE_TAKEN;
}

static __always_inline void deserialize_count(__u32 verdict)
{
	struct ik_state *s = ik_begin();

	if (!s)
		return;
	s->registers.taken += verdict == DESERIALIZE_TAKEN;
	s->registers.malformed += verdict == DESERIALIZE_MALFORMED;
	s->registers.unfit += verdict == DESERIALIZE_UNFIT;
	ik_end(s);
}

static __always_inline enum ik_verdict ik_receive(struct ik_message *m)
{
	__u32 zero = 0, n = m->len, verdict = DESERIALIZE_MALFORMED;
	struct deserialize_scratch *s;
	struct deserialize_form *f;

	f = bpf_map_lookup_elem(&deserialize_forms, &zero);
	s = bpf_map_lookup_elem(&deserialize_scratches, &zero);
	if (!f || !s)
		return ik_fault(IK_FAULT_MEMORY_NOT_FOUND);
	if (!f->count || !ik_rings_count())
		return IK_PASS;
	if (ln_length_fits(n, DESERIALIZE_MESSAGE) && !bpf_xdp_load_bytes(m->ctx, m->at, s->message, n))
		verdict = deserialize_read(s, n, f->count);
	deserialize_count(verdict);
	if (verdict != DESERIALIZE_TAKEN)
		return IK_PASS;
	return ik_post(m, ik_ring_by_core(), s->json.values.out.bytes, f->bytes, DESERIALIZE_STRUCT) ? IK_PASS
												     : IK_DROP;
}

/* Reads a field of a note to its place at the end of the struct; 0 if it cannot be one. */
LN_GLOBAL int deserialize_accept(struct deserialize_place *p, __u32 bytes)
{
	__u32 len = 0, ended = 0;
	const __u8 *name;

	if (!p)
		return 0;
	name = (const __u8 *)p->field.name;
	for (int i = 0; i < DESERIALIZE_NAME; i++) {
		if (name[i] && ended)
			return 0;
		ended |= !name[i];
		len += !ended;
	}
	p->name_len = len;
	p->at = bytes;
	if (p->field.type == DESERIALIZE_INTEGER && !p->field.size)
		bytes += 8;
	else if (p->field.type == DESERIALIZE_STRING && p->field.size && p->field.size <= DESERIALIZE_STRUCT)
		bytes += (4 + p->field.size + 7) & ~7;
	else
		return 0;
	return len && bytes <= DESERIALIZE_STRUCT ? bytes : 0;
}

/* Copies a field of a note; not 0 if the note ends before its end. A function of its own: the verifier wants the note in a register all the time. */
static __noinline long deserialize_copy(const struct bpf_dynptr *note, struct deserialize_form *f, __u32 i)
{
	if (i >= DESERIALIZE_FIELDS)
		return -1;
	return ik_read_note(note, i * sizeof(f->places[i].field), &f->places[i].field, sizeof(f->places[i].field));
}

/* Copies the fields of a note. Returns how many they are; 0 if there are bytes too much. */
static __noinline __u32 deserialize_copy_all(const struct bpf_dynptr *note, struct deserialize_form *f)
{
	__u8 more;
	__u32 i;

	for (i = 0; i < DESERIALIZE_FIELDS; i++)
		if (deserialize_copy(note, f, i))
			break;
	return ik_read_note(note, i * sizeof(f->places[0].field), &more, sizeof(more)) ? i : 0;
}

/* Lays a struct out; 0 if one of its fields cannot be, or the number of its bytes. */
static __always_inline __u32 deserialize_lay_out(struct deserialize_form *f, __u32 count)
{
	__u32 bytes = 0;

	for (__u32 i = 0; i < DESERIALIZE_FIELDS && i < count; i++) {
		bytes = deserialize_accept(&f->places[i], bytes);
		if (!bytes)
			return 0;
	}
	return bytes;
}

static __always_inline void ik_note(const struct bpf_dynptr *note)
{
	struct deserialize_form *f;
	__u32 zero = 0, count;
	struct ik_state *s;

	f = bpf_map_lookup_elem(&deserialize_forms, &zero);
	if (!f || f->count)
		return;
	count = deserialize_copy_all(note, f);
	f->bytes = deserialize_lay_out(f, count);
	if (!f->bytes) {
		ik_fault(DESERIALIZE_FAULT_IMPOSSIBLE_FIELDS);
		return;
	}
	__sync_fetch_and_add(&f->count, count); /* behind all else: from now on it is read */
	s = ik_begin();
	if (!s)
		return;
	s->registers.fields = count;
	s->registers.bytes = f->bytes;
	ik_end(s);
}

const enum deserialize_limit *deserialize_limit_ __attribute__((unused));
const enum ik_own_fault *ik_own_fault_ __attribute__((unused));
