/* unwind/unwind.h - stacks from a copy of registers and stack, without ptrace.
 *
 * libunwind, and only here, through our own accessors: code and unwind tables
 * come from the files, the stack from the copy. Never stops or asks a task. */
#ifndef TL_UNWIND_UNWIND_H
#define TL_UNWIND_UNWIND_H

#include <sys/types.h>

#include "arch/arch.h"

/* What the unwinder asks for about an address. Addresses are the tracee's. */
struct tl_unwind_module {
	tl_vaddr lo, hi; /* of all its mappings */
	uint64_t bias;	 /* tracee address - file address */
	tl_faddr eh_frame_hdr; /* {0}: none */
	uint64_t eh_frame_hdr_size;
	const void *key; /* the same for the same module: caches hang on it */
};

struct tl_unwind_source {
	void *ctx;
	/* false: no module there. */
	bool (*module_at)(void *ctx, tl_vaddr pc, struct tl_unwind_module *out);
	/* Bytes of a module as they are in its file (no int3 of ours); how many could be had. */
	size_t (*read_module)(void *ctx, tl_vaddr at, void *buf, size_t n);
};

struct tl_stack_copy {
	tl_regs regs;
	tl_vaddr base; /* address of bytes[0]: sp - arch's red_zone, or stacks stopped in an
			  epilogue come out incomplete */
	const uint8_t *bytes;
	size_t n;
};

struct tl_unwound {
	tl_vaddr pc; /* of a caller: the return address */
	tl_vaddr sp; /* the frame's stack pointer at pc */
	tl_vaddr cfa; /* stack pointer before the call that made this frame: its return address
			 lies just below. {0}: unknown, of the last frame */
	bool in_signal; /* pc is the instruction to look up, not one behind a call: the innermost
			   frame, the kernel's signal frame and the one that it interrupted */
	bool is_trampoline; /* the kernel's signal frame: no call of the program's */
};

struct tl_unwinder; /* one per space; not thread-safe */
struct tl_unwinder *tl_unwinder_new(const struct tl_unwind_source *src);
/* Innermost first. *COMPLETE tells whether the outermost frame was reached: not so when the
 * copy ends before, when MAX is less, or in code without unwind tables, where frames would be
 * guesses. A pc in a slot of ours has none: take the registers back by tl_step_place(). */
size_t tl_unwind(struct tl_unwinder *u, const struct tl_stack_copy *copy, struct tl_unwound *out,
		 size_t max, bool *complete);
/* After dlclose, exec, or when modules changed. */
void tl_unwinder_flush(struct tl_unwinder *u);
void tl_unwinder_free(struct tl_unwinder *u);

#endif
