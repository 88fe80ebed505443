#include "session/session.h"

#include <errno.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "target/ptrace.h"

void tl_note_leader(struct tl_session *s, const struct tl_stop *stop)
{
	if (stop->tid != s->leader || stop->kind != TL_STOP_ENDED)
		return;
	s->leader_ended = true;
	s->leader_status = stop->status;
}

void tl_stop_seen(struct tl_session *s, struct tl_task *t, const struct tl_stop *stop, uint64_t now)
{
	t->state = TL_TASK_STOPPED;
	t->reaped = false;
	t->seen_ns = now;
	if (!t->process || t->process->ignored || t->ended)
		return;
	t->cpu_ns = tl_task_read_cpu(t);
	t->user_total_ns = stop->user_total_ns;
	t->sys_total_ns = stop->sys_total_ns;
	s->ops->stopped(s->engine, t);
}

void tl_resume(struct tl_session *s, struct tl_task *t, enum tl_go go)
{
	int signal;

	if (go == TL_GO_GONE)
		return;
	signal = t->pending_signal;
	if (t->process && !t->process->ignored && !t->ended)
		s->ops->resuming(s->engine, t);
	t->pending_signal = 0;
	if (go == TL_GO_AWAY) {
		tl_place_release(t);
		tl_ptrace_detach(t->tid, signal);
		tl_task_remove(s, t, "detach");
		return;
	}
	t->state = go == TL_GO_LISTEN ? TL_TASK_LISTENING : TL_TASK_RUNNING;
	if (t->process)
		t->changes = t->process->space->changes;
	t->last_cpu_ns = t->cpu_ns;
	/* Read right before: what comes after it is the kernel's way out, which
	 * calibration estimates; what lies before is our window, taken out exactly. */
	t->resumed_ns = tl_now_ns();
	if (go == TL_GO_LISTEN)
		tl_ptrace_listen(t->tid);
	else
		tl_ptrace_cont(t->tid, signal);
}

static enum tl_go on_signal(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	t->pending_signal = stop->signal;
	if (t->process && t->process->space->client)
		s->ops->interrupted(s->engine, t);
	return TL_GO_ON;
}

static enum tl_go on_group(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	(void)s, (void)t, (void)stop;
	return TL_GO_LISTEN;
}

/* A child's first stop: it has not run in user mode yet. */
static enum tl_go on_birth(struct tl_session *s, struct tl_task *t)
{
	struct tl_process *p = t->process;

	t->fresh = false;
	if (p->leaving && p->space->processes == 1) {
		/* Not followed, with a copy of our breakpoints: they go before it runs. */
		s->ops->clean_space(s->engine, p->space);
		return TL_GO_AWAY;
	}
	return TL_GO_ON;
}

static enum tl_go on_stop(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	(void)stop;
	return t->fresh ? on_birth(s, t) : TL_GO_ON;
}

/* Whether the new process CHILD uses the same memory as PARENT. The kind of the event does
 * not tell: clone(CLONE_VM|SIGCHLD) is reported as a clone, and so is a plain clone(). */
static bool shares_memory(pid_t parent, pid_t child, enum tl_stop_kind kind)
{
	long r = syscall(SYS_kcmp, parent, child, KCMP_VM, 0, 0);

	return r >= 0 ? r == 0 : kind == TL_STOP_VFORK;
}

static struct tl_process *new_process(struct tl_session *s, struct tl_task *parent, pid_t pid,
				      enum tl_stop_kind kind)
{
	struct tl_process *from = parent->process, *p;
	bool shared = shares_memory(parent->tid, pid, kind);

	p = tl_process_add(s, pid, shared ? from->space : tl_space_new(pid));
	p->ignored = from->ignored || !s->options.follow;
	/* With our breakpoints in its memory a vfork child has to stay until its exec. */
	p->leaving = from->leaving || !s->options.follow;
	memcpy(p->program, from->program, sizeof p->program);
	if (!shared)
		s->ops->space_copied(s->engine, from->space, p->space,
				     parent->changes != from->space->changes);
	return p;
}

/* Clone, fork, vfork: TID is the parent, the message the child. */
static enum tl_go on_child(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	struct tl_proc_status status;
	struct tl_process *p;
	struct tl_task *child;
	unsigned long tid;

	if (tl_ptrace_event_message(t->tid, &tid) != TL_OK || tl_proc_status(tid, &status) != TL_OK)
		return TL_GO_ON; /* it was killed already */
	child = tl_task_of(s, tid);
	if (child && child->process)
		return TL_GO_ON;
	tl_place_born(t, tid);
	p = status.tgid == t->process->pid ? t->process : new_process(s, t, tid, stop->kind);
	if (child) {
		child->process = p;
		p->tasks++;
	} else {
		child = tl_task_add(s, tid, p);
	}
	/* The process clock no longer is one task's clock. */
	if (p->tasks == 2 && p == t->process && t->schedstat_fd < 0) {
		t->last_cpu_ns = t->cpu_ns = tl_task_read_cpu(t);
	}
	tl_task_start_clocks(child, t->seen_ns);
	if (!p->ignored)
		s->ops->task_began(s->engine, child, t);
	if (child->state == TL_TASK_ORPHAN) {
		child->state = TL_TASK_STOPPED;
		tl_resume(s, child, on_birth(s, child));
	}
	return TL_GO_ON;
}

