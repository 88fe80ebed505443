#include "clock/account.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "event/frames.h"

/* What a function is owed (a fraction of a ns) or owes (below zero), over all tasks. */
struct carry {
	double wall, cpu;
};

struct state {
	struct tl_frames open;
	enum tl_stop_cost left; /* the stop this segment began with */
	bool rusage_known;
	uint64_t user_seen, sys_seen; /* of the process, at this task's last record */
	double share;		      /* system's part of the CPU time, as last seen */
	/* This task's system time in ns: by rusage's share; taken out; handed out. */
	double sys_total, sys_taken, sys_written;
};

struct tl_account {
	const struct tl_costs *costs;
	struct tl_map tasks;
	uint32_t last_id;
	struct state *last;	      /* of last_id: most records follow one of the same task */
	TL_VEC(struct carry) carries; /* by function; [0]: outside any */
	struct tl_account_totals totals;
};

/* Below this a debt is rounding. */
static const double clamp_from_ns = 1.0;

struct tl_account *tl_account_new(const struct tl_costs *costs)
{
	struct tl_account *a = tl_calloc(1, sizeof *a);

	a->costs = costs && costs->valid ? costs : NULL;
	return a;
}

static struct state *state_of(struct tl_account *a, uint32_t task)
{
	struct state *s;

	if (a->last && a->last_id == task)
		return a->last;
	s = tl_map_get(&a->tasks, task);
	if (!s) {
		s = tl_calloc(1, sizeof *s);
		s->left = TL_COST_NONE;
		tl_map_put(&a->tasks, task, s);
	}
	a->last = s;
	a->last_id = task;
	return s;
}

static struct carry *carry_of(struct tl_account *a, uint32_t func)
{
	while (a->carries.n <= func)
		tl_vec_push(&a->carries, (struct carry){0});
	return &a->carries.at[func];
}

/* What is in a segment that truly ran RAN_NS, of the stops at both of its ends. */
static double inside(const struct tl_costs *c, bool cpu, enum tl_stop_cost left,
		     enum tl_stop_cost right, double ran_ns)
{
	double ns = 0;

	if (left != TL_COST_NONE)
		ns += tl_cost_at(c, cpu, left == TL_COST_EXIT ? TL_OUT_OF_EXIT : TL_OUT_OF_ENTRY,
				 ran_ns);
	if (right != TL_COST_NONE)
		ns += tl_cost_at(c, cpu, right == TL_COST_EXIT ? TL_INTO_EXIT : TL_INTO_ENTRY,
				 ran_ns);
	return ns;
}

/* Wall time decides about the bin of the CPU tables too: a task that slept comes back to
 * caches as cold as one that worked. */
static void overhead(const struct tl_costs *c, enum tl_stop_cost left, enum tl_stop_cost right,
		     double raw_ns, double *wall_ns, double *cpu_ns)
{
	double ran;

	*wall_ns = *cpu_ns = 0;
	if (!c)
		return;
	ran = raw_ns - inside(c, false, left, right, raw_ns);
	if (ran < 0)
		ran = 0;
	*wall_ns = inside(c, false, left, right, ran);
	*cpu_ns = inside(c, true, left, right, ran);
}

static uint64_t pay(double *carry, double segment_ns)
{
	double due = segment_ns + *carry;
	uint64_t whole = due > 0 ? (uint64_t)due : 0;

	*carry = due - whole;
	return whole;
}

/* rusage counts the whole process and its reaped children: only the ratio is of use. */
static void see_rusage(struct state *s, const struct tl_record *rec)
{
	uint64_t user = rec->user_total_ns, sys = rec->sys_total_ns;

	if (user || sys) {
		uint64_t du = user - s->user_seen, ds = sys - s->sys_seen;

		/* A smaller total is another process (exec took the task over): begin anew. */
		if (s->rusage_known && (user < s->user_seen || sys < s->sys_seen))
			du = ds = 0;
		if (du || ds)
			s->share = ds / ((double)du + ds);
		s->user_seen = user;
		s->sys_seen = sys;
		s->rusage_known = true;
	}
	s->sys_total += s->share * rec->cpu_ran_ns;
}

static struct tl_times segment(struct tl_account *a, struct state *s, const struct tl_record *rec)
{
	struct carry *carry = carry_of(a, tl_frames_top(&s->open));
	double over_wall, over_cpu, want;
	struct tl_times t;
	uint64_t cpu;

	overhead(a->costs, s->left, rec->cost, rec->wall_ran_ns, &over_wall, &over_cpu);
	s->left = rec->cost;
	see_rusage(s, rec);
	s->sys_taken += over_cpu;
	t.wall_ns = pay(&carry->wall, rec->wall_ran_ns - over_wall);
	cpu = pay(&carry->cpu, rec->cpu_ran_ns - over_cpu);
	want = s->sys_total - s->sys_taken - s->sys_written;
	t.sys_ns = want <= 0 ? 0 : want >= cpu ? cpu : (uint64_t)want;
	t.user_ns = cpu - t.sys_ns;
	s->sys_written += t.sys_ns;
	a->totals.overhead_wall_ns += over_wall;
	a->totals.overhead_cpu_ns += over_cpu;
	a->totals.sum.wall_ns += t.wall_ns;
	a->totals.sum.user_ns += t.user_ns;
	a->totals.sum.sys_ns += t.sys_ns;
	return t;
}

struct tl_times tl_account_add(struct tl_account *a, const struct tl_record *rec)
{
	struct state *s = state_of(a, rec->task);
	struct tl_times t = {0};

	if (!(rec->flags & TL_REC_SAME_STOP))
		t = segment(a, s, rec);
	if (rec->kind == TL_MARK_ENTER)
		tl_frames_push(&s->open, rec->func);
	else if (rec->kind == TL_MARK_EXIT)
		s->open.n -= tl_frames_down_to(&s->open, rec->func);
	return t;
}

static void state_free(struct state *s)
{
	tl_frames_fini(&s->open);
	free(s);
}

void tl_account_task_end(struct tl_account *a, uint32_t task)
{
	struct state *s = tl_map_remove(&a->tasks, task);

	if (!s)
		return;
	if (a->last == s)
		a->last = NULL;
	state_free(s);
}

static void clamp(struct tl_account_totals *t, double carry)
{
	if (carry >= -clamp_from_ns)
		return;
	t->clamps++;
	t->clamped_ns += (uint64_t)(-carry + 0.5);
}

void tl_account_totals(const struct tl_account *a, struct tl_account_totals *out)
{
	*out = a->totals;
	for (size_t i = 0; i < a->carries.n; i++) {
		clamp(out, a->carries.at[i].wall);
		clamp(out, a->carries.at[i].cpu);
	}
}

void tl_account_free(struct tl_account *a)
{
	size_t pos = 0;
	uint64_t key;
	void *s;

	if (!a)
		return;
	while (tl_map_next(&a->tasks, &pos, &key, &s))
		state_free(s);
	tl_map_fini(&a->tasks);
	tl_vec_fini(&a->carries);
	free(a);
}
