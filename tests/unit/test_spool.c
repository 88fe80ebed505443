#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "event/recorder.h"
#include "profile.h"

enum { TASKS = 7, FUNCS = 40 };

/* Writes for ever, with frames open on several tasks at any moment. */
static void write_until_killed(const char *path, enum tl_dialect dialect)
{
	struct tl_writer_options o = {.output = path, .dialect = dialect};
	uint32_t task[TASKS], depth[TASKS] = {0};
	struct tl_writer *w;
	char name[32];

	if (tl_writer_open(&o, &w) < 0)
		_exit(1);
	for (int i = 0; i < FUNCS; i++) {
		snprintf(name, sizeof name, "f%d", i + 1);
		tl_writer_func(w, &(struct tl_func_info){.pkg = "main", .name = name});
	}
	for (int i = 0; i < TASKS; i++)
		task[i] = tl_writer_task(w, &(struct tl_task_info){.pid = 1, .tid = i});
	for (unsigned n = 0, x = 1;; n++) {
		int i = (x = x * 1103515245 + 12345) >> 16 & 0xffff;
		uint32_t *d = &depth[i % TASKS];

		if (*d == 0 || (*d < FUNCS && i & 1024))
			tl_writer_mark(w, task[i % TASKS], TL_MARK_ENTER, ++*d, 0, i, 1, i + 1);
		else
			tl_writer_mark(w, task[i % TASKS], TL_MARK_EXIT, (*d)--, 0, i, 1, i + 1);
		if (n % 500 == 0)
			tl_writer_flush(w);
		if (n == 5000)
			tl_writer_note(w, "command", "argv=x");
	}
}

static char *the_spool(const char *dir)
{
	char *pattern = folder_path(dir, "*.spool.*"), *s;
	glob_t g;

	if (glob(pattern, 0, NULL, &g)) {
		free(pattern);
		return NULL;
	}
	cr_assert_eq(g.gl_pathc, 1);
	s = strdup(g.gl_pathv[0]);
	globfree(&g);
	free(pattern);
	return s;
}

static pid_t start_child(const char *path, enum tl_dialect dialect)
{
	pid_t pid = fork();

	if (pid == 0)
		write_until_killed(path, dialect);
	cr_assert_gt(pid, 0);
	return pid;
}

static void wait_for_marks(const char *dir)
{
	char command[256];

	snprintf(command, sizeof command, "test -s '%s'/*.spool.*/marks", dir);
	for (int i = 0; i < 100 && system(command); i++)
		usleep(5000);
}

static void kill_and_recover(int round, uint64_t *marks)
{
	enum tl_dialect dialect = round % 5 == 4 ? TL_DIALECT_1997 : TL_DIALECT_IDS;
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), *spool;
	pid_t pid = start_child(path, dialect);

	usleep(rand() % 20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	spool = the_spool(dir);
	/* Killed before there was a head? Then nothing says it is a spool. */
	if (spool && tl_spool_recover(spool, NULL) == TL_OK) {
		free(profile_dprofpp(path, round % 2 ? "-S" : "-T"));
		if (dialect == TL_DIALECT_IDS) {
			struct profile p = profile_read(path);

			*marks += p.head_marks;
			cr_assert(profile_has(&p, " recovered=1"));
			profile_free(&p);
		}
		cr_assert_eq(folder_count(dir, "spool"), 0);
	} else if (spool) {
		char *head = folder_path(spool, "marks");

		cr_assert(access(head, F_OK) < 0, "%s", tl_error_text());
		free(head);
	}
	free(spool);
	free(path);
	folder_remove(dir);
}

Test(spool, a_recorder_killed_at_any_moment_leaves_a_valid_profile, .timeout = 100)
{
	uint64_t marks = 0;

	srand(getpid());
	for (int round = 0; round < 50; round++)
		kill_and_recover(round, &marks);
	cr_assert_gt(marks, 10000, "there was something to recover");
}

/* Every length that the files could have been cut at. */
Test(spool, cut_at_any_byte_it_still_is_a_profile, .timeout = 100)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), *spool, *marks,
	     command[512];
	pid_t pid = start_child(path, TL_DIALECT_IDS);
	struct stat st;

	wait_for_marks(dir);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	spool = the_spool(dir);
	marks = folder_path(dir, "copy/marks");
	free(path);
	path = folder_path(dir, "copy.out");
	snprintf(command, sizeof command, "rm -rf '%s/copy' && cp -r '%s' '%s/copy'", dir, spool,
		 dir);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(stat(marks, &st), 0);
	for (long n = st.st_size < 9000 ? st.st_size : 9000; n >= 0; n -= 1 + rand() % 60) {
		struct profile p;

		cr_assert_eq(system(command), 0);
		cr_assert_eq(truncate(marks, n), 0);
		free(marks);
		marks = folder_path(dir, "copy");
		cr_assert_eq(tl_spool_recover(marks, path), TL_OK, "%ld: %s", n, tl_error_text());
		free(marks);
		marks = folder_path(dir, "copy/marks");
		p = profile_read(path);
		profile_free(&p);
	}
	free(marks);
	free(spool);
	free(path);
	folder_remove(dir);
}

Test(spool, that_of_a_living_recorder_is_refused)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), *spool;
	pid_t pid = start_child(path, TL_DIALECT_IDS);

	wait_for_marks(dir);
	spool = the_spool(dir);
	cr_assert_eq(tl_spool_recover(spool, NULL), -EBUSY);
	cr_assert(strstr(tl_error_text(), "being recorded"), "%s", tl_error_text());
	cr_assert(access(path, F_OK) < 0);
	kill(pid, SIGKILL);
	/* Not reaped yet: dead all the same. */
	siginfo_t info;
	waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
	cr_assert_eq(tl_spool_recover(spool, NULL), TL_OK, "%s", tl_error_text());
	waitpid(pid, NULL, 0);
	free(spool);
	free(path);
	folder_remove(dir);
}

Test(spool, damage_in_the_middle_ends_the_task_there)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), *spool, *marks;
	pid_t pid = start_child(path, TL_DIALECT_IDS);
	struct profile p;
	struct stat st;
	int fd;

	wait_for_marks(dir);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	spool = the_spool(dir);
	marks = folder_path(spool, "marks");
	cr_assert_eq(stat(marks, &st), 0);
	fd = open(marks, O_WRONLY);
	for (long at = 700; at < st.st_size; at += 1777)
		cr_assert_eq(pwrite(fd, "\001\n+ 9999\n", 9, at), 9);
	close(fd);
	cr_assert_eq(tl_spool_recover(spool, NULL), TL_OK, "%s", tl_error_text());
	p = profile_read(path);
	profile_free(&p);
	free(marks);
	free(spool);
	free(path);
	folder_remove(dir);
}

Test(spool, what_is_none_is_refused_with_a_reason)
{
	char *dir = folder_new();

	cr_assert_lt(tl_spool_recover(dir, NULL), 0);
	cr_assert(strstr(tl_error_text(), "spool folder"), "%s", tl_error_text());
	cr_assert_eq(access(dir, F_OK), 0, "and left alone");
	cr_assert_lt(tl_spool_recover("/no/such", NULL), 0);
	folder_remove(dir);
}
