/* probe/exits.h - where control leaves a function.
 *
 * Walks control flow from the entry over the original bytes; nothing that it does
 * not reach is ever touched, since text contains data. Pure: no process. */
#ifndef TL_PROBE_EXITS_H
#define TL_PROBE_EXITS_H

#include "arch/arch.h"

struct tl_code {
	void *ctx;
	/* Original bytes at AT, up to N; returns how many could be had (0: none). */
	size_t (*read)(void *ctx, tl_vaddr at, uint8_t *buf, size_t n);
	/* The function's own code: its ranges, cold parts included, apart from each other. Jump
	 * tables are read outside of them. */
	const struct tl_vrange *ranges;
	size_t n_ranges;
	tl_vaddr entry;
};

enum tl_exit_kind {
	TL_EXIT_RETURN,
	TL_EXIT_JUMP,	/* a direct jump that leaves */
	TL_EXIT_BRANCH, /* a conditional jump that leaves: an exit only when taken */
};

struct tl_exit {
	tl_vaddr at;
	enum tl_exit_kind kind;
	tl_vaddr target; /* of JUMP and BRANCH */
};

struct tl_exits {
	struct tl_exit *at; /* sorted by address, each once; owned */
	size_t n;
	bool use_return_site; /* exits are not all known: watch where it returns to */
	const char *why;      /* static text, when use_return_site */
	/* A loop around the whole function: coming to its entry again is no call. A function
	 * with a stack frame that jumps to its first instruction has left that frame, and calls
	 * itself (sqlite3WhereSplit in fixtures/sqlite_fixture). */
	bool jumps_to_entry;
	size_t instructions;  /* walked */
};

/* A call that its range ends with (filling aside) does not come back: were it to, control would
 * run into whatever follows, so no compiler emits one that does.
 *
 * TL_OK, or a negative errno with text when the entry itself cannot be decoded. */
int tl_exits_find(const struct tl_arch *arch, const struct tl_code *code, struct tl_exits *out);
void tl_exits_fini(struct tl_exits *e);

#endif
