/* trapline/marks.h - the narrow waist: what tracing tells and reading reads.
 *
 * Every engine turns what it sees into these marks; every report is made from
 * them. A mark says what happened on one task, and how much time that task
 * spent since its previous mark. doc/FORMAT.md defines the text form. */
#ifndef TRAPLINE_MARKS_H
#define TRAPLINE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* The format version in the first `#!' line. */
#define TL_FORMAT_VERSION 1

enum tl_mark_kind {
	TL_MARK_ENTER,
	TL_MARK_EXIT,
	TL_MARK_PAUSE, /* time passed, no frame changed */
};

enum tl_mark_flag {
	TL_MARK_SYNTHETIC = 1, /* a frame that was open already: not counted as a call */
	TL_MARK_UNWOUND = 2,   /* closed because its stack was left (longjmp, exception) */
	TL_MARK_FORCED = 4,    /* closed by us: exec, death, detach, end of measuring */
};

/* How the call count of a function is known, `how=' of a `#! func' line. */
enum tl_how {
	TL_HOW_EXACT,	 /* N: every call was seen */
	TL_HOW_BOUND,	 /* >= N: counting stopped at some time */
	TL_HOW_ESTIMATE, /* ~N: extrapolated from bursts */
	TL_HOW_SAMPLED,	 /* seen in samples only: calls unknown */
};

/* How its self time is known, `self=' of a `#! func' line. */
enum tl_self {
	TL_SELF_MEASURED, /* T */
	TL_SELF_UPPER,	  /* <= T: it called something that was no longer counted */
};

/* What the text calls those two: "exact", "bound", ... and "measured", "upper". */
extern const char *const tl_how_names[4];
extern const char *const tl_self_names[2];

#endif
