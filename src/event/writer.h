/* event/writer.h - marks to a tmon.out, through a spool folder.
 *
 * Each task's marks are text from the start, kept in chunks in
 * OUTPUT.spool.PID/ (few descriptors however many tasks), flushed every second and
 * put together at the end; OUTPUT appears by rename, an old one is kept as
 * OUTPUT.old. A crash leaves a spool that tl_spool_recover() turns into a valid,
 * balanced profile. Format: shared tmon SPEC and doc/FORMAT.md. */
#ifndef TL_EVENT_WRITER_H
#define TL_EVENT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trapline/marks.h"

enum tl_dialect { TL_DIALECT_IDS, TL_DIALECT_1997 };

struct tl_writer_options {
	const char *output; /* a path; a pipe or device is written straight at the end */
	enum tl_dialect dialect;
	uint64_t
	    max_size; /* bytes, 0: no limit. At the limit the profile ends, valid, and says so */
};

/* Everything a `#! func' and a `&' line say. NULL and 0: not known. */
struct tl_func_info {
	const char *pkg, *name; /* no blanks inside: sanitised by the writer all the same */
	const char *module;	/* path of its file */
	uint64_t addr;		/* tl_faddr */
	const char *file;
	uint32_t line;
};

struct tl_task_info {
	int pid, tid;
	uint64_t start_ns;   /* since the start of the run */
	const char *comm;    /* thread name */
	const char *program; /* the process's executable, short */
};

struct tl_writer;

int tl_writer_open(const struct tl_writer_options *o, struct tl_writer **out);
/* Ids count from 1; the text form writes them as hex, from 2, as Devel::DProf does. */
uint32_t tl_writer_func(struct tl_writer *w, const struct tl_func_info *info);
void tl_writer_how(struct tl_writer *w, uint32_t func, enum tl_how how, enum tl_self self);
/* Where it is written, when that is known later only. */
void tl_writer_line(struct tl_writer *w, uint32_t func, const char *file, uint32_t line);
uint32_t tl_writer_task(struct tl_writer *w, const struct tl_task_info *info);
void tl_writer_task_name(struct tl_writer *w, uint32_t task, const char *comm, const char *program);
/* Times are ns since the task's previous mark, corrected, never negative. */
void tl_writer_mark(struct tl_writer *w, uint32_t task, enum tl_mark_kind kind, uint32_t func,
		    unsigned flags, uint64_t user_ns, uint64_t sys_ns, uint64_t wall_ns);
void tl_writer_task_end(struct tl_writer *w, uint32_t task, const char *how);
void tl_writer_note(struct tl_writer *w, const char *key, const char *text);
/* $over_* of the header, --raw only: ns per TESTS instrumented calls. */
void tl_writer_over(struct tl_writer *w, int64_t user_ns, int64_t sys_ns, int64_t wall_ns,
		    uint64_t tests);
/* More `key=value' for the `#! run' line; the last call counts. */
void tl_writer_run(struct tl_writer *w, const char *text);
/* Everything buffered reaches the spool: at least once a second. */
int tl_writer_flush(struct tl_writer *w);
/* True once max_size was reached: marks are dropped from then on. */
bool tl_writer_truncated(const struct tl_writer *w);

struct tl_writer_totals {
	uint64_t marks, tasks, forced, unwound;
	uint64_t lost;			   /* marks dropped: exits of nothing open, unknown tasks */
	uint64_t user_ns, sys_ns, wall_ns; /* summed over tasks, as written */
};
void tl_writer_totals(const struct tl_writer *w, struct tl_writer_totals *out);

void tl_writer_end_all(struct tl_writer *w, const char *how);
/* Frees without a profile, and the spool with it. */
void tl_writer_discard(struct tl_writer *w);
/* Ends all tasks, assembles and frees, whatever comes out. */
int tl_writer_finish(struct tl_writer *w);

/* Appends VALUE percent-encoded (blank, %, control bytes, =) to B. */
struct tl_strbuf;
void tl_writer_encode(struct tl_strbuf *b, const char *value);

/* `trapline recover DIR': assembles what a crash left into OUTPUT (NULL: where it was meant
 * to go), then removes DIR. */
int tl_spool_recover(const char *dir, const char *output);

#endif
