/* event/frames.h - the open functions of one task, outermost first.
 *
 * Knows ids only. Zero-initialised is empty. */
#ifndef TL_EVENT_FRAMES_H
#define TL_EVENT_FRAMES_H

#include <stdint.h>

#include "base/vec.h"

struct tl_frames {
	uint32_t *at;
	size_t n, cap;
};

static inline void tl_frames_push(struct tl_frames *f, uint32_t func)
{
	tl_vec_push(f, func);
}

/* 0 when none is open. */
static inline uint32_t tl_frames_top(const struct tl_frames *f)
{
	return f->n ? f->at[f->n - 1] : 0;
}

/* How many frames are open from the innermost activation of FUNC on, itself
 * included; 0 when it is not open. */
static inline size_t tl_frames_down_to(const struct tl_frames *f, uint32_t func)
{
	for (size_t i = f->n; i; i--)
		if (f->at[i - 1] == func)
			return f->n - i + 1;
	return 0;
}

static inline void tl_frames_fini(struct tl_frames *f)
{
	tl_vec_fini(f);
}

#endif
