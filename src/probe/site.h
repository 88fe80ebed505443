/* probe/site.h - patched addresses of one address space.
 *
 * One byte each, written and put back through /proc/PID/mem. A site stays in the
 * table for as long as its module is mapped, armed or not: a task may still report a
 * stop at it, another copy of the space may still have its byte, and slots outlive sites.
 * Order of writes: slot, table entry, breakpoint. Knows: memory and instructions.
 * Does not know: tasks, functions, time. */
#ifndef TL_PROBE_SITE_H
#define TL_PROBE_SITE_H

#include "base/map.h"
#include "probe/scratch.h"

struct tl_site {
	tl_vaddr at;
	struct tl_step step;
	tl_vaddr slot; /* of TL_STEP_SLOT */
	uint8_t original;
	bool armed;  /* the breakpoint is in memory */
	bool wanted; /* it should be: tl_sites_apply() makes it so */
	/* What the users of the site know it as. */
	void *entry;	  /* the probe whose function begins here */
	uint32_t exits;	  /* functions that may be left here */
	uint32_t returns; /* functions that may return to here */
};

struct tl_sites {
	struct tl_map map; /* address -> struct tl_site, owned */
	struct tl_scratch scratch;
	int mem_fd; /* borrowed from the space */
	TL_VEC(struct tl_site *) changed;
	uint64_t *changes; /* counted up at each write of code: the space's */
};

/* The original code around a site, and where its slot may be. */
struct tl_site_code {
	void *ctx;
	size_t (*read)(void *ctx, tl_vaddr at, uint8_t *buf, size_t n); /* from the file */
	const struct tl_scratch_near *near;
};

/* The site at AT, made if there is none. Negative errno with a text when the
 * instruction there cannot be displaced, or the memory is not what the file says. */
int tl_site_get(struct tl_sites *s, tl_vaddr at, const struct tl_site_code *code,
		struct tl_site **out);
static inline struct tl_site *tl_site_at(const struct tl_sites *s, tl_vaddr at)
{
	return tl_map_get(&s->map, at.u);
}
/* Notes whether it should be armed. */
void tl_site_want(struct tl_sites *s, struct tl_site *site, bool wanted);
/* Writes all that was noted: slots first. Sites whose byte cannot be written are left unarmed;
 * the first error is returned after all others were tried. */
int tl_sites_apply(struct tl_sites *s);
/* Where a task goes on that stopped at SITE. {0}: its slot is not mapped yet. */
tl_vaddr tl_site_past(const struct tl_sites *s, const struct tl_site *site, const tl_regs *regs);
/* Makes the memory agree with the table again: all armed sites are written anew. */
int tl_sites_rewrite(struct tl_sites *s);
/* Forgets sites in [LO, HI) without touching memory: their module is gone. */
void tl_sites_drop(struct tl_sites *s, struct tl_vrange range);
/* TO's space is a copy of FROM's. ENTRY maps each entry of FROM to the one of TO. */
void tl_sites_copy(const struct tl_sites *from, struct tl_sites *to,
		   void *(*entry)(void *ctx, void *), void *ctx);
void tl_sites_fini(struct tl_sites *s);

#endif
