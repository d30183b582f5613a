/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stack machine that interprets programs of up to 255 bytes. Request: the program. Reply: what it printed, 32 bits each, until it
 * ended, failed, or had run 2,000 steps.
 *
 * 0 end; 1 X push; 2 add; 3 subtract; 4 multiply; 5 divide; 6 duplicate; 7 swap; 8 drop; 9 print; 10 X jump; 11 X jump if zero;
 * 12 X store to register; 13 X load from register; 14 less than; 15 remainder.
 */
#include <lambda.h>

#define STACK 32
#define REGISTERS 8
#define STEPS 2000
#define OUT 64

enum { END, PUSH, ADD, SUB, MUL, DIV, DUP, SWAP, DROP, PRINT, JUMP, ZERO, STORE, LOAD, LESS, REST };

struct machine {
	int32_t stack[STACK], reg[REGISTERS], out[OUT];
	int depth, printed;
};

static const uint8_t takes[] = { 0, 0, 2, 2, 2, 2, 1, 2, 1, 1, 0, 1, 1, 0, 2, 2 };

static int binary(int op, int32_t a, int32_t b, int32_t *to)
{
	switch (op) {
	case ADD:
		*to = (uint32_t)a + (uint32_t)b;
		return 1;
	case SUB:
		*to = (uint32_t)a - (uint32_t)b;
		return 1;
	case MUL:
		*to = (uint32_t)a * (uint32_t)b;
		return 1;
	case LESS:
		*to = a < b;
		return 1;
	}
	if (b == 0 || (a == -2147483647 - 1 && b == -1))
		return 0;
	*to = op == DIV ? a / b : a % b;
	return 1;
}

static void run(struct machine *m, const uint8_t *code, int n)
{
	int pc = 0;

	for (int step = 0; step < STEPS && pc < n; step++) {
		int op = code[pc++], x = pc < n ? code[pc] : 0;
		int32_t *top;

		if (op > REST || m->depth < takes[op] || m->depth == STACK)
			return;
		top = m->stack + m->depth;
		switch (op) {
		case END:
			return;
		case PUSH:
			*top = (int8_t)x;
			m->depth++;
			pc++;
			break;
		case DUP:
			*top = top[-1];
			m->depth++;
			break;
		case SWAP: {
			int32_t t = top[-1];

			top[-1] = top[-2];
			top[-2] = t;
			break;
		}
		case DROP:
			m->depth--;
			break;
		case PRINT:
			if (m->printed == OUT)
				return;
			m->out[m->printed++] = top[-1];
			m->depth--;
			break;
		case JUMP:
			pc = x;
			break;
		case ZERO:
			pc = top[-1] ? pc + 1 : x;
			m->depth--;
			break;
		case STORE:
			m->reg[x % REGISTERS] = top[-1];
			m->depth--;
			pc++;
			break;
		case LOAD:
			*top = m->reg[x % REGISTERS];
			m->depth++;
			pc++;
			break;
		default:
			if (!binary(op, top[-2], top[-1], &top[-2]))
				return;
			m->depth--;
		}
	}
}

int bytecode(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	uint8_t code[255];
	struct machine m = { .depth = 0 };

	(void)match_data;
	run(&m, code, lambda_read(headers, code, sizeof(code)));
	return lambda_write(headers, m.out, m.printed * sizeof(m.out[0]));
}
