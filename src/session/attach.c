#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "target/ptrace.h"

/* Says why the kernel refused, as far as /proc tells. */
static int refused(pid_t pid, int err)
{
	char scope = 0, exe[256];
	struct tl_proc_status st;
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");

	if (f) {
		scope = fgetc(f);
		fclose(f);
	}
	if (tl_proc_status(pid, &st) != TL_OK)
		return tl_fail(-ESRCH, "there is no process %d", pid);
	if (tl_proc_exe(pid, exe, sizeof exe) == TL_OK && !exe[0] && geteuid() == 0)
		return tl_fail(-EPERM, "%d (%s) is a kernel thread: it has no program to profile",
			       pid, st.comm);
	if (geteuid() != 0 && st.euid != geteuid())
		return tl_fail(-EPERM, "process %d belongs to another user (uid %u): run trapline "
				       "as that user or as root", pid, st.euid);
	if (scope >= '1' && geteuid() != 0)
		return tl_fail(-EPERM, "the kernel's Yama forbids attaching to process %d "
				       "(kernel.yama.ptrace_scope is %c): run trapline as root, or "
				       "`sysctl kernel.yama.ptrace_scope=0'", pid, scope);
	return tl_fail(-EPERM, "process %d cannot be attached to (%s): it is not dumpable, or this "
			       "container lacks CAP_SYS_PTRACE; run trapline as root on the host",
		       pid, strerror(-err));
}

static int check(pid_t pid, pid_t *tgid)
{
	struct tl_proc_status st;

	if (tl_proc_status(pid, &st) != TL_OK)
		return tl_fail(-ESRCH, "there is no process %d: `pgrep -l NAME' lists what runs", pid);
	*tgid = st.tgid;
	if (st.tgid == getpid())
		return tl_fail(-EINVAL, "process %d is this trapline: it cannot trace itself", pid);
	if (st.tracer) {
		struct tl_proc_status by = {.comm = "?"};

		tl_proc_status(st.tracer, &by);
		return tl_fail(-EPERM, "process %d is traced already, by process %d (%s): end that "
				       "first", pid, st.tracer, by.comm);
	}
	/* Proof: fixtures/sigtrap.c, traced with its handler. */
	if ((st.sig_ignored | st.sig_blocked) & 1ull << (SIGTRAP - 1))
		tl_warn("process %d ignores or blocks SIGTRAP: the kernel resets that for the whole "
			"process when a task meets a breakpoint", pid);
	return TL_OK;
}

/* One pass over the tasks; *NEWS: how many had not been there before. */
static int seize_pass(struct tl_session *s, struct tl_process *p, unsigned *news)
{
	struct tl_proc_status st;
	pid_t *tids;
	size_t n;
	int r = tl_proc_tasks(p->pid, &tids, &n);

	*news = 0;
	if (r != TL_OK)
		return r;
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (tl_task_of(s, tids[i]))
			continue;
		/* A leader that called pthread_exit() is a zombie that cannot be seized
		 * (cases A5); a task may die between being listed and being seized (A4). */
		if (tl_proc_status(tids[i], &st) != TL_OK || st.state == 'Z' || st.state == 'X')
			continue;
		r = tl_ptrace_seize(tids[i], s->options.kill_with_us);
		if (r == -EPERM && tl_proc_status(tids[i], &st) == TL_OK &&
		    (st.state == 'Z' || st.state == 'X'))
			r = TL_GONE;
		if (r == TL_OK) {
			struct tl_task *t = tl_task_add(s, tids[i], p);

			t->fresh = false;
			++*news;
		}
	}
	free(tids);
	return r == TL_GONE ? TL_OK : r;
}

/* SEIZE stops nobody, and breakpoints are written while everybody runs: a sleeper that were
 * stopped here could get EINTR from epoll_wait (doc/PTRACE.md). A thread born meanwhile
 * is either in the next pass or traced from birth by its parent's options. */
int tl_session_attach(struct tl_session *s, pid_t pid)
{
	struct tl_process *p;
	unsigned news;
	size_t pos = 0;
	uint64_t key, now;
	void *v;
	int r = check(pid, &pid);

	if (r < 0)
		return r;
	if (tl_process_of(s, pid))
		return TL_OK;
	p = tl_process_add(s, pid, tl_space_new(pid));
	do
		r = seize_pass(s, p, &news);
	while (r == TL_OK && news);
	if (r != TL_OK || !p->tasks) {
		r = r == -EPERM ? refused(pid, r) : r < 0 ? r : refused(pid, -ESRCH);
		if (!p->tasks)
			tl_process_drop(s, p);
		return r;
	}
	tl_process_read_program(p);
	p->ignored = !s->ops->wants(s->engine, p);
	now = tl_now_ns();
	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (t->process != p)
			continue;
		tl_task_start_clocks(t, now);
		if (!p->ignored && (r = s->ops->task_began(s->engine, t, NULL)) < 0)
			return r;
	}
	return p->ignored ? TL_OK : s->ops->process_began(s->engine, p);
}
