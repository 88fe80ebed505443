/* event/assemble.h - from a spool to a profile.
 *
 * Reads the spool alone, so that a recording that ended well and one that crashed go the
 * same way. */
#ifndef TL_EVENT_ASSEMBLE_H
#define TL_EVENT_ASSEMBLE_H

#include "event/writer.h"

struct tl_assembly {
	const char *dir;    /* the spool */
	const char *target; /* absolute; NULL: where the spool says */
	bool straight;	    /* TARGET is a pipe or device */
	/* NULL: not known, or not to be trusted; the marks are read to find out, and what is
	 * open at the end of a task is closed. */
	const struct tl_writer_totals *totals;
};

/* *PARTIAL: there was no room for all of it, so the profile holds the first part only;
 * the spool is still needed. The spool stays in any case. */
int tl_assemble(const struct tl_assembly *a, bool *partial);

#endif
