#include "session/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

uint64_t tl_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct tl_task *tl_task_of(const struct tl_session *s, pid_t tid)
{
	return tl_map_get(&s->tasks, tid);
}

/* schedstat's first field: ns on a CPU. rusage would be the whole process's and its dead
 * children's; another process's thread clock is refused by the kernel. */
static uint64_t read_schedstat(struct tl_task *t)
{
	char line[96], path[64];
	ssize_t n;

	if (t->schedstat_fd < 0) {
		snprintf(path, sizeof path, "/proc/%d/schedstat", t->tid);
		t->schedstat_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	n = pread(t->schedstat_fd, line, sizeof line - 1, 0);
	if (n <= 0)
		return t->last_cpu_ns;
	line[n] = 0;
	return strtoull(line, NULL, 10);
}

uint64_t tl_task_read_cpu(struct tl_task *t)
{
	struct timespec ts;

	if (t->schedstat_fd >= 0 || t->process->tasks > 1)
		return read_schedstat(t);
	/* One task: its process's clock, six times cheaper. Dead children are not in it. */
	if (clock_gettime(t->process->cpu_clock, &ts) < 0)
		return t->last_cpu_ns;
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void tl_task_start_clocks(struct tl_task *t, uint64_t now_ns)
{
	t->resumed_ns = t->seen_ns = now_ns;
	t->last_cpu_ns = t->cpu_ns = tl_task_read_cpu(t);
}

struct tl_task *tl_task_add(struct tl_session *s, pid_t tid, struct tl_process *p)
{
	struct tl_task *t = tl_calloc(1, sizeof *t);

	*t = (struct tl_task){
		.tid = tid,
		.state = p ? TL_TASK_RUNNING : TL_TASK_ORPHAN,
		.schedstat_fd = -1,
		.fresh = true,
	};
	tl_map_put(&s->tasks, tid, t);
	t->process = p;
	if (p)
		p->tasks++;
	return t;
}

void tl_task_remove(struct tl_session *s, struct tl_task *t, const char *how)
{
	struct tl_process *p = t->process;

	if (p && !p->ignored && !t->ended)
		s->ops->task_ended(s->engine, t, how);
	tl_map_remove(&s->tasks, t->tid);
	for (size_t i = 0; i < s->held.n; i++)
		if (s->held.at[i] == t)
			tl_vec_swap_remove(&s->held, i--);
	if (s->lone == t->tid)
		s->lone = 0;
	if (t->schedstat_fd >= 0)
		close(t->schedstat_fd);
	free(t);
	if (p && --p->tasks == 0)
		tl_process_drop(s, p);
}
