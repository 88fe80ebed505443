#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "target/ptrace.h"

struct pipes {
	int go[2], failed[2];
};

/* In the child until exec; only what is safe after fork() in a threaded process. */
static void __attribute__((noreturn))
become(const struct tl_session *s, const struct tl_launch *l, const struct pipes *pipes)
{
	sigset_t none;
	char byte;
	int err;

	if (s->cpu >= 0)
		sched_setaffinity(0, sizeof s->own_cpus, &s->own_cpus);
	sigprocmask(SIG_SETMASK, l->sigmask ? l->sigmask : (sigemptyset(&none), &none), NULL);
	/* Blocked here until we are seized: then exec is the first event. */
	close(pipes->go[1]);
	while (read(pipes->go[0], &byte, 1) < 0 && errno == EINTR)
		;
	if (l->uid != (uid_t)-1 && (initgroups(l->user, l->gid) < 0 || setgid(l->gid) < 0 ||
				    setuid(l->uid) < 0))
		goto failed;
	execvp(l->argv[0], l->argv);
failed:
	err = errno;
	while (write(pipes->failed[1], &err, sizeof err) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* Lets the child run up to its exec event. TL_GONE: it failed before. */
static int run_to_exec(struct tl_session *s, pid_t pid, struct tl_stop *stop)
{
	int r;

	for (;;) {
		if ((r = tl_wait_task(pid, stop)) != TL_OK)
			return r;
		if (stop->kind == TL_STOP_EXEC)
			return TL_OK;
		tl_note_leader(s, stop);
		if (stop->kind == TL_STOP_ENDED)
			return TL_GONE;
		r = tl_ptrace_cont(pid, stop->kind == TL_STOP_SIGNAL ? stop->signal : 0);
		if (r < 0)
			return r;
	}
}

static int began(struct tl_session *s, pid_t pid, const struct tl_stop *stop)
{
	struct tl_process *p = tl_process_add(s, pid, tl_space_new(pid));
	struct tl_task *t = tl_task_add(s, pid, p);
	int r = TL_OK;

	t->fresh = false;
	t->state = TL_TASK_STOPPED;
	tl_process_read_program(p);
	p->ignored = !s->ops->wants(s->engine, p);
	tl_task_start_clocks(t, tl_now_ns());
	t->user_total_ns = stop->user_total_ns;
	t->sys_total_ns = stop->sys_total_ns;
	if (!p->ignored && (r = s->ops->process_began(s->engine, p)) >= 0)
		r = s->ops->task_began(s->engine, t, NULL);
	if (r < 0)
		return r;
	/* What was done since the exec event is our window. */
	t->seen_ns = tl_now_ns();
	tl_resume(s, t, TL_GO_ON);
	return TL_OK;
}

int tl_session_launch(struct tl_session *s, const struct tl_launch *l, int *launch_error)
{
	struct pipes pipes;
	struct tl_stop stop;
	int r, err = 0;
	pid_t pid;

	*launch_error = 0;
	if (pipe2(pipes.go, O_CLOEXEC) < 0 || pipe2(pipes.failed, O_CLOEXEC) < 0)
		return tl_fail(-errno, "no pipe could be made: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return tl_fail(-errno, "fork failed: %s", strerror(errno));
	if (pid == 0)
		become(s, l, &pipes);
	close(pipes.go[0]);
	close(pipes.failed[1]);
	s->leader = pid;
	r = tl_ptrace_seize(pid, s->options.kill_with_us);
	close(pipes.go[1]);
	if (r < 0) {
		kill(pid, SIGKILL);
		tl_wait_task(pid, &stop);
		r = tl_fail(r, "this process may not trace its own child (%s): a sandbox or "
			       "container without ptrace; `trapline doctor' looks for the cause",
			    strerror(-r));
	} else {
		r = run_to_exec(s, pid, &stop);
	}
	if (read(pipes.failed[0], &err, sizeof err) == sizeof err) {
		*launch_error = err;
		r = tl_fail(-err, "%s cannot be run: %s", l->argv[0], strerror(err));
	} else if (r == TL_GONE) {
		r = tl_fail(-ESRCH, "%s was killed before it began", l->argv[0]);
	}
	close(pipes.failed[0]);
	return r == TL_OK ? began(s, pid, &stop) : r;
}
