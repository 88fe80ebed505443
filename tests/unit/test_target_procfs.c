#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/err.h"
#include "target/procfs.h"

Test(procfs, maps_find_our_own_code_and_stack)
{
	struct tl_maps maps;
	bool code = false, stack = false;
	uint64_t here = (uint64_t)(uintptr_t)&tl_maps_read;
	struct stat st;

	cr_assert_eq(tl_maps_read(getpid(), &maps), TL_OK);
	cr_assert_eq(stat("/proc/self/exe", &st), 0);
	for (size_t i = 0; i < maps.n; i++) {
		const struct tl_mapping *m = &maps.at[i];

		cr_expect_lt(m->lo.u, m->hi.u);
		cr_expect(i == 0 || m[-1].hi.u <= m->lo.u);
		stack |= !strcmp(m->path, "[stack]") && m->writable && !m->executable && !m->inode;
		if (here < m->lo.u || here >= m->hi.u)
			continue;
		code = true;
		cr_expect(m->readable && m->executable && !m->writable && !m->shared);
		cr_expect_eq(m->inode, st.st_ino);
		cr_expect_eq(m->path[0], '/');
	}
	cr_expect(code && stack);
	tl_maps_fini(&maps);
}

Test(procfs, maps_of_a_deleted_file_with_a_newline_in_its_name)
{
	char path[] = "/tmp/tl a\nb.XXXXXX";
	int fd = mkstemp(path);
	struct tl_maps maps;
	bool found = false;

	cr_assert_eq(ftruncate(fd, 8192), 0);
	cr_assert_neq(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096), MAP_FAILED);
	unlink(path);
	cr_assert_eq(tl_maps_read(getpid(), &maps), TL_OK);
	for (size_t i = 0; i < maps.n; i++)
		if (!strcmp(maps.at[i].path, path)) {
			found = true;
			cr_expect(maps.at[i].deleted && maps.at[i].shared);
			cr_expect_eq(maps.at[i].offset, 4096);
		}
	cr_expect(found);
	tl_maps_fini(&maps);
}

Test(procfs, status_of_a_process_whose_name_deceives)
{
	struct tl_proc_status st;
	sigset_t set;

	prctl(PR_SET_NAME, "a) R 1\n\\b (c");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR2, SIG_IGN);
	cr_assert_eq(tl_proc_status(getpid(), &st), TL_OK);
	cr_expect_str_eq(st.comm, "a) R 1\n\\b (c");
	cr_expect_eq(st.state, 'R');
	cr_expect_eq(st.tgid, getpid());
	cr_expect_eq(st.ppid, getppid());
	cr_expect_eq(st.uid, getuid());
	cr_expect_eq(st.euid, geteuid());
	cr_expect_geq(st.threads, 1);
	cr_expect(st.sig_blocked >> (SIGUSR1 - 1) & 1);
	cr_expect(st.sig_ignored >> (SIGUSR2 - 1) & 1);
	cr_expect_not(st.sig_ignored >> (SIGUSR1 - 1) & 1);
}

static void *sleeper(void *fd)
{
	char c;

	return read(*(int *)fd, &c, 1) < 0 ? NULL : fd;
}

Test(procfs, tasks_are_the_threads)
{
	int pipefd[2];
	pthread_t t[3];
	pid_t *tids;
	size_t n, base;

	cr_assert_eq(tl_proc_tasks(getpid(), &tids, &base), TL_OK);
	free(tids);
	cr_assert_eq(pipe(pipefd), 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, sleeper, &pipefd[0]);
	cr_assert_eq(tl_proc_tasks(getpid(), &tids, &n), TL_OK);
	cr_expect_eq(n, base + 3);
	cr_expect_eq(tids[0], getpid());
	free(tids);
	close(pipefd[1]);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

Test(procfs, a_zombie_has_a_state_but_no_map)
{
	struct tl_proc_status st;
	struct tl_maps maps;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	cr_expect_eq(tl_maps_read(pid, &maps), TL_GONE);
	cr_expect_eq(tl_proc_status(pid, &st), TL_OK);
	cr_expect_eq(st.state, 'Z');
	waitpid(pid, NULL, 0);
}

Test(procfs, what_vanished_is_gone_not_failed)
{
	struct tl_proc_status st;
	struct tl_maps maps;
	char buf[64];
	pid_t pid = fork(), *tids;
	size_t n;

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	cr_expect_eq(tl_maps_read(pid, &maps), TL_GONE);
	cr_expect_eq(tl_proc_status(pid, &st), TL_GONE);
	cr_expect_eq(tl_proc_tasks(pid, &tids, &n), TL_GONE);
	cr_expect_eq(tl_proc_exe(pid, buf, sizeof buf), TL_GONE);
}

Test(procfs, exe_is_our_file)
{
	char buf[4096], *real = realpath("/proc/self/exe", NULL);

	cr_expect_eq(tl_proc_exe(getpid(), buf, sizeof buf), TL_OK);
	cr_expect_str_eq(buf, real);
	free(real);
}