void tl_process_read_program(struct tl_process *p)
{
	char path[PATH_MAX], *slash;

	if (tl_proc_exe(p->pid, path, sizeof path) != TL_OK || !path[0])
		return;
	slash = strrchr(path, '/');
	snprintf(p->program, sizeof p->program, "%.*s", (int)sizeof p->program - 1,
		 slash ? slash + 1 : path);
}

/* All other tasks of the process died without a word, and one that was not the leader now
 * has the leader's id. Proof: fixtures/exec_thread.c */
static struct tl_task *only_survivor(struct tl_session *s, struct tl_process *p, pid_t former)
{
	struct tl_task *t = tl_task_of(s, former);
	TL_VEC(struct tl_task *) others = {0};
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v))
		if (((struct tl_task *)v)->process == p && v != t)
			tl_vec_push(&others, v);
	for (size_t i = 0; i < others.n; i++)
		tl_task_remove(s, others.at[i], "exec");
	tl_vec_fini(&others);
	if (t->tid != p->pid) {
		tl_map_remove(&s->tasks, t->tid);
		t->tid = p->pid;
		tl_map_put(&s->tasks, t->tid, t);
	}
	if (t->schedstat_fd >= 0)
		close(t->schedstat_fd);
	t->schedstat_fd = -1;
	return t;
}

static enum tl_go on_exec(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	struct tl_process *p = t->process;
	struct tl_space *old = p->space;
	unsigned long former = stop->tid;

	tl_ptrace_event_message(stop->tid, &former);
	if (!tl_task_of(s, former) || tl_task_of(s, former)->process != p)
		former = stop->tid;
	if (former != (unsigned long)t->tid) {
		/* Its clocks: this stop is its own, not the vanished leader's. */
		struct tl_task *survivor = tl_task_of(s, former);

		survivor->state = TL_TASK_STOPPED;
		survivor->seen_ns = t->seen_ns;
	}
	t = only_survivor(s, p, former);
	if (!p->ignored)
		s->ops->exec(s->engine, t);
	p->space = tl_space_new(p->pid);
	p->space->processes = 1;
	tl_space_unref(s, old);
	tl_process_read_program(p);
	if (p->leaving)
		return tl_resume(s, t, TL_GO_AWAY), TL_GO_GONE;
	p->ignored = !s->ops->wants(s->engine, p);
	tl_task_start_clocks(t, t->seen_ns);
	if (!p->ignored) {
		int r = s->ops->process_began(s->engine, p);

		if (r < 0)
			tl_session_end(s, TL_END_FAILED, r);
		s->ops->task_began(s->engine, t, NULL);
	}
	return tl_resume(s, t, TL_GO_ON), TL_GO_GONE;
}

static const char *describe_end(int status, char *buf, size_t n)
{
	if (WIFEXITED(status))
		snprintf(buf, n, "exit:%d", WEXITSTATUS(status));
	else
		snprintf(buf, n, "signal:%d", WTERMSIG(status));
	return buf;
}

static enum tl_go on_dying(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	unsigned long status = 0;
	char how[32];

	(void)stop;
	tl_ptrace_event_message(t->tid, &status);
	if (t->process && !t->process->ignored && !t->ended)
		s->ops->task_ended(s->engine, t, describe_end(status, how, sizeof how));
	t->ended = true;
	return TL_GO_ON;
}

static enum tl_go on_ended(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	char how[32];

	tl_task_remove(s, t, describe_end(stop->status, how, sizeof how));
	return TL_GO_GONE;
}

static enum tl_go on_stray(struct tl_session *s, struct tl_task *t, struct tl_stop *stop)
{
	(void)s, (void)t, (void)stop;
	return TL_GO_ON;
}

tl_stop_handler *const tl_on_stop[TL_STOP_KINDS] = {
	[TL_STOP_TRAP] = on_signal, /* not our breakpoint's: the program's own */
	[TL_STOP_SIGNAL] = on_signal,
	[TL_STOP_GROUP] = on_group,
	[TL_STOP_CLONE] = on_child,
	[TL_STOP_FORK] = on_child,
	[TL_STOP_VFORK] = on_child,
	[TL_STOP_EXEC] = on_exec,
	[TL_STOP_EXIT] = on_dying,
	[TL_STOP_STOP] = on_stop,
	[TL_STOP_SYSCALL] = on_stray,
	[TL_STOP_ENDED] = on_ended,
};
