/* A stop costs 3 us when tracer and tracee share a CPU and 75-110 us across two: the tracee
 * then wakes up an idle CPU. So the tracing thread stays on one CPU, and a task that
 * traps often is moved there while it is stopped (1.3 us; a running one costs 0.9 ms)
 * and gets its own mask back when it calms down, which needs no stop. */
#include "session/session.h"

#include <sched.h>
#include <stdlib.h>

enum {
	/* Stops in one tick (50 ms) that make a task hot: 1,000 a second when it is alone.
	 * Sharing our CPU costs a threaded program its parallelism: there traps must
	 * first eat a third of a CPU at 75 us each. */
	HOT_ALONE = 50,
	HOT_AMONG = 250,
	CALM_TICKS = 10,
};

static bool put(pid_t tid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(tid, sizeof one, &one) == 0;
}

void tl_place_init(struct tl_session *s)
{
	s->cpu = -1;
	if (sched_getaffinity(0, sizeof s->own_cpus, &s->own_cpus) < 0)
		CPU_ZERO(&s->own_cpus);
	if (s->options.cpu >= 0 && put(0, s->options.cpu))
		s->cpu = s->options.cpu;
}

/* A target bound to other CPUs is not moved: we go to it instead. */
static bool follow(struct tl_session *s, const cpu_set_t *cpus)
{
	for (int c = 0; c < CPU_SETSIZE; c++) {
		if (!CPU_ISSET(c, cpus) || !CPU_ISSET(c, &s->own_cpus))
			continue;
		if (!put(0, c))
			return false;
		s->cpu = c;
		return true;
	}
	return false;
}

void tl_place_hot(struct tl_session *s, struct tl_task *t)
{
	unsigned hot = t->process->tasks == 1 ? HOT_ALONE : HOT_AMONG;

	if (++t->stops_in_tick < hot || t->placed || s->cpu < 0)
		return;
	if (sched_getaffinity(t->tid, sizeof t->own_cpus, &t->own_cpus) < 0)
		return;
	if (!CPU_ISSET(s->cpu, &t->own_cpus) && !follow(s, &t->own_cpus))
		return;
	t->calm_ticks = 0;
	t->placed = put(t->tid, s->cpu);
}

/* A child inherits the narrow mask; at its birth stop it gets the wide one before anybody
 * could see it. */
void tl_place_born(const struct tl_task *parent, pid_t child)
{
	if (parent->placed)
		sched_setaffinity(child, sizeof parent->own_cpus, &parent->own_cpus);
}

void tl_place_release(struct tl_task *t)
{
	cpu_set_t now;

	if (!t->placed)
		return;
	t->placed = false;
	/* A program that chose its CPUs meanwhile keeps its choice. */
	if (sched_getaffinity(t->tid, sizeof now, &now) == 0 && CPU_COUNT(&now) == 1)
		sched_setaffinity(t->tid, sizeof t->own_cpus, &t->own_cpus);
}

void tl_place_tick(struct tl_session *s)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (!t->process)
			continue;
		t->calm_ticks = t->stops_in_tick >= HOT_ALONE / 5 ? 0 : t->calm_ticks + 1;
		t->stops_in_tick = 0;
		if (t->placed && t->calm_ticks >= CALM_TICKS)
			tl_place_release(t);
	}
}

void tl_place_fini(struct tl_session *s)
{
	if (s->cpu >= 0)
		sched_setaffinity(0, sizeof s->own_cpus, &s->own_cpus);
	s->cpu = -1;
}
