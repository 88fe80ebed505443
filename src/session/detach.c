/* Leaving: every byte is put back first, then whoever may still have met one of our
 * breakpoints is brought past it, and only then anybody is let go. A task that sleeps in
 * the kernel cannot be at a breakpoint; it is not stopped (EINTR) but let go by the
 * end of the tracing thread, which detaches silently. */
#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "target/ptrace.h"

enum { PATIENCE_MS = 3000 };

struct leaving {
	struct tl_session *s;
	TL_VEC(pid_t) interrupted;
};

static bool listed(const struct leaving *l, pid_t tid)
{
	for (size_t i = 0; i < l->interrupted.n; i++)
		if (l->interrupted.at[i] == tid)
			return true;
	return false;
}

/* An interrupted sleeper's system call fails with EINTR where nobody sent a signal: made
 * again, it goes on sleeping. Only for the moment between our look at its state and
 * our interrupt. */
static void undo_eintr(struct tl_task *t)
{
	const struct tl_arch *arch = tl_arch_native();
	tl_regs regs;

	if (tl_ptrace_get_regs(t->tid, &regs) == TL_OK && arch->undo_eintr(&regs))
		tl_ptrace_set_regs(t->tid, &regs);
}

/* An interrupt is reported before signals are: a task that has just run into a breakpoint may
 * still have the SIGTRAP ahead of it, and would die of it once nobody traces it. */
static bool has_trap_ahead(pid_t tid)
{
	struct tl_proc_status st;

	return tl_proc_status(tid, &st) == TL_OK && (st.sig_pending & 1ull << (SIGTRAP - 1));
}

/* One stop while leaving: the task is kept if it may serve, or let go. */
static void on_stop(struct tl_session *s, struct tl_stop *stop)
{
	struct tl_task *t = tl_task_of(s, stop->tid);
	enum tl_go go;
	bool ours = false;
	tl_regs regs;

	tl_note_leader(s, stop);
	if (t && t->process && stop->kind == TL_STOP_TRAP &&
	    tl_ptrace_get_regs(t->tid, &regs) == TL_OK) {
		tl_stop_seen(s, t, stop, tl_now_ns());
		s->ops->trap(s->engine, t, &regs, &ours);
	}
	if (tl_wait_reap(stop->tid) != TL_OK || !t || !t->process) {
		/* Born this moment, traced because its parent was. */
		if (!t && stop->kind != TL_STOP_ENDED)
			tl_ptrace_detach(stop->tid, 0);
		return;
	}
	if (stop->kind == TL_STOP_STOP && has_trap_ahead(t->tid)) {
		t->state = TL_TASK_RUNNING;
		tl_ptrace_cont(t->tid, 0);
		return;
	}
	if (ours || (stop->kind == TL_STOP_STOP && !t->fresh)) {
		if (!ours)
			undo_eintr(t);
		t->state = TL_TASK_STOPPED;
		return;
	}
	go = tl_on_stop[stop->kind](s, t, stop);
	if (go == TL_GO_LISTEN)
		t->pending_signal = stop->signal;
	if (go != TL_GO_GONE)
		tl_resume(s, t, stop->kind == TL_STOP_EXIT ? TL_GO_ON : TL_GO_AWAY);
}

/* Whether everybody is accounted for: stopped here, or asleep in the kernel. Those that run are
 * interrupted, once each. */
static bool account_for_all(struct leaving *l)
{
	struct tl_session *s = l->s;
	struct tl_proc_status st;
	bool all = true;
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (t->state != TL_TASK_RUNNING || t->ended)
			continue;
		if (tl_proc_status(t->tid, &st) != TL_OK)
			continue;
		if ((st.state == 'S' || st.state == 'D') && !s->options.kill_with_us)
			continue;
		all = false;
		/* 't': its stop is on the way to us. */
		if (st.state != 't' && !listed(l, t->tid)) {
			tl_vec_push(&l->interrupted, t->tid);
			tl_ptrace_interrupt(t->tid);
		}
	}
	return all;
}

