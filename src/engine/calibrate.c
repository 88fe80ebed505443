#include "engine/calibrate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "calibration/calibration.h"
#include "config.h"
#include "engine/exact.h"

/* Runs between stops, and how many of each: the bins of clock/cost.h. */
static const struct {
	uint32_t calls, run_ns;
} steps[TL_CALIBRATION_STEPS] = {
	{2000, 300}, {1000, 1700}, {600, 5500}, {300, 17000},
	{120, 55000}, {50, 170000}, {16, 550000}, {6, 1500000},
};
enum { WARM_UP = 300 };

/* What was seen of one stop. */
struct seen {
	uint8_t kind;
	uint64_t seen_ns, wall_ran_ns, cpu_ran_ns;
};

struct calibration {
	struct tl_calibration *shared;
	TL_VEC(struct seen) seen;
};

static uint32_t some_id(void *ctx, const struct tl_func_info *info)
{
	(void)ctx, (void)info;
	return 1;
}

static uint32_t some_task(void *ctx, const struct tl_task_info *info)
{
	(void)ctx, (void)info;
	return 1;
}

static void no_end(void *ctx, uint32_t task, const char *how)
{
	(void)ctx, (void)task, (void)how;
}

static void push(void *ctx, const struct tl_record *rec, uint64_t seen_ns)
{
	struct calibration *c = ctx;

	tl_vec_push(&c->seen, (struct seen){rec->kind, seen_ns, rec->wall_ran_ns, rec->cpu_ran_ns});
}

static const struct tl_sink sink = {some_id, some_task, no_end, push};

/* In a build tree beside trapline itself, else where it was installed. */
static int find_program(char *out, size_t n)
{
	static const char name[] = "trapline-calibration";
	const char *dir = getenv("TRAPLINE_LIBEXEC");
	char self[PATH_MAX], *slash;
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

	if (dir && *dir && (size_t)snprintf(out, n, "%s/%s", dir, name) < n && !access(out, X_OK))
		return TL_OK;
	if (len > 0) {
		self[len] = 0;
		slash = strrchr(self, '/');
		*slash = 0;
		if ((size_t)snprintf(out, n, "%s/%s", self, name) < n && !access(out, X_OK))
			return TL_OK;
	}
	if ((size_t)snprintf(out, n, "%s/%s", LIBEXECDIR, name) < n && !access(out, X_OK))
		return TL_OK;
	return tl_fail(-ENOENT, "%s is missing: trapline is not fully installed (make install, or "
				"TRAPLINE_LIBEXEC=the folder it is in)", out);
}

static int trace(struct calibration *c, int cpu, char *const argv[])
{
	struct tl_exact_options options = {.launched = true};
	struct tl_session_options session_options = {.kill_with_us = true, .follow = true, .cpu = cpu};
	struct tl_select *select = tl_select_new();
	struct tl_launch launch = {.argv = argv, .uid = -1};
	struct tl_session s;
	struct tl_exact e;
	int r, launch_error;

	r = tl_select_add(select, TL_SELECT_FUNCTION, TL_CALIBRATION_FUNCTION);
	options.select = select;
	if (r < 0 || (r = tl_exact_init(&e, &options, &sink, c)) < 0) {
		tl_select_free(select);
		return r;
	}
	r = tl_session_init(&s, &session_options, &tl_exact_ops, &e);
	e.session = &s;
	if (r == TL_OK && (r = tl_session_launch(&s, &launch, &launch_error)) == TL_OK)
		r = tl_session_run(&s);
	if (r == TL_OK && s.leader_status != 0)
		r = tl_fail(-EIO, "the calibration program failed");
	if (s.tasks.n)
		tl_session_leave(&s);
	tl_session_fini(&s);
	tl_exact_fini(&e);
	tl_select_free(select);
	return r;
}

/* What one call tells: the four parts of its two stops, and how long it really ran. */
struct told {
	uint64_t inside, outside;
	double part[TL_COST_PARTS], cpu_inside, cpu_outside, sum;
};

/* Call C: entry stop E, exit stop X; PREV: the call before. The time between two clock readings
 * without a stop is taken off half here, half there. */
static struct told tell(const struct tl_calibration *k, const struct tl_calibration_call *c,
			const struct tl_calibration_call *prev, const struct seen *e,
			const struct seen *x)
{
	double plain = (k->plain_begin_ns + k->plain_end_ns) / 2;
	uint64_t resumed_e = x->seen_ns - x->wall_ran_ns, resumed_x = e->seen_ns - e->wall_ran_ns;
	struct told t = {.inside = c->end - c->begin, .outside = c->before - prev->after};

	t.part[TL_INTO_ENTRY] = e->seen_ns - (double)c->before - k->plain_begin_ns / 2;
	t.part[TL_OUT_OF_ENTRY] = c->begin - (double)resumed_e - k->plain_begin_ns / 2;
	t.part[TL_INTO_EXIT] = x->seen_ns - (double)c->end - k->plain_end_ns / 2;
	t.part[TL_OUT_OF_EXIT] = prev->after - (double)resumed_x - k->plain_end_ns / 2;
	t.cpu_inside = x->cpu_ran_ns - (double)t.inside - plain;
	t.cpu_outside = e->cpu_ran_ns - (double)t.outside - plain;
	for (int i = 0; i < TL_COST_PARTS; i++)
		t.sum += t.part[i];
	return t;
}

