/* clock/account.h - from raw segments to corrected, signed time.
 *
 * Each task's segments come in order. What the stops on both ends of a segment
 * cost is taken out (clock/cost.h); the rest belongs to the function on top of the
 * task's stack. A segment may come out negative: then nothing is written and
 * the function keeps the debt, which its next segments pay. Fractions of a
 * nanosecond are carried the same way. What is never paid is a clamp, counted.
 *
 * user/system: the sum is the CPU clock's, exact; the split follows rusage, which
 * the kernel scales from ticks: an estimate. Stops are system time. */
#ifndef TL_CLOCK_ACCOUNT_H
#define TL_CLOCK_ACCOUNT_H

#include "clock/cost.h"
#include "event/record.h"

struct tl_account;

struct tl_times {
	uint64_t user_ns, sys_ns, wall_ns;
};

/* COSTS is borrowed; NULL or !valid: nothing is taken out. */
struct tl_account *tl_account_new(const struct tl_costs *costs);
/* The corrected times to write with this record. Keeps each task's shadow of open
 * functions itself (from enter and exit records). */
struct tl_times tl_account_add(struct tl_account *a, const struct tl_record *rec);
void tl_account_task_end(struct tl_account *a, uint32_t task);

struct tl_account_totals {
	uint64_t clamps, clamped_ns;
	double overhead_wall_ns, overhead_cpu_ns;
	struct tl_times sum;
};
void tl_account_totals(const struct tl_account *a, struct tl_account_totals *out);
void tl_account_free(struct tl_account *a);

#endif
