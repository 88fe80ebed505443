#include "target/wait.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

enum { EVENTS = WEXITED | WSTOPPED | __WALL };

/* glibc's waitid() hides the system call's fifth argument. */
static int waitid_rusage(idtype_t type, id_t id, siginfo_t *info, int options, struct rusage *ru)
{
	info->si_pid = 0;
	return syscall(SYS_waitid, type, id, info, options, ru);
}

static uint64_t ns(struct timeval t)
{
	return t.tv_sec * 1000000000ull + t.tv_usec * 1000ull;
}

static enum tl_stop_kind classify_event(int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_CLONE:
		return TL_STOP_CLONE;
	case PTRACE_EVENT_FORK:
		return TL_STOP_FORK;
	case PTRACE_EVENT_VFORK:
		return TL_STOP_VFORK;
	case PTRACE_EVENT_EXEC:
		return TL_STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return TL_STOP_EXIT;
	case PTRACE_EVENT_STOP:
		/* A group stop carries the stopping signal, all others SIGTRAP. */
		return signal == SIGTRAP ? TL_STOP_STOP : TL_STOP_GROUP;
	default:
		return TL_STOP_SIGNAL;
	}
}

static void classify(const siginfo_t *info, const struct rusage *ru, struct tl_stop *out)
{
	int code = info->si_status; /* signal | event << 8 for a stop */

	*out = (struct tl_stop){
		.tid = info->si_pid,
		.user_total_ns = ns(ru->ru_utime),
		.sys_total_ns = ns(ru->ru_stime),
	};
	if (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	    info->si_code == CLD_DUMPED) {
		out->kind = TL_STOP_ENDED;
		out->status = info->si_code == CLD_EXITED ? (code & 0xff) << 8 :
				  code | (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
		return;
	}
	out->signal = code & 0x7f;
	if (code >> 8)
		out->kind = classify_event(code >> 8, out->signal);
	else if (code == (SIGTRAP | 0x80))
		out->kind = TL_STOP_SYSCALL;
	else
		out->kind = code == SIGTRAP ? TL_STOP_TRAP : TL_STOP_SIGNAL;
}

int tl_wait_peek(enum tl_wait_mode mode, struct tl_stop *out)
{
	int options = EVENTS | WNOWAIT | (mode == TL_WAIT_POLL ? WNOHANG : 0);
	struct rusage ru;
	siginfo_t info;

	if (waitid_rusage(P_ALL, 0, &info, options, &ru) < 0) {
		if (errno == ECHILD)
			return TL_GONE;
		return errno == EINTR ? -EINTR :
					tl_fail(-errno, "waiting failed: %s", strerror(errno));
	}
	if (!info.si_pid)
		return -EAGAIN;
	classify(&info, &ru, out);
	return TL_OK;
}

static int wait_one(pid_t tid, int options, struct tl_stop *out)
{
	struct rusage ru;
	siginfo_t info;

	while (waitid_rusage(P_PID, tid, &info, EVENTS | options, &ru) < 0) {
		if (errno == ECHILD)
			return TL_GONE;
		if (errno != EINTR)
			return tl_fail(-errno, "waiting for task %d failed: %s", tid,
				       strerror(errno));
	}
	if (!info.si_pid)
		return -EAGAIN;
	classify(&info, &ru, out);
	return TL_OK;
}

int tl_wait_reap(pid_t tid)
{
	struct tl_stop ignored;
	int r = wait_one(tid, WNOHANG, &ignored);

	return r == -EAGAIN ? TL_GONE : r;
}

int tl_wait_task(pid_t tid, struct tl_stop *out)
{
	return wait_one(tid, 0, out);
}
