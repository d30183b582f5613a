/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a command of memcached does: its name in the text protocol (protocol.txt of memcached, also the meta commands) or its opcode in the
 * binary one (protocol-binary.txt), and the class that says how its arguments are read.
 */
#ifndef MC_COMMAND_H
#define MC_COMMAND_H

#include <linux/types.h>

/* A function that the verifier checks by itself, once, so that what calls it in a loop is checked in little time. */
#define MC_GLOBAL __attribute__((noinline, weak))

/* How a command's arguments are read, and what it does. */
enum mc_class {
	MC_CLASS_BAD, /* none that is known: nobody can say where the next command begins */
	MC_CLASS_GET, /* reads keys */
	MC_CLASS_GAT, /* reads keys, and gives them another expiry */
	MC_CLASS_STORE, /* key, flags, expiry, length; a value follows */
	MC_CLASS_CAS, /* text: key, flags, expiry, length, number of the version; a value follows */
	MC_CLASS_CHANGE, /* changes one key */
	MC_CLASS_FLUSH, /* changes all keys, perhaps later */
	MC_CLASS_META_GET, /* key, flags of one letter each; changes the key if certain flags are there */
	MC_CLASS_META_STORE, /* key, length, flags; a value follows */
	MC_CLASS_META_CHANGE, /* key, flags */
	MC_CLASS_OTHER, /* changes no key, and has an answer of one line */
	MC_CLASS_LIST, /* changes no key, and has an answer of many lines */
};

/* A name of at most eight letters as a number; of a longer one the last eight. */
#define MC_NAME8(a, b, c, d, e, f, g, h) \
	((__u64)(a) << 56 | (__u64)(b) << 48 | (__u64)(c) << 40 | (__u64)(d) << 32 | (__u64)(e) << 24 | \
	 (__u64)(f) << 16 | (__u64)(g) << 8 | (__u64)(h))
#define MC_NAME2(a, b) MC_NAME8(0, 0, 0, 0, 0, 0, a, b)
#define MC_NAME3(a, b, c) MC_NAME8(0, 0, 0, 0, 0, a, b, c)
#define MC_NAME4(a, b, c, d) MC_NAME8(0, 0, 0, 0, a, b, c, d)
#define MC_NAME5(a, b, c, d, e) MC_NAME8(0, 0, 0, a, b, c, d, e)
#define MC_NAME6(a, b, c, d, e, f) MC_NAME8(0, 0, a, b, c, d, e, f)
#define MC_NAME7(a, b, c, d, e, f, g) MC_NAME8(0, a, b, c, d, e, f, g)

#define MC_NOREPLY MC_NAME7('n', 'o', 'r', 'e', 'p', 'l', 'y')

/* The class of the text protocol's command of this name and length. */
static __always_inline enum mc_class mc_text_class(__u64 name, __u32 len)
{
	if (len == 2)
		switch (name) {
		case MC_NAME2('m', 'g'):
			return MC_CLASS_META_GET;
		case MC_NAME2('m', 's'):
			return MC_CLASS_META_STORE;
		case MC_NAME2('m', 'd'):
		case MC_NAME2('m', 'a'):
			return MC_CLASS_META_CHANGE;
		case MC_NAME2('m', 'n'):
		case MC_NAME2('m', 'e'):
			return MC_CLASS_OTHER;
		}
	if (len <= 8)
		switch (name) {
		case MC_NAME3('g', 'e', 't'):
		case MC_NAME4('g', 'e', 't', 's'):
			return MC_CLASS_GET;
		case MC_NAME3('g', 'a', 't'):
		case MC_NAME4('g', 'a', 't', 's'):
			return MC_CLASS_GAT;
		case MC_NAME3('s', 'e', 't'):
		case MC_NAME3('a', 'd', 'd'):
		case MC_NAME6('a', 'p', 'p', 'e', 'n', 'd'):
		case MC_NAME7('r', 'e', 'p', 'l', 'a', 'c', 'e'):
		case MC_NAME7('p', 'r', 'e', 'p', 'e', 'n', 'd'):
			return MC_CLASS_STORE;
		case MC_NAME3('c', 'a', 's'):
			return MC_CLASS_CAS;
		case MC_NAME4('i', 'n', 'c', 'r'):
		case MC_NAME4('d', 'e', 'c', 'r'):
		case MC_NAME5('t', 'o', 'u', 'c', 'h'):
		case MC_NAME6('d', 'e', 'l', 'e', 't', 'e'):
			return MC_CLASS_CHANGE;
		case MC_NAME4('q', 'u', 'i', 't'):
		case MC_NAME7('v', 'e', 'r', 's', 'i', 'o', 'n'):
			return MC_CLASS_OTHER;
		case MC_NAME5('s', 't', 'a', 't', 's'):
			return MC_CLASS_LIST;
		}
	if (len == 9 && name == MC_NAME8('l', 'u', 's', 'h', '_', 'a', 'l', 'l'))
		return MC_CLASS_FLUSH;
	if (len == 9 && name == MC_NAME8('e', 'r', 'b', 'o', 's', 'i', 't', 'y'))
		return MC_CLASS_OTHER;
	return MC_CLASS_BAD;
}

/* The class of the binary protocol's command of this opcode. */
static __always_inline enum mc_class mc_binary_class(__u8 opcode)
{
	switch (opcode) {
	case 0x00: /* get */
	case 0x09: /* getq */
	case 0x0c: /* getk */
	case 0x0d: /* getkq */
		return MC_CLASS_GET;
	case 0x1d: /* gat */
	case 0x1e: /* gatq */
	case 0x23: /* gatk */
	case 0x24: /* gatkq */
		return MC_CLASS_GAT;
	case 0x01: /* set */
	case 0x02: /* add */
	case 0x03: /* replace */
	case 0x0e: /* append */
	case 0x0f: /* prepend */
	case 0x11: /* setq */
	case 0x12: /* addq */
	case 0x13: /* replaceq */
	case 0x19: /* appendq */
	case 0x1a: /* prependq */
		return MC_CLASS_STORE;
	case 0x04: /* delete */
	case 0x05: /* increment */
	case 0x06: /* decrement */
	case 0x14: /* deleteq */
	case 0x15: /* incrementq */
	case 0x16: /* decrementq */
	case 0x1c: /* touch */
		return MC_CLASS_CHANGE;
	case 0x08: /* flush */
	case 0x18: /* flushq */
		return MC_CLASS_FLUSH;
	case 0x07: /* quit */
	case 0x0a: /* noop */
	case 0x0b: /* version */
	case 0x17: /* quitq */
	case 0x1b: /* verbosity */
	case 0x20: /* list of SASL mechanisms */
	case 0x21: /* SASL authentication */
	case 0x22: /* SASL step */
		return MC_CLASS_OTHER;
	case 0x10: /* stat */
		return MC_CLASS_LIST;
	}
	return MC_CLASS_BAD;
}

/* Whether the binary protocol's command of this opcode is answered in certain cases only. */
static __always_inline int mc_binary_quiet(__u8 opcode)
{
	return opcode == 0x09 || opcode == 0x0d || (opcode >= 0x11 && opcode <= 0x1a) || opcode == 0x1e ||
	       opcode == 0x24;
}

/* Whether something follows the key of the binary protocol's command of this opcode. */
static __always_inline int mc_binary_has_value(__u8 opcode)
{
	return mc_binary_class(opcode) == MC_CLASS_STORE || opcode == 0x21 || opcode == 0x22;
}

#endif
