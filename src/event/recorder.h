/* event/recorder.h - from records to a profile, on a thread of its own.
 *
 * One tracing thread pushes fixed-size records into a ring without allocating or
 * formatting; the recorder's thread corrects the times (clock/account.h) and hands
 * marks to the writer (event/writer.h). When the ring is full the push waits:
 * nothing is ever lost. */
#ifndef TL_EVENT_RECORDER_H
#define TL_EVENT_RECORDER_H

#include "clock/cost.h"
#include "event/record.h"
#include "event/writer.h"

struct tl_recorder;

struct tl_recorder_options {
	struct tl_writer_options writer;
	bool raw;      /* --raw: correct nothing, note $over_* */
	int cpu_avoid; /* keep the recorder's thread off this CPU if there is another; -1: do not
			  care */
};

/* COSTS is copied. All signals stay blocked in the new thread. It inherits the CPUs of
 * the caller: start it before the tracing thread is fixed to one. */
int tl_recorder_start(const struct tl_recorder_options *o, const struct tl_costs *costs,
		      struct tl_recorder **out);

/* These take any amount of time in the recorder, none in the caller; strings are copied.
 * They may be called between records and keep their order with them, from the thread that
 * pushes (or before it pushes and after it has ended, from another). */
uint32_t tl_recorder_func(struct tl_recorder *r, const struct tl_func_info *info);
uint32_t tl_recorder_task(struct tl_recorder *r, const struct tl_task_info *info);
void tl_recorder_task_name(struct tl_recorder *r, uint32_t task, const char *comm,
			   const char *program);
/* Closes what is still open (TL_MARK_FORCED) and ends the task's block. */
void tl_recorder_task_end(struct tl_recorder *r, uint32_t task, const char *how);
void tl_recorder_how(struct tl_recorder *r, uint32_t func, enum tl_how how, enum tl_self self);
/* Where FUNC is written, as DWARF says: known late, it is read while nothing is stopped. */
void tl_recorder_line(struct tl_recorder *r, uint32_t func, const char *file, uint32_t line);
/* One `#!' line for the head of the file: KEY, then TEXT, already `key=value' with
 * percent-encoded values (tl_writer_encode). A repeated KEY adds a line. */
void tl_recorder_note(struct tl_recorder *r, const char *key, const char *text);

/* The hot path: one tracing thread only. */
void tl_recorder_push(struct tl_recorder *r, const struct tl_record *rec);

/* A write error met so far (negative errno, text available through tl_error_text() after
 * tl_recorder_stop()), or TL_OK. Cheap: to be looked at now and then. */
int tl_recorder_error(const struct tl_recorder *r);
/* True once writer.max_size is reached: what is pushed from then on is dropped. As cheap. */
bool tl_recorder_truncated(const struct tl_recorder *r);

/* There was no run: nothing is written, nothing left behind, frees. */
void tl_recorder_cancel(struct tl_recorder *r);

struct tl_recorder_totals {
	uint64_t marks, tasks, lost;
	uint64_t clamps; /* functions whose wall or CPU debt was left unpaid: each counts */
	uint64_t wall_ns, user_ns, sys_ns;	    /* corrected, summed over tasks */
	uint64_t clamped_ns;			    /* debt nobody paid */
	uint64_t overhead_wall_ns, overhead_cpu_ns; /* taken out by the tables (not the windows) */
};

/* Drains, ends all tasks, assembles the output, frees. The final costs (after the second
 * calibration) may widen the stated spread; NULL: none. TOTALS may be NULL. */
int tl_recorder_stop(struct tl_recorder *r, const struct tl_costs *after,
		     struct tl_recorder_totals *totals);

#endif