/* The CPU clock stands still while the task is stopped, so only the sum over a segment is known;
 * it is shared out like the wall times. */
static void add_call(struct tl_costs *out, const struct told *t)
{
	double inside = t->cpu_inside / (t->part[TL_OUT_OF_ENTRY] + t->part[TL_INTO_EXIT]);
	double outside = t->cpu_outside / (t->part[TL_OUT_OF_EXIT] + t->part[TL_INTO_ENTRY]);

	for (int i = 0; i < TL_COST_PARTS; i++) {
		bool within = i == TL_OUT_OF_ENTRY || i == TL_INTO_EXIT;
		uint64_t ran = within ? t->inside : t->outside;

		tl_costs_add(out, false, i, ran, t->part[i]);
		tl_costs_add(out, true, i, ran, t->part[i] * (within ? inside : outside));
	}
}

static int by_sum(const void *a, const void *b)
{
	double x = ((const struct told *)a)->sum, y = ((const struct told *)b)->sum;

	return (x > y) - (x < y);
}

/* A call in which somebody else got the CPU for a while tells about him, not about stops: a
 * stop's own tail does not reach OUTLIER times the median, a scheduler's slice does. A
 * preempted run without a stop shows as CPU time that went missing. */
static void add_all(struct tl_costs *out, struct told *t, size_t n)
{
	enum { OUTLIER = 5 };
	double most;

	qsort(t, n, sizeof *t, by_sum);
	most = t[n / 2].sum * OUTLIER;
	for (size_t i = 0; i < n && t[i].sum < most; i++)
		if (t[i].cpu_inside > 0 && t[i].cpu_outside > 0)
			add_call(out, &t[i]);
}

static int evaluate(const struct calibration *c, struct tl_costs *out)
{
	const struct tl_calibration *k = c->shared;
	TL_VEC(const struct seen *) stops = {0};
	TL_VEC(struct told) told = {0};

	for (size_t i = 0; i < c->seen.n; i++)
		if (c->seen.at[i].kind != TL_MARK_PAUSE)
			tl_vec_push(&stops, &c->seen.at[i]);
	if (k->calls < 2 || stops.n != 2 * (size_t)(k->warm_up + k->calls)) {
		tl_vec_fini(&stops);
		return tl_fail(-EIO, "calibration saw %zu stops, %u were made", stops.n,
			       2 * (k->warm_up + k->calls));
	}
	for (uint32_t i = 1; i < k->calls; i++) {
		const struct seen *const *at = stops.at + 2 * (size_t)(k->warm_up + i);

		tl_vec_push(&told, tell(k, &k->call[i], &k->call[i - 1], at[0], at[1]));
	}
	add_all(out, told.at, told.n);
	out->valid = true;
	tl_vec_fini(&told);
	tl_vec_fini(&stops);
	return TL_OK;
}

int tl_calibrate(int cpu, bool brief, struct tl_costs *out)
{
	struct calibration c = {0};
	char path[PATH_MAX], number[16];
	char *const argv[] = {path, number, NULL};
	int fd, r = find_program(path, sizeof path);

	*out = (struct tl_costs){0};
	if (r < 0)
		return r;
	fd = memfd_create("trapline-calibration", 0);
	if (fd < 0 || ftruncate(fd, sizeof *c.shared) < 0) {
		r = tl_fail(-errno, "no memory for calibration: %s", strerror(errno));
		goto out;
	}
	snprintf(number, sizeof number, "%d", fd);
	c.shared = mmap(NULL, sizeof *c.shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c.shared == MAP_FAILED) {
		r = tl_fail(-errno, "no memory for calibration: %s", strerror(errno));
		goto out;
	}
	for (int i = 0; i < TL_CALIBRATION_STEPS; i++) {
		c.shared->steps[i].calls = steps[i].calls / (brief ? 3 : 1);
		c.shared->steps[i].run_ns = steps[i].run_ns;
	}
	c.shared->warm_up = WARM_UP;
	r = trace(&c, cpu, argv);
	if (r == TL_OK)
		r = evaluate(&c, out);
	munmap(c.shared, sizeof *c.shared);
out:
	tl_vec_fini(&c.seen);
	if (fd >= 0)
		close(fd);
	return r;
}

double tl_calibrate_stop_ns(const struct tl_costs *c)
{
	double sum = 0;

	for (int part = 0; part < TL_COST_PARTS; part++)
		sum += tl_cost_mean(c, false, part, 0);
	return sum / 2;
}
