/* base/types.h - the two kinds of address, never to be mixed up. */
#ifndef TL_BASE_TYPES_H
#define TL_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
	uint64_t u;
} tl_vaddr; /* in a tracee */
typedef struct {
	uint64_t u;
} tl_faddr; /* in an ELF file, as its p_vaddr and symbols count */

/* [lo, hi) */
struct tl_vrange {
	tl_vaddr lo, hi;
};
struct tl_frange {
	tl_faddr lo, hi;
};

#endif
