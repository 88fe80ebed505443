#include "sym/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { CHUNK = 64 * 1024 };

struct tl_arena_chunk {
	struct tl_arena_chunk *next;
	char bytes[];
};

static char *reserve(struct tl_arena *a, size_t n, size_t align)
{
	size_t at = (a->used + align - 1) & ~(align - 1);

	if (!a->chunks || n > a->cap || at > a->cap - n) {
		struct tl_arena_chunk *c;

		a->cap = n > CHUNK ? n : CHUNK;
		c = tl_malloc(sizeof *c + a->cap);
		c->next = a->chunks;
		a->chunks = c;
		at = 0;
	}
	a->used = at + n;
	return a->chunks->bytes + at;
}

void *tl_arena_alloc(struct tl_arena *a, size_t n)
{
	return reserve(a, n, sizeof(void *));
}

/* Strings need no alignment, and there are hundreds of thousands of them. */
char *tl_arena_strdup(struct tl_arena *a, const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(reserve(a, n, 1), s, n);
}

char *tl_arena_printf(struct tl_arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *s;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	s = reserve(a, (size_t)n + 1, 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return s;
}

void tl_arena_fini(struct tl_arena *a)
{
	while (a->chunks) {
		struct tl_arena_chunk *c = a->chunks;

		a->chunks = c->next;
		free(c);
	}
	a->used = a->cap = 0;
}
