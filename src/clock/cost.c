#include "clock/cost.h"

#include <math.h>

/* The cost of getting into a stop is flat up to 3 us, steps between 10 and 30 us and
 * creeps up to some ms: the edges are closest where it changes. */
const uint64_t tl_cost_bin_edges[TL_COST_BINS] = {
    2000, 5000, 10000, 20000, 50000, 150000, 500000, UINT64_MAX,
};

static int bin_of(double ran_ns)
{
	int i = 0;

	while (i < TL_COST_BINS - 1 && ran_ns >= tl_cost_bin_edges[i])
		i++;
	return i;
}

static double centre(const struct tl_cost_cell *cells, int i)
{
	if (cells[i].ran_ns > 0)
		return cells[i].ran_ns;
	if (i == 0)
		return tl_cost_bin_edges[0] / 2.0;
	if (i == TL_COST_BINS - 1)
		return tl_cost_bin_edges[i - 1] * 2.0;
	return sqrt((double)tl_cost_bin_edges[i - 1] * tl_cost_bin_edges[i]);
}

/* Welford's recurrence: sums of squares of ns lose all digits in a long calibration. */
static void add(struct tl_cost_cell *c, double ran_ns, double cost_ns)
{
	double squares = c->n > 1 ? c->spread_ns * c->spread_ns * (c->n - 1) : 0;
	double off = cost_ns - c->mean_ns;

	c->n++;
	c->mean_ns += off / c->n;
	c->ran_ns += (ran_ns - c->ran_ns) / c->n;
	squares += off * (cost_ns - c->mean_ns);
	c->spread_ns = c->n > 1 ? sqrt(squares / (c->n - 1)) : 0;
}

void tl_costs_add(struct tl_costs *c, bool cpu, enum tl_cost_part part, uint64_t ran_ns,
		  double cost_ns)
{
	add(&(cpu ? c->cpu : c->wall)[part][bin_of(ran_ns)], ran_ns, cost_ns);
}

double tl_cost_at(const struct tl_costs *c, bool cpu, enum tl_cost_part part, double ran_ns)
{
	const struct tl_cost_cell *cells = (cpu ? c->cpu : c->wall)[part];
	int lo = -1, hi = -1;
	double from, to;

	for (int i = 0; i < TL_COST_BINS && hi < 0; i++) {
		if (!cells[i].n)
			continue;
		if (centre(cells, i) <= ran_ns)
			lo = i;
		else
			hi = i;
	}
	if (lo < 0)
		return hi < 0 ? 0 : cells[hi].mean_ns;
	if (hi < 0)
		return cells[lo].mean_ns;
	from = centre(cells, lo);
	to = centre(cells, hi);
	return cells[lo].mean_ns +
	       (cells[hi].mean_ns - cells[lo].mean_ns) * log(ran_ns / from) / log(to / from);
}

static enum tl_cost_part other_side(enum tl_cost_part part)
{
	switch (part) {
	case TL_INTO_ENTRY:
		return TL_OUT_OF_ENTRY;
	case TL_OUT_OF_ENTRY:
		return TL_INTO_ENTRY;
	case TL_INTO_EXIT:
		return TL_OUT_OF_EXIT;
	default:
		return TL_INTO_EXIT;
	}
}

/* The other end of the segment is taken to be of the same kind: entries and exits differ
 * by less than what moves a time into another bin. */
double tl_cost_mean(const struct tl_costs *c, bool cpu, enum tl_cost_part part, double raw_ns)
{
	double inside =
	    tl_cost_at(c, cpu, part, raw_ns) + tl_cost_at(c, cpu, other_side(part), raw_ns);

	return tl_cost_at(c, cpu, part, raw_ns > inside ? raw_ns - inside : 0);
}

struct tl_cost_cell tl_cost_pooled(const struct tl_costs *c, bool cpu, enum tl_cost_part part)
{
	const struct tl_cost_cell *cells = (cpu ? c->cpu : c->wall)[part];
	struct tl_cost_cell all = {0};
	double squares = 0;

	for (int i = 0; i < TL_COST_BINS; i++) {
		all.n += cells[i].n;
		all.mean_ns += cells[i].mean_ns * cells[i].n;
		all.ran_ns += centre(cells, i) * cells[i].n;
	}
	if (!all.n)
		return all;
	all.mean_ns /= all.n;
	all.ran_ns /= all.n;
	for (int i = 0; i < TL_COST_BINS; i++) {
		double off = cells[i].mean_ns - all.mean_ns;

		if (cells[i].n)
			squares += cells[i].spread_ns * cells[i].spread_ns * (cells[i].n - 1) +
				   off * off * cells[i].n;
	}
	all.spread_ns = all.n > 1 ? sqrt(squares / (all.n - 1)) : 0;
	return all;
}
