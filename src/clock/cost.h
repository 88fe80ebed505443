/* clock/cost.h - what a stop costs its target, measured on the calibration program.
 *
 * Four parts: the kernel's way into and out of an entry stop and an exit stop, on
 * both sides of the window that is measured and left out anyway; wall and CPU
 * separately. Getting into a stop depends on how long the task ran since the last
 * one (cold caches, the tick): each part is the mean over a bin of that time.
 * Means, not medians: the run's own tail is in the sums (facts of doc/OVERHEAD.md). */
#ifndef TL_CLOCK_COST_H
#define TL_CLOCK_COST_H

#include <stdbool.h>
#include <stdint.h>

enum tl_cost_part { TL_INTO_ENTRY, TL_OUT_OF_ENTRY, TL_INTO_EXIT, TL_OUT_OF_EXIT, TL_COST_PARTS };
enum { TL_COST_BINS = 8 };

/* Upper edges of the bins in ns of corrected run time; the last is open. */
extern const uint64_t tl_cost_bin_edges[TL_COST_BINS];

struct tl_cost_cell {
	double mean_ns, spread_ns; /* spread: standard deviation of one stop */
	uint64_t n;		   /* stops measured; 0: take the nearest bin that has some */
	double ran_ns;		   /* mean time run before them; 0: the bin's centre */
};

struct tl_costs {
	struct tl_cost_cell wall[TL_COST_PARTS][TL_COST_BINS];
	struct tl_cost_cell cpu[TL_COST_PARTS][TL_COST_BINS];
	bool valid; /* false: nothing was measured, nothing is taken out */
};

/* Adds one measurement (running mean and spread). RAN_NS: true time the task ran.
 * Does not touch C->valid: half a calibration is none. */
void tl_costs_add(struct tl_costs *c, bool cpu, enum tl_cost_part part, uint64_t ran_ns,
		  double cost_ns);

/* The mean for a segment that ran RAW_NS by the clocks, so still with the costs inside:
 * the bin is chosen by what is left when they are taken out. Interpolates between bins. */
double tl_cost_mean(const struct tl_costs *c, bool cpu, enum tl_cost_part part, double raw_ns);

/* The mean for a segment that truly ran RAN_NS. Interpolates between the measured bins in
 * the logarithm of the time; beyond the outermost ones it is constant. */
double tl_cost_at(const struct tl_costs *c, bool cpu, enum tl_cost_part part, double ran_ns);

/* All bins of a part as one: mean, spread, n. */
struct tl_cost_cell tl_cost_pooled(const struct tl_costs *c, bool cpu, enum tl_cost_part part);

#endif
