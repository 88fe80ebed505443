/* event/text.h - the text of marks: written, read back, turned into the dialect of 1997.
 *
 * Spools always hold the ids dialect; the other one is made from it when the profile is
 * put together, because its clock readings run through the whole file.
 * doc/FORMAT.md defines what is written. */
#ifndef TL_EVENT_TEXT_H
#define TL_EVENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/outbuf.h"
#include "base/strbuf.h"
#include "event/frames.h"

/* The most that tl_text_delta() or tl_text_mark() adds. */
enum { TL_TEXT_DELTA_MAX = 66, TL_TEXT_MARK_MAX = 24 };

/* These write at P and return the end; no 0 is added. */
char *tl_text_u64(char *p, uint64_t v);
char *tl_text_hex(char *p, uint32_t v);
char *tl_text_delta(char *p, uint64_t user_ns, uint64_t sys_ns, uint64_t wall_ns);
/* SIGN is + or -; FLAGS an enum tl_mark_flag set. */
char *tl_text_mark(char *p, char sign, uint32_t func, unsigned flags);

/* Appends NAME as one token that dprofpp takes for a name. NULL or "": OTHERWISE. */
void tl_text_name(struct tl_strbuf *b, const char *name, const char *otherwise);
/* Appends TEXT without control bytes, which would end a line. */
void tl_text_line(struct tl_strbuf *b, const char *text);

/* What is known after reading some of a task's text. Zero-initialised before the first;
 * only .open is owned. */
struct tl_scan {
	uint64_t user_ns, sys_ns, wall_ns, marks, forced, unwound;
	bool ended;	      /* `#! end' was there */
	const uint8_t *known; /* by function: it has a name; NULL: all have */
	size_t n_known;
	struct tl_frames open;
};

/* TEXT is whole lines. How many bytes of it are what a writer leaves: N, or less when a line
 * is not; S tells what came before that line. */
size_t tl_text_scan(struct tl_scan *s, const char *text, size_t n);

struct tl_text_clock {
	uint64_t user_ns, sys_ns, wall_ns; /* so far, in this file */
};

/* Writes whole lines of ids as those of 1997. NAMES[func] is `pkg::name', or NULL. */
void tl_text_1997(struct tl_outbuf *o, struct tl_text_clock *clock, const char *const *names,
		  size_t n_names, const char *text, size_t n);

#endif
