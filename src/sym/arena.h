/* sym/arena.h - many small strings and arrays that die together.
 *
 * Zero-initialised is empty.  Nothing is freed before tl_arena_fini(). */
#ifndef TL_SYM_ARENA_H
#define TL_SYM_ARENA_H

#include <stddef.h>

struct tl_arena_chunk;
struct tl_arena {
	struct tl_arena_chunk *chunks;
	size_t used, cap; /* of the newest chunk */
};

/* Aligned for pointers and 64-bit numbers; not zeroed. */
void *tl_arena_alloc(struct tl_arena *a, size_t n);
char *tl_arena_strdup(struct tl_arena *a, const char *s);
char *tl_arena_printf(struct tl_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tl_arena_fini(struct tl_arena *a);

#endif
