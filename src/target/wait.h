/* target/wait.h - every wait there is, and what a stop means.
 *
 * A stop is first only looked at (WNOWAIT), so that the pc of a task at one of our
 * breakpoints can be put right before the stop is reaped: should we die in between, the
 * kernel still knows of the stop. Everything else is reaped before it is handled:
 * an unreaped exec event makes every ptrace call return ESRCH (facts in doc/PTRACE.md). */
#ifndef TL_TARGET_WAIT_H
#define TL_TARGET_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum tl_stop_kind {
	TL_STOP_TRAP,	/* SIGTRAP: a breakpoint, or a signal of the program's own */
	TL_STOP_SIGNAL, /* about to be delivered: .signal */
	TL_STOP_GROUP,	/* stopped by job control: .signal */
	TL_STOP_CLONE,
	TL_STOP_FORK,
	TL_STOP_VFORK,
	TL_STOP_EXEC,
	TL_STOP_EXIT,	 /* dying, still has registers and clocks */
	TL_STOP_STOP,	 /* a new task's first stop, PTRACE_INTERRUPT, or the end of a group stop */
	TL_STOP_SYSCALL, /* only inside target/remote.c */
	TL_STOP_ENDED,	 /* gone; .status is wait(2)'s */
	TL_STOP_KINDS
};

struct tl_stop {
	enum tl_stop_kind kind;
	pid_t tid;
	int signal;
	int status;			      /* TL_STOP_ENDED: as waitpid gives it */
	uint64_t user_total_ns, sys_total_ns; /* rusage of its process, dead children included */
};

enum tl_wait_mode {
	TL_WAIT_BLOCK, /* until something stops or a signal arrives */
	TL_WAIT_POLL,  /* only what is there already */
};

/* Looks at the next stop of any task without reaping it. TL_OK: *OUT is it. TL_GONE: there
 * is nothing to wait for at all. -EINTR (no text): a signal came. -EAGAIN (no text): TL_WAIT_POLL
 * and nothing is there. */
int tl_wait_peek(enum tl_wait_mode mode, struct tl_stop *out);

/* Reaps the stop that was looked at. TL_GONE: it vanished (SIGKILL). */
int tl_wait_reap(pid_t tid);

/* Waits for TID's next stop and reaps it. Restarts after signals. */
int tl_wait_task(pid_t tid, struct tl_stop *out);

#endif
