#include "session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "target/ptrace.h"

enum {
	TICK_NS = 50 * 1000 * 1000,
	/* Traps in a row of one and the same task after which it is taken to be alone. */
	LONE_RUN = 32,
	/* Every so many stops a lone task's stop is handled as one of many all the same: waiting
	 * for all starves whoever comes later in the kernel's list. */
	LONE_CHECK = 16,
	BATCH_MOST = 256,
};

/* What signal handlers tell: one bit a signal. */
static volatile sig_atomic_t signalled;

static const struct {
	int signal, bit;
} signals[] = {
	{SIGINT, 1}, {SIGTERM, 2}, {SIGHUP, 4}, {SIGUSR1, 8}, {SIGUSR2, 16}, {SIGALRM, 32},
};
enum { TICK_BIT = 32, N_SIGNALS = sizeof signals / sizeof *signals };

static void note_signal(int signal)
{
	for (int i = 0; i < N_SIGNALS; i++)
		if (signals[i].signal == signal)
			signalled |= signals[i].bit;
}

/* Without SA_RESTART, so that a wait returns; a signal that comes between the look
 * at the flag and the wait is seen at the next tick. All others are blocked meanwhile: the
 * |= above is not atomic. */
static void watch_signals(void)
{
	struct sigaction sa = {.sa_handler = note_signal};
	sigset_t set;

	sigfillset(&sa.sa_mask);
	sigemptyset(&set);
	for (int i = 0; i < N_SIGNALS; i++) {
		struct sigaction was;

		/* Under nohup a hang-up stays ignored, by us and by whom we launch. */
		sigaction(signals[i].signal, NULL, &was);
		if (was.sa_handler != SIG_IGN || signals[i].bit == TICK_BIT)
			sigaction(signals[i].signal, &sa, NULL);
		sigaddset(&set, signals[i].signal);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int start_timer(struct tl_session *s)
{
	struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};

	ev._sigev_un._tid = gettid();
	if (timer_create(CLOCK_MONOTONIC, &ev, &s->timer) < 0 ||
	    timer_settime(s->timer, 0, &every, NULL) < 0)
		return tl_fail(-errno, "a timer cannot be set: %s", strerror(errno));
	s->timer_armed = true;
	return TL_OK;
}

int tl_session_init(struct tl_session *s, const struct tl_session_options *o,
		    const struct tl_engine_ops *ops, void *engine)
{
	*s = (struct tl_session){.options = *o, .ops = ops, .engine = engine};
	signalled = 0;
	tl_place_init(s);
	watch_signals();
	return start_timer(s);
}

void tl_session_fini(struct tl_session *s)
{
	if (s->timer_armed)
		timer_delete(s->timer);
	tl_place_fini(s);
	tl_map_fini(&s->tasks);
	tl_map_fini(&s->processes);
	tl_vec_fini(&s->held);
}

void tl_session_end(struct tl_session *s, enum tl_end how, int error)
{
	if (how > s->end) {
		s->end = how;
		s->error = error;
	}
}

static int check_signals(struct tl_session *s)
{
	int bits = __atomic_exchange_n(&signalled, 0, __ATOMIC_RELAXED), r = TL_OK;

	if (bits & TICK_BIT) {
		tl_place_tick(s);
		r = s->ops->tick(s->engine, tl_now_ns());
	}
	for (int i = 0; i < N_SIGNALS && r >= 0; i++)
		if (bits & ~TICK_BIT & signals[i].bit)
			r = s->ops->signalled(s->engine, signals[i].signal);
	return r;
}

/* Somebody's first stop before its parent told of it, the end of somebody we let go of,
 * or a child of ours that we never traced. */
static void on_unknown(struct tl_session *s, const struct tl_stop *stop)
{
	struct tl_task *t;

	if (tl_wait_reap(stop->tid) != TL_OK || stop->kind == TL_STOP_ENDED)
		return;
	t = tl_task_add(s, stop->tid, NULL);
	t->pending_signal = stop->kind == TL_STOP_SIGNAL ? stop->signal : 0;
}

/* *HELD: it is stopped and reaped, the pc put right, and waits to be resumed. */
static int on_trap(struct tl_session *s, struct tl_task *t, struct tl_stop *stop, bool *held)
{
	bool ours = false;
	tl_regs regs;
	int r;

	*held = false;
	r = tl_ptrace_get_regs(t->tid, &regs);
	if (r == TL_OK)
		r = s->ops->trap(s->engine, t, &regs, &ours);
	if (r != TL_OK)
		return r == TL_GONE ? (tl_wait_reap(t->tid), TL_OK) : r;
	if (!ours) {
		if (t->reaped || tl_wait_reap(t->tid) == TL_OK)
			tl_resume(s, t, tl_on_stop[TL_STOP_TRAP](s, t, stop));
		return TL_OK;
	}
	s->stops++;
	s->lone_run = s->lone == t->tid ? s->lone_run + 1 : 0;
	s->lone = t->tid;
	tl_place_hot(s, t);
	if (s->lone_run > LONE_RUN && s->lone_run % LONE_CHECK) {
		/* Resuming an unreaped stop is allowed for traps and saves a system call. */
		tl_resume(s, t, TL_GO_ON);
		return TL_OK;
	}
	*held = t->reaped || tl_wait_reap(t->tid) == TL_OK;
	return TL_OK;
}

static int handle(struct tl_session *s, struct tl_stop *stop)
{
	uint64_t now = tl_now_ns();
	struct tl_task *t = tl_task_of(s, stop->tid);
	bool held = false;
	int r = TL_OK;

	tl_note_leader(s, stop);
	if (!t || !t->process)
		return on_unknown(s, stop), TL_OK;
	if (stop->kind == TL_STOP_TRAP) {
		tl_stop_seen(s, t, stop, now);
		r = on_trap(s, t, stop, &held);
		if (held)
			tl_vec_push(&s->held, t);
		return r;
	}
	if (tl_wait_reap(stop->tid) != TL_OK)
		return TL_OK;
	if (stop->kind != TL_STOP_ENDED)
		tl_stop_seen(s, t, stop, now);
	tl_resume(s, t, tl_on_stop[stop->kind](s, t, stop));
	return TL_OK;
}

static void resume_held(struct tl_session *s)
{
	for (size_t i = 0; i < s->held.n; i++)
		tl_resume(s, s->held.at[i], TL_GO_ON);
	s->held.n = 0;
}

/* The first stop, then whatever else has stopped meanwhile, then all go on together: so
 * no hot task gets more turns than another. */
static int handle_batch(struct tl_session *s, struct tl_stop *stop)
{
	int r = handle(s, stop);

	for (int i = 0; r == TL_OK && s->held.n && i < BATCH_MOST; i++) {
		r = tl_wait_peek(TL_WAIT_POLL, stop);
		if (r == TL_OK)
			r = handle(s, stop);
	}
	resume_held(s);
	return r == -EAGAIN || r == -EINTR || r == TL_GONE ? TL_OK : r;
}

static bool finished(const struct tl_session *s)
{
	return s->end || (!s->tasks.n && (!s->leader || s->leader_ended));
}

int tl_session_run(struct tl_session *s)
{
	struct tl_stop stop;
	int r = TL_OK;

	while (!finished(s)) {
		if (signalled && (r = check_signals(s)) < 0)
			break;
		if (finished(s))
			break;
		r = tl_wait_peek(TL_WAIT_BLOCK, &stop);
		if (r == TL_GONE)
			break;
		if (r == -EINTR)
			continue;
		if (r < 0 || (r = handle_batch(s, &stop)) < 0)
			break;
	}
	if (r < 0 && r != -EINTR)
		tl_session_end(s, TL_END_FAILED, r);
	return s->end == TL_END_FAILED ? s->error : TL_OK;
}
