/* base/vec.h - growing arrays of any type.
 *
 *	TL_VEC(int) v = {0};
 *	tl_vec_push(&v, 7);
 *	for (size_t i = 0; i < v.n; i++) use(v.at[i]);
 *	tl_vec_fini(&v);
 *
 * Growing moves the elements: hold indices, not pointers, across a push. */
#ifndef TL_BASE_VEC_H
#define TL_BASE_VEC_H

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define TL_VEC(type)                                                                               \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t n, cap;                                                                     \
	}

#define tl_vec_reserve(v, want)                                                                    \
	do {                                                                                       \
		if ((want) > (v)->cap) {                                                           \
			(v)->cap = (want) > (v)->cap * 2 ? (want) : (v)->cap * 2;                  \
			(v)->at = tl_realloc((v)->at, (v)->cap * sizeof *(v)->at);                 \
		}                                                                                  \
	} while (0)

#define tl_vec_push(v, ...)                                                                        \
	do {                                                                                       \
		if ((v)->n == (v)->cap)                                                            \
			tl_vec_reserve(v, (v)->cap ? (v)->cap * 2 : 8);                            \
		(v)->at[(v)->n++] = (__VA_ARGS__);                                                 \
	} while (0)

/* Order is lost: the last element takes the place of the removed one. */
#define tl_vec_swap_remove(v, i) ((v)->at[i] = (v)->at[--(v)->n])

#define tl_vec_fini(v)                                                                             \
	do {                                                                                       \
		free((v)->at);                                                                     \
		memset((v), 0, sizeof *(v));                                                       \
	} while (0)

#endif
