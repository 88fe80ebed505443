/* TEMPORARY: stands in for parts that are on their way, so that the command line links
 * and can be tested by itself. To be deleted when the last of them is in: what is
 * defined here wins over the library's, as an archive's member is not even looked
 * at for a symbol that has a definition. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/commands.h"
#include "engine/run.h"
#include "target/procfs.h"

#define WEAK __attribute__((weak))

static int pending(char **argv)
{
	tl_say("%s is not available in this version", argv[0]);
	return TL_EXIT_FAILURE;
}

#define PENDING(name)                                                                              \
	WEAK int tl_cmd_##name(int argc, char **argv)                                              \
	{                                                                                          \
		(void)argc;                                                                        \
		return pending(argv);                                                              \
	}
PENDING(report)
PENDING(dprofpp)
PENDING(summarize)
PENDING(diff)
PENDING(merge)
PENDING(export)
PENDING(list)
PENDING(calibrate)
PENDING(doctor)

WEAK int tl_report_file(const char *path, FILE *out)
{
	fprintf(out, "(the report of %s)\n", path);
	return 0;
}

WEAK int tl_spool_recover(const char *dir, const char *output)
{
	(void)output;
	return tl_fail(-ENOENT, "%s: not a spool folder", dir);
}

struct tl_select {
	int unused;
};
WEAK struct tl_select *tl_select_new(void)
{
	return tl_calloc(1, sizeof(struct tl_select));
}
WEAK int tl_select_add(struct tl_select *s, enum tl_select_kind kind, const char *pattern)
{
	(void)s;
	(void)kind;
	return *pattern ? TL_OK : tl_fail(-EINVAL, "an empty pattern matches nothing; give a name");
}
WEAK void tl_select_free(struct tl_select *s)
{
	free(s);
}

WEAK int tl_proc_status(pid_t tid, struct tl_proc_status *out)
{
	char path[64];
	FILE *f;

	memset(out, 0, sizeof *out);
	snprintf(path, sizeof path, "/proc/%d/comm", tid);
	f = fopen(path, "re");
	if (!f)
		return TL_GONE;
	if (!fgets(out->comm, sizeof out->comm, f))
		out->comm[0] = '\0';
	fclose(f);
	out->comm[strcspn(out->comm, "\n")] = '\0';
	return TL_OK;
}
WEAK int tl_proc_exe(pid_t tid, char *buf, size_t n)
{
	char path[64];
	ssize_t got;

	snprintf(path, sizeof path, "/proc/%d/exe", tid);
	got = readlink(path, buf, n - 1);
	buf[got < 0 ? 0 : got] = '\0';
	return TL_OK;
}

/* Runs the program, measures nothing. */
WEAK int tl_run(const struct tl_run_options *o, struct tl_run_result *result)
{
	int pipefd[2], error = 0, status;
	pid_t pid;

	memset(result, 0, sizeof *result);
	result->attached = o->n_pids > 0;
	result->complete = true;
	if (result->attached)
		return TL_OK;
	if (pipe2(pipefd, O_CLOEXEC) != 0)
		return tl_fail(-errno, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		execvp(o->argv[0], o->argv);
		error = errno;
		_exit(write(pipefd[1], &error, sizeof error) < 0);
	}
	close(pipefd[1]);
	if (read(pipefd[0], &error, sizeof error) != sizeof error)
		error = 0;
	close(pipefd[0]);
	waitpid(pid, &status, 0);
	if (error) {
		result->launch_error = error;
		return tl_fail(-error, "%s: %s", o->argv[0],
			       error == ENOENT ? "program not found" : strerror(error));
	}
	result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	result->killed_by_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	result->path = o->output;
	return TL_OK;
}
