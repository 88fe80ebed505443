/* trapline/reader.h - reads a tmon.out, mark by mark.
 *
 * Both dialects of the format are understood, mixed line by line: absolute readings
 * (`+ u s r name', 1997) and ids with deltas (`@ u s r', `& id pkg name', `+ id').
 * The header is parsed, never evaluated. A file of any size is read in constant
 * memory, but for the names. doc/FORMAT.md defines the text, the `#!' lines too.
 *
 * Times are integers in *units*: a tick divided by a power of ten such that a unit is
 * no longer than a ns, so that files with fractions of ticks stay exact as well.
 * tl_header.units_per_second says what a unit is. */
#ifndef TRAPLINE_READER_H
#define TRAPLINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trapline/marks.h"

enum { TL_USER, TL_SYS, TL_WALL, TL_CLOCKS };

struct tl_header {
	double hz;		 /* ticks per second; 0: the file does not say */
	double units_per_tick;	 /* a power of ten */
	double units_per_second; /* hz * units_per_tick */
	double run[TL_CLOCKS];	 /* $rrun_*, ticks */
	double over[TL_CLOCKS];	 /* $over_*, ticks per over_tests calls */
	double over_tests;	 /* at least 1 */
	const char *xs_version;	 /* NULL: the file does not say */
};

/* What `& id' and `#! func' say of a function. NULL and 0: not known. */
struct tl_function_info {
	const char *name; /* as reports print it, pkg::name */
	const char *module, *file;
	uint64_t addr;
	uint32_t line;
	enum tl_how how;
	enum tl_self self;
};

enum tl_event_kind {
	TL_EVENT_ENTER,
	TL_EVENT_EXIT,
	TL_EVENT_GOTO, /* `*': leave the top frame and enter func at once */
	TL_EVENT_DIE,  /* `/': leave the top frame, func is not said */
	TL_EVENT_TASK, /* `#! task': a new block begins; text */
	TL_EVENT_NOTE, /* any other `#!' line with words; text */
	TL_EVENT_END,  /* nothing more follows */
};

struct tl_event {
	enum tl_event_kind kind;
	unsigned flags;	       /* enum tl_mark_flag */
	uint32_t func;	       /* an index for tl_reader_func() */
	int64_t at[TL_CLOCKS]; /* clock readings, units; only differences mean something */
	uint64_t line;
	const char *text; /* TASK, NOTE: the line behind `#! ', until the next call */
};

enum { TL_READ_IDS = 1 }; /* `name(id)' for anonymous subs and END blocks: dprofpp -R */

struct tl_reader;

/* PATH `-' is the standard input. A negative errno: the text names PATH. -ENOENT and the
 * like when it cannot be opened, -EBADMSG when it is no profile. */
int tl_reader_open(const char *path, unsigned flags, struct tl_reader **out);
void tl_reader_free(struct tl_reader *r);

/* As messages should name the file. */
const char *tl_reader_path(const struct tl_reader *r);

/* Valid from the start; borrowed. */
const struct tl_header *tl_reader_header(const struct tl_reader *r);

/* TL_OK and an event, TL_EVENT_END at the end of the marks. -EBADMSG: `PATH:LINE: ...'. */
int tl_reader_next(struct tl_reader *r, struct tl_event *e);

/* Functions get indices 0, 1, ... as they turn up. Borrowed: the pointer until the next
 * event, the strings as long as the reader. */
const struct tl_function_info *tl_reader_func(const struct tl_reader *r, uint32_t func);
size_t tl_reader_funcs(const struct tl_reader *r);

/* The value of KEY in the `key=value' words of TEXT, percent-decoded, to be freed by the
 * caller; NULL: not there. */
char *tl_note_value(const char *text, const char *key);

#endif