/* A task of SP that is stopped in user mode, and so can make a system call for us. */
static struct tl_task *one_of(const struct tl_session *s, const struct tl_space *sp)
{
	size_t pos = 0;
	uint64_t key;
	tl_regs regs;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (t->process && t->process->space == sp && t->state == TL_TASK_STOPPED &&
		    !t->ended && tl_ptrace_get_regs(t->tid, &regs) == TL_OK &&
		    !tl_arch_native()->in_syscall(&regs))
			return t;
	}
	return NULL;
}

/* Nobody in SP executes code of ours, as far as their pcs tell: the stopped ones by their
 * registers, sleepers by /proc/TID/syscall. */
static bool quiet(const struct tl_session *s, const struct tl_space *sp)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;
		tl_vaddr pc;
		tl_regs regs;

		if (!t->process || t->process->space != sp || t->ended)
			continue;
		if (t->state == TL_TASK_STOPPED) {
			if (tl_ptrace_get_regs(t->tid, &regs) != TL_OK)
				continue;
			pc.u = tl_arch_native()->pc(&regs);
		} else if (tl_proc_sleeper_pc(t->tid, &pc) != TL_OK) {
			return false;
		}
		if (s->ops->in_our_code(s->engine, sp, pc))
			return false;
	}
	return true;
}

static void each_space(struct tl_session *s, void (*f)(struct tl_session *, struct tl_space *))
{
	TL_VEC(struct tl_space *) done = {0};
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->processes, &pos, &key, &v)) {
		struct tl_process *p = v;
		bool seen = p->ignored && !p->leaving;

		for (size_t i = 0; i < done.n; i++)
			seen |= done.at[i] == p->space;
		if (seen)
			continue;
		tl_vec_push(&done, p->space);
		f(s, p->space);
	}
	tl_vec_fini(&done);
}

static void clean(struct tl_session *s, struct tl_space *sp)
{
	s->ops->clean_space(s->engine, sp);
}

static void forget(struct tl_session *s, struct tl_space *sp)
{
	s->ops->forget_space(s->engine, sp, one_of(s, sp), quiet(s, sp));
}

static void evict_all(struct tl_session *s)
{
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v)) {
		struct tl_task *t = v;

		if (t->state == TL_TASK_STOPPED && t->process && t->process->space->client)
			s->ops->evict(s->engine, t);
	}
}

static void release_all(struct tl_session *s)
{
	TL_VEC(struct tl_task *) all = {0};
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&s->tasks, &pos, &key, &v))
		tl_vec_push(&all, v);
	for (size_t i = 0; i < all.n; i++) {
		struct tl_task *t = all.at[i];

		if (t->state == TL_TASK_STOPPED) {
			tl_resume(s, t, TL_GO_AWAY);
		} else if (!t->process) { /* an orphan nobody told of */
			tl_ptrace_detach(t->tid, t->pending_signal);
			tl_task_remove(s, t, "detach");
		} else {
			tl_place_release(t);
			tl_task_remove(s, t, "detach");
		}
	}
	tl_vec_fini(&all);
}

int tl_session_leave(struct tl_session *s)
{
	struct leaving l = {.s = s};
	struct timespec ms = {0, 1000000};
	struct tl_stop stop;
	int r = TL_OK, patience = PATIENCE_MS;

	s->held.n = 0; /* they are stopped: that is all that counts now */
	each_space(s, clean);
	while (s->tasks.n) {
		r = tl_wait_peek(TL_WAIT_POLL, &stop);
		if (r == TL_OK) {
			on_stop(s, &stop);
			continue;
		}
		if (r != -EAGAIN || account_for_all(&l))
			break;
		if (--patience == 0) {
			tl_warn("some tasks do not stop to be let go: left to the kernel");
			break;
		}
		nanosleep(&ms, NULL);
	}
	evict_all(s);
	each_space(s, forget);
	release_all(s);
	tl_vec_fini(&l.interrupted);
	return r < 0 && r != -EAGAIN ? r : TL_OK;
}
