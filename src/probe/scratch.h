/* probe/scratch.h - room inside a tracee for displaced instructions.
 *
 * Areas lie within reach of the code they serve. An area's address is chosen when
 * the first slot is asked for; it is mapped when a stopped task can make the system
 * call, and until then its content waits here. Where no mapping may be made (seccomp) the
 * zero bytes behind a text segment serve. Slots are never given back: tasks, signal
 * frames and other copies of the space may still refer to them. */
#ifndef TL_PROBE_SCRATCH_H
#define TL_PROBE_SCRATCH_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/vec.h"

struct tl_area {
	tl_vaddr lo;
	size_t size, used, written; /* [written, used) is still to be written */
	bool mapped, padding;	    /* padding: part of a module, never unmapped */
	tl_vaddr plain_return;	    /* the shared slot, {0} until needed */
	uint8_t *bytes;
};

struct tl_scratch {
	TL_VEC(struct tl_area) areas;
	bool may_map; /* false: padding only */
};

/* Where padding can be had and slots are wanted: one text segment of a module. */
struct tl_scratch_near {
	pid_t pid;		/* for /proc/PID/maps */
	struct tl_vrange module; /* all of it must be within reach */
	struct tl_vrange padding; /* unused executable bytes, may be empty */
	size_t expect;		/* bytes that will be wanted in all */
};

/* An area with at least TL_SLOT_SIZE free, its index in *OUT. -ENOSPC with a text. */
int tl_scratch_area(struct tl_scratch *s, const struct tl_scratch_near *near, size_t *out);
/* Takes the first N bytes free in AREA. */
tl_vaddr tl_scratch_take(struct tl_area *area, const void *code, size_t n);
bool tl_scratch_is_mapped(const struct tl_scratch *s);
/* Maps what is not, by system calls of the stopped task TID, from a stub at STUB. */
int tl_scratch_map(struct tl_scratch *s, pid_t tid, int mem_fd, tl_vaddr stub);
/* Writes what is new into mapped areas. */
int tl_scratch_flush(struct tl_scratch *s, int mem_fd);
bool tl_scratch_holds(const struct tl_scratch *s, tl_vaddr at);
/* Puts padding back to zeros and unmaps areas, by the stopped task TID; 0: only the former. */
int tl_scratch_unmap(struct tl_scratch *s, pid_t tid, int mem_fd, tl_vaddr stub);
void tl_scratch_copy(const struct tl_scratch *from, struct tl_scratch *to);
void tl_scratch_fini(struct tl_scratch *s);

#endif
