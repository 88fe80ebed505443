/* event/header.h - the assignments at the head of a tmon.out.
 *
 * Devel::DProf's dprofpp runs them as Perl. Here `$name=value' items with a number or
 * a quoted string are understood, everything else is passed over. */
#ifndef TL_EVENT_HEADER_H
#define TL_EVENT_HEADER_H

#include "trapline/reader.h"

/* Takes in one line. *VERSION is the heap string that h->xs_version points to. */
void tl_header_line(struct tl_header *h, char **version, const char *line);
/* After the last line: what follows from the rest. */
void tl_header_complete(struct tl_header *h);

/* A decimal number as Perl understands the start of a word, in units of
 * 1/UNITS_PER_TICK; clipped to what fits. *END is behind it. */
int64_t tl_ticks_parse(const char *s, double units_per_tick, const char **end);

#endif
