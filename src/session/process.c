#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "target/mem.h"

struct tl_process *tl_process_of(const struct tl_session *s, pid_t pid)
{
	return tl_map_get(&s->processes, pid);
}

struct tl_process *tl_process_add(struct tl_session *s, pid_t pid, struct tl_space *sp)
{
	struct tl_process *p = tl_calloc(1, sizeof *p);

	p->pid = pid;
	p->space = sp;
	sp->processes++;
	/* What clock_getcpuclockid() computes, without asking whether the process
	 * exists: CPUCLOCK_SCHED of the whole process (kernel: posix-timers.h). */
	p->cpu_clock = (clockid_t)(~(unsigned)pid << 3 | 2);
	tl_map_put(&s->processes, pid, p);
	return p;
}

void tl_process_drop(struct tl_session *s, struct tl_process *p)
{
	if (tl_process_of(s, p->pid) == p)
		tl_map_remove(&s->processes, p->pid);
	tl_space_unref(s, p->space);
	free(p);
}

struct tl_space *tl_space_new(pid_t pid)
{
	struct tl_space *sp = tl_calloc(1, sizeof *sp);

	sp->any = pid;
	sp->mem_fd = -1;
	if (tl_mem_open(pid, &sp->mem_fd) != TL_OK)
		sp->mem_fd = -1;
	return sp;
}

void tl_space_unref(struct tl_session *s, struct tl_space *sp)
{
	size_t pos = 0;
	uint64_t key;
	void *p;

	if (--sp->processes) {
		/* /proc must be asked about a process that still has it. */
		while (tl_map_next(&s->processes, &pos, &key, &p))
			if (((struct tl_process *)p)->space == sp)
				sp->any = key;
		return;
	}
	if (s->ops->space_ended)
		s->ops->space_ended(s->engine, sp);
	if (sp->mem_fd >= 0)
		close(sp->mem_fd);
	free(sp);
}
