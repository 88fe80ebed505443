#include "event/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "clock/account.h"
#include "event/ring.h"

enum {
	RING_SIZE = 1 << 16,
	BATCH = 512, /* given back to the producer at once */
};

struct tl_recorder {
	struct tl_ring *ring;
	struct tl_writer *writer;   /* the recorder's thread's, until it has ended */
	struct tl_account *account; /* likewise */
	struct tl_costs costs;
	bool raw;
	int cpu_avoid;
	uint64_t started_ns;
	uint64_t ended_ns; /* the last task's; 0: none ended yet. The tracing side's */
	uint32_t n_funcs, n_tasks; /* the producer's: what the writer will count, too */
	uint64_t raw_wall_ns, raw_cpu_ns;
	_Atomic int error;
	_Atomic bool truncated;
	pthread_t thread;
};

enum message_kind {
	MESSAGE_FUNC,
	MESSAGE_TASK,
	MESSAGE_NAME,
	MESSAGE_END,
	MESSAGE_HOW,
	MESSAGE_LINE,
	MESSAGE_NOTE,
	MESSAGE_STOP,
};

/* One allocation, the strings behind it. */
struct message {
	enum message_kind kind;
	uint32_t id;
	union {
		struct tl_func_info func;
		struct tl_task_info task;
		struct {
			const char *a, *b;
			uint32_t line;
		} text;
		struct {
			enum tl_how how;
			enum tl_self self;
		} known;
	};
};

