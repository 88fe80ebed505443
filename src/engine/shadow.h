/* engine/shadow.h - the open calls of one task, and the marks they make.
 *
 * A frame is known by its stack pointer at entry (where the return address lies) and
 * its function, never by its address alone. Frames belong to stacks; a task is on one
 * of its stacks at a time (signal stacks, coroutines). An event first closes the frames
 * below its stack pointer on the same stack: they were left by longjmp, an exception, or
 * a jump nobody watches. The profile knows one nest of calls per task: frames of another
 * stack that are in the way of an exit are closed there and opened again, flagged,
 * when their stack runs again. Pure: no process. */
#ifndef TL_ENGINE_SHADOW_H
#define TL_ENGINE_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct tl_frame {
	uint64_t sp;
	void *probe;	    /* the user's */
	bool shown;	    /* makes marks */
	bool open_in_block; /* its enter is written, its exit not yet */
};

struct tl_stack {
	uint64_t lo, hi; /* [lo, hi) of memory */
	TL_VEC(struct tl_frame) frames; /* outermost first, falling sp */
	unsigned suspended; /* shown, but not open in the block */
};

struct tl_shadow_ops {
	/* A mark: FLAGS of enum tl_mark_flag. */
	void (*opened)(void *ctx, const struct tl_frame *f, unsigned flags);
	void (*closed)(void *ctx, const struct tl_frame *f, unsigned flags);
	/* The call is over, shown or not: after closed(). */
	void (*left)(void *ctx, const struct tl_frame *f);
};

struct tl_open {
	struct tl_stack *stack;
	size_t frame;
};

struct tl_shadow {
	const struct tl_shadow_ops *ops;
	void *ctx;
	struct tl_stack *current;
	TL_VEC(struct tl_stack *) stacks; /* owned */
	TL_VEC(struct tl_open) block;	  /* what the profile has open, outermost first */
};

void tl_shadow_init(struct tl_shadow *s, const struct tl_shadow_ops *ops, void *ctx);
/* The stack that SP is on becomes the current one. false: it is none of the known ones, see
 * tl_shadow_add_stack(). */
bool tl_shadow_on(struct tl_shadow *s, uint64_t sp);
void tl_shadow_add_stack(struct tl_shadow *s, uint64_t lo, uint64_t hi);

enum tl_entered { TL_ENTERED, TL_ENTERED_LOOP /* a jump back to its own first instruction */ };
/* On the current stack. LOOPS: the function is known to jump to its own entry. */
enum tl_entered tl_shadow_enter(struct tl_shadow *s, uint64_t sp, void *probe, bool loops, bool shown);
/* A frame that was open before anybody looked: outermost first. */
void tl_shadow_found(struct tl_shadow *s, uint64_t sp, void *probe, bool shown);
/* At an instruction that leaves a function, with the stack pointer as at its entry. */
void tl_shadow_exit(struct tl_shadow *s, uint64_t sp);
/* At the address a function returned to: SP is above its return address. */
void tl_shadow_return(struct tl_shadow *s, uint64_t sp);
/* Everything, on all stacks, FLAGS on each mark. */
void tl_shadow_close_all(struct tl_shadow *s, unsigned flags);
/* TO, just initialised, gets FROM's current stack with its frames. */
void tl_shadow_inherit(struct tl_shadow *to, const struct tl_shadow *from,
		       void *(*probe)(void *ctx, void *), void *ctx);
/* The innermost frame of the current stack, or NULL. */
const struct tl_frame *tl_shadow_top(const struct tl_shadow *s);
void tl_shadow_fini(struct tl_shadow *s);

#endif
