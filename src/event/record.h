/* event/record.h - what a tracing thread tells at each stop, uncorrected.
 *
 * A record carries the time the task ran since its previous stop ended, as the
 * clocks of the tracer saw it: the window in which we held it is not in it (it is
 * measured exactly, by leaving it out), the kernel's way into and out of the stop
 * still is (clock/account.h takes it out). The stop of a task that changes several
 * frames (longjmp, tail call) makes several records; all but the first have
 * TL_REC_SAME_STOP and no time. */
#ifndef TL_EVENT_RECORD_H
#define TL_EVENT_RECORD_H

#include <stdint.h>

#include "trapline/marks.h"

/* What kind of stop it was: it decides which overhead table applies. */
enum tl_stop_cost {
	TL_COST_ENTRY,
	TL_COST_EXIT,
	TL_COST_OTHER, /* signals, clones, interrupts: charged like an entry */
	TL_COST_NONE,  /* not a stop: the begin or end of a block, reading a clock from outside */
};

enum { TL_REC_SAME_STOP = 0x80 }; /* joins enum tl_mark_flag in .flags */

struct tl_record {
	uint64_t wall_ran_ns; /* CLOCK_MONOTONIC: this stop seen - last stop resumed */
	uint64_t cpu_ran_ns;  /* CPU time of the task (or of its one-threaded process) likewise */
	uint64_t user_total_ns, sys_total_ns; /* rusage of the process so far; 0,0: not known here */
	uint32_t task;			      /* from tl_recorder_task() */
	uint32_t func;			      /* from tl_recorder_func(); 0 for TL_MARK_PAUSE */
	uint8_t kind;			      /* enum tl_mark_kind */
	uint8_t flags;			      /* enum tl_mark_flag, TL_REC_SAME_STOP */
	uint8_t cost;			      /* enum tl_stop_cost */
};

#endif