static size_t size_of(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

/* Copies *S to P, points *S there and returns the end. */
static char *keep(char *p, const char **s)
{
	size_t n = size_of(*s);

	if (!n)
		return p;
	memcpy(p, *s, n);
	*s = p;
	return p + n;
}

static struct message *message_new(const struct message *m, size_t strings, char **p)
{
	struct message *copy = tl_malloc(sizeof *copy + strings);

	*copy = *m;
	*p = (char *)(copy + 1);
	return copy;
}

static void send(struct tl_recorder *r, const struct message *m)
{
	char *p;

	tl_ring_send(r->ring, message_new(m, 0, &p));
}

static void send_text(struct tl_recorder *r, enum message_kind kind, uint32_t id, const char *a,
		      const char *b, uint32_t line)
{
	struct message m = {.kind = kind, .id = id, .text = {a, b, line}}, *copy;
	char *p;

	copy = message_new(&m, size_of(a) + size_of(b), &p);
	p = keep(p, &copy->text.a);
	keep(p, &copy->text.b);
	tl_ring_send(r->ring, copy);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint32_t tl_recorder_func(struct tl_recorder *r, const struct tl_func_info *info)
{
	struct message m = {.kind = MESSAGE_FUNC, .id = ++r->n_funcs, .func = *info}, *copy;
	char *p;

	copy = message_new(&m,
			   size_of(info->pkg) + size_of(info->name) + size_of(info->module) +
			       size_of(info->file),
			   &p);
	p = keep(p, &copy->func.pkg);
	p = keep(p, &copy->func.name);
	p = keep(p, &copy->func.module);
	keep(p, &copy->func.file);
	tl_ring_send(r->ring, copy);
	return m.id;
}

uint32_t tl_recorder_task(struct tl_recorder *r, const struct tl_task_info *info)
{
	struct message m = {.kind = MESSAGE_TASK, .id = ++r->n_tasks, .task = *info}, *copy;
	char *p;

	copy = message_new(&m, size_of(info->comm) + size_of(info->program), &p);
	p = keep(p, &copy->task.comm);
	keep(p, &copy->task.program);
	tl_ring_send(r->ring, copy);
	return m.id;
}

void tl_recorder_task_name(struct tl_recorder *r, uint32_t task, const char *comm,
			   const char *program)
{
	send_text(r, MESSAGE_NAME, task, comm, program, 0);
}

void tl_recorder_task_end(struct tl_recorder *r, uint32_t task, const char *how)
{
	send_text(r, MESSAGE_END, task, how, NULL, 0);
	r->ended_ns = now_ns(CLOCK_MONOTONIC);
}

void tl_recorder_how(struct tl_recorder *r, uint32_t func, enum tl_how how, enum tl_self self)
{
	struct message m = {.kind = MESSAGE_HOW, .id = func, .known = {how, self}};

	send(r, &m);
}

void tl_recorder_line(struct tl_recorder *r, uint32_t func, const char *file, uint32_t line)
{
	send_text(r, MESSAGE_LINE, func, file, NULL, line);
}

void tl_recorder_note(struct tl_recorder *r, const char *key, const char *text)
{
	send_text(r, MESSAGE_NOTE, 0, key, text, 0);
}

void tl_recorder_push(struct tl_recorder *r, const struct tl_record *rec)
{
	tl_ring_push(r->ring, rec);
}

int tl_recorder_error(const struct tl_recorder *r)
{
	return atomic_load_explicit(&r->error, memory_order_relaxed);
}

bool tl_recorder_truncated(const struct tl_recorder *r)
{
	return atomic_load_explicit(&r->truncated, memory_order_relaxed);
}

/* From here on: the recorder's thread. */

static void take_record(struct tl_recorder *r, const struct tl_record *rec)
{
	struct tl_times t = tl_account_add(r->account, rec);

	if (!(rec->flags & TL_REC_SAME_STOP)) {
		r->raw_wall_ns += rec->wall_ran_ns;
		r->raw_cpu_ns += rec->cpu_ran_ns;
	}
	tl_writer_mark(r->writer, rec->task, rec->kind, rec->func, rec->flags & ~TL_REC_SAME_STOP,
		       t.user_ns, t.sys_ns, t.wall_ns);
}

/* False: the last one. */
static bool take_message(struct tl_recorder *r, struct message *m)
{
	bool more = true;

	switch (m->kind) {
	case MESSAGE_FUNC:
		tl_writer_func(r->writer, &m->func);
		break;
	case MESSAGE_TASK:
		tl_writer_task(r->writer, &m->task);
		break;
	case MESSAGE_NAME:
		tl_writer_task_name(r->writer, m->id, m->text.a, m->text.b);
		break;
	case MESSAGE_END:
		tl_writer_task_end(r->writer, m->id, m->text.a);
		tl_account_task_end(r->account, m->id);
		break;
	case MESSAGE_HOW:
		tl_writer_how(r->writer, m->id, m->known.how, m->known.self);
		break;
	case MESSAGE_LINE:
		tl_writer_line(r->writer, m->id, m->text.a, m->text.line);
		break;
	case MESSAGE_NOTE:
		tl_writer_note(r->writer, m->text.a, m->text.b ? m->text.b : "");
		break;
	case MESSAGE_STOP:
		more = false;
		break;
	}
	free(m);
	return more;
}

static bool take(struct tl_recorder *r, const struct tl_ring_entry *e, size_t n)
{
	bool more = true;

	for (size_t i = 0; i < n; i++) {
		if (e[i].message)
			more = take_message(r, e[i].message);
		else
			take_record(r, &e[i].rec);
	}
	return more;
}

/* The target and its tracer share one CPU: on it every wake-up of ours would be in their
 * times. */
static void settle(int cpu_avoid)
{
	cpu_set_t cpus;

	if (cpu_avoid < 0)
		return;
	if (cpu_avoid < CPU_SETSIZE && !sched_getaffinity(0, sizeof cpus, &cpus)) {
		CPU_CLR(cpu_avoid, &cpus);
		if (CPU_COUNT(&cpus) && !sched_setaffinity(0, sizeof cpus, &cpus))
			return;
	}
	setpriority(PRIO_PROCESS, gettid(), 5); /* of this thread alone, on Linux */
}

static void *run(void *arg)
{
	static const long shortest_ns = 1000000, longest_ns = 5000000;
	struct tl_recorder *r = arg;
	const struct tl_ring_entry *e;
	uint64_t flushed = now_ns(CLOCK_MONOTONIC_COARSE), now;
	struct timespec nap = {.tv_nsec = shortest_ns};
	bool more = true;
	size_t n;

	settle(r->cpu_avoid);
	while (more) {
		n = tl_ring_peek(r->ring, &e);
		n = n < BATCH ? n : BATCH;
		if (n) {
			more = take(r, e, n);
			tl_ring_release(r->ring, n);
			nap.tv_nsec = shortest_ns;
		} else {
			nanosleep(&nap, NULL);
			nap.tv_nsec = nap.tv_nsec * 2 < longest_ns ? nap.tv_nsec * 2 : longest_ns;
		}
		now = now_ns(CLOCK_MONOTONIC_COARSE);
		if (now - flushed < 1000000000)
			continue;
		flushed = now;
		atomic_store_explicit(&r->error, tl_writer_flush(r->writer), memory_order_relaxed);
		atomic_store_explicit(&r->truncated, tl_writer_truncated(r->writer),
				      memory_order_relaxed);
	}
	return NULL;
}

/* The caller's again. */

static void note_costs(struct tl_writer *w, const struct tl_costs *c, const char *when)
{
	static const char *const parts[TL_COST_PARTS] = {
	    [TL_INTO_ENTRY] = "into_entry",
	    [TL_OUT_OF_ENTRY] = "out_of_entry",
	    [TL_INTO_EXIT] = "into_exit",
	    [TL_OUT_OF_EXIT] = "out_of_exit",
	};
	struct tl_strbuf b = {0};

	for (int i = 0; i < TL_COST_PARTS * 2; i++) {
		bool cpu = i >= TL_COST_PARTS;
		struct tl_cost_cell all = tl_cost_pooled(c, cpu, i % TL_COST_PARTS);

		tl_strbuf_clear(&b);
		tl_strbuf_printf(&b, "when=%s part=%s clock=%s mean=%.1f spread=%.1f n=%llu", when,
				 parts[i % TL_COST_PARTS], cpu ? "cpu" : "wall", all.mean_ns,
				 all.spread_ns, (unsigned long long)all.n);
		tl_writer_note(w, "overhead", tl_strbuf_text(&b));
	}
	tl_strbuf_fini(&b);
}

/* dprofpp takes half of it off each mark: with an odd number it would leave integers. */
static int64_t even(double ns)
{
	return (int64_t)(ns / 2 + 0.5) * 2;
}

static void note_over(struct tl_writer *w, const struct tl_costs *c)
{
	double wall = 0, cpu = 0;

	for (int i = 0; i < TL_COST_PARTS; i++) {
		wall += tl_cost_pooled(c, false, i).mean_ns;
		cpu += tl_cost_pooled(c, true, i).mean_ns;
	}
	tl_writer_over(w, 0, even(cpu), even(wall), 1);
}

static void recorder_free(struct tl_recorder *r)
{
	tl_account_free(r->account);
	tl_ring_free(r->ring);
	free(r);
}

static int start_thread(struct tl_recorder *r)
{
	sigset_t all, before;
	int e;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (e)
		return tl_fail(-e, "cannot start the recorder's thread: %s; look at ulimit -u",
			       strerror(e));
	pthread_setname_np(r->thread, "tl-recorder");
	return TL_OK;
}

int tl_recorder_start(const struct tl_recorder_options *o, const struct tl_costs *costs,
		      struct tl_recorder **out)
{
	struct tl_recorder *r = tl_calloc(1, sizeof *r);
	int e;

	*out = NULL;
	r->raw = o->raw;
	r->cpu_avoid = o->cpu_avoid;
	r->started_ns = now_ns(CLOCK_MONOTONIC);
	if (costs)
		r->costs = *costs;
	r->account = tl_account_new(r->raw ? NULL : &r->costs);
	r->ring = tl_ring_new(RING_SIZE);
	e = tl_writer_open(&o->writer, &r->writer);
	if (e < 0) {
		recorder_free(r);
		return e;
	}
	if (r->costs.valid)
		note_costs(r->writer, &r->costs, "before");
	if (r->costs.valid && r->raw)
		note_over(r->writer, &r->costs);
	e = start_thread(r);
	if (e < 0) {
		char *why = tl_strdup(tl_error_text());

		tl_writer_discard(r->writer);
		recorder_free(r);
		e = tl_fail(e, "%s", why);
		free(why);
		return e;
	}
	*out = r;
	return TL_OK;
}

static void note_run(struct tl_recorder *r, const struct tl_account_totals *t)
{
	/* The run ends with its last task; what we do afterwards is our affair. */
	uint64_t end = r->ended_ns ? r->ended_ns : now_ns(CLOCK_MONOTONIC);
	struct tl_strbuf b = {0};

	tl_strbuf_printf(&b,
			 "wall=%llu raw_wall=%llu raw_cpu=%llu taken_wall=%.0f taken_cpu=%.0f "
			 "clamps=%llu clamped=%llu raw=%d",
			 (unsigned long long)(end - r->started_ns),
			 (unsigned long long)r->raw_wall_ns, (unsigned long long)r->raw_cpu_ns,
			 t->overhead_wall_ns, t->overhead_cpu_ns, (unsigned long long)t->clamps,
			 (unsigned long long)t->clamped_ns, r->raw);
	tl_writer_run(r->writer, tl_strbuf_text(&b));
	tl_strbuf_fini(&b);
}

static void join(struct tl_recorder *r)
{
	struct message m = {.kind = MESSAGE_STOP};

	send(r, &m);
	pthread_join(r->thread, NULL);
}

void tl_recorder_cancel(struct tl_recorder *r)
{
	join(r);
	tl_writer_discard(r->writer);
	recorder_free(r);
}

int tl_recorder_stop(struct tl_recorder *r, const struct tl_costs *after,
		     struct tl_recorder_totals *totals)
{
	struct tl_account_totals t;
	struct tl_writer_totals w;
	int e;

	join(r);
	tl_writer_end_all(r->writer, "stopped");
	tl_account_totals(r->account, &t);
	tl_writer_totals(r->writer, &w);
	if (after && after->valid)
		note_costs(r->writer, after, "after");
	note_run(r, &t);
	if (totals)
		*totals = (struct tl_recorder_totals){
		    .marks = w.marks,
		    .tasks = w.tasks,
		    .lost = w.lost,
		    .clamps = t.clamps,
		    .clamped_ns = t.clamped_ns,
		    .wall_ns = w.wall_ns,
		    .user_ns = w.user_ns,
		    .sys_ns = w.sys_ns,
		    .overhead_wall_ns = (uint64_t)t.overhead_wall_ns,
		    .overhead_cpu_ns = (uint64_t)t.overhead_cpu_ns,
		};
	e = tl_writer_finish(r->writer);
	recorder_free(r);
	return e;
}
