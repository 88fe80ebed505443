/* The safety valve: once all stops together eat more than half of the elapsed time,
 * the costliest functions that were called often enough to be known are no longer
 * counted, until they do not. What is left out is said: `>= N', and `<= T' for the self
 * time of those that called it. */
#include "engine/exact.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"

enum {
	/* So many calls and a function is known well enough to be let go of. */
	CALLS_LEAST = 10000,
	/* But a program can have hundreds of functions that are each called less often and together
	 * cost minutes (fixtures/sqlite_fixture: 63 million calls of 772 functions in 200 ms).
	 * The more time is lost beyond the allowed half, the fewer calls are enough. */
	LOST_NS = 100 * 1000 * 1000,
	CALLS_FLOOR = 50,
};

/* Calls that are enough after LOST ns too much. */
static double calls_enough(double lost)
{
	double far = 1 + lost / LOST_NS, least = CALLS_LEAST / (far * far);

	return least > CALLS_FLOOR ? least : CALLS_FLOOR;
}

static int by_recent_stops(const void *a, const void *b)
{
	const struct tl_function *const *x = a, *const *y = b;
	uint64_t s = (*x)->stops - (*x)->stops_before, t = (*y)->stops - (*y)->stops_before;

	return s < t ? 1 : s > t ? -1 : 0;
}

static int disarm(struct tl_exact *e, struct tl_function *f)
{
	size_t pos = 0;
	uint64_t key;
	void *v;
	int r = TL_OK;

	f->disarmed = true;
	e->disarmed++;
	for (size_t i = 0; i < f->parents.n; i++)
		f->parents.at[i]->upper = true;
	tl_debug("no longer counted after %llu calls: %s", (unsigned long long)f->calls,
		 f->func->name);
	while (r >= 0 && tl_map_next(&e->session->processes, &pos, &key, &v)) {
		const struct tl_process *p = v;
		struct tl_exact_space *es = p->space->client;

		for (size_t i = 0; es && i < es->probes.n; i++) {
			struct tl_probe *probe = es->probes.at[i];

			if (probe->function != f || !probe->entry)
				continue;
			tl_probes_settle(e, es, probe->entry);
			if (!probe->open)
				tl_probe_retire(e, es, probe);
		}
		if (es)
			r = tl_sites_apply(&es->sites);
	}
	return r < 0 ? r : TL_OK;
}

/* What all stops have cost the target so far: the windows in which it was held, and the kernel's
 * way into and out of each. */
static double spent_ns(const struct tl_exact *e)
{
	return e->window_ns + e->session->stops * e->options.stop_cost_ns;
}

int tl_valve_tick(struct tl_exact *e, uint64_t now)
{
	TL_VEC(struct tl_function *) busy = {0};
	double elapsed = e->run_ns + (now - e->measured_ns), spent = spent_ns(e);
	double lost = spent - elapsed / 2, least = calls_enough(lost > 0 ? lost : 0);
	uint64_t recent = 0, left;
	size_t pos = 0;
	uint64_t key;
	void *v;
	int r = TL_OK;

	while (tl_map_next(&e->functions, &pos, &key, &v)) {
		struct tl_function *f = v;

		if (f->stops == f->stops_before || f->disarmed)
			continue;
		recent += f->stops - f->stops_before;
		tl_vec_push(&busy, f);
	}
	qsort(busy.at, busy.n, sizeof *busy.at, by_recent_stops);
	left = recent;
	for (size_t i = 0; lost > 0 && i < busy.n && left > recent / 4 && r == TL_OK; i++) {
		struct tl_function *f = busy.at[i];

		if (f->calls < least)
			continue;
		left -= f->stops - f->stops_before;
		r = disarm(e, f);
	}
	for (size_t i = 0; i < busy.n; i++)
		busy.at[i]->stops_before = busy.at[i]->stops;
	tl_vec_fini(&busy);
	return r;
}
