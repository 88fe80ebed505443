#include "event/writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "profile.h"

static struct tl_writer *open_at(const char *path, enum tl_dialect dialect, uint64_t max)
{
	struct tl_writer_options o = {.output = path, .dialect = dialect, .max_size = max};
	struct tl_writer *w;

	cr_assert_eq(tl_writer_open(&o, &w), TL_OK, "%s", tl_error_text());
	return w;
}

static uint32_t func(struct tl_writer *w, const char *pkg, const char *name)
{
	return tl_writer_func(w, &(struct tl_func_info){.pkg = pkg,
							.name = name,
							.module = "/bin/a b",
							.addr = 0x1136,
							.file = "a.c",
							.line = 7});
}

static uint32_t task(struct tl_writer *w, int tid)
{
	return tl_writer_task(w, &(struct tl_task_info){100, tid, 5, "a thread", "prog"});
}

static void enter(struct tl_writer *w, uint32_t t, uint32_t f, uint64_t ns)
{
	tl_writer_mark(w, t, TL_MARK_ENTER, f, 0, ns, ns / 2, ns * 2);
}

static void leave(struct tl_writer *w, uint32_t t, uint32_t f, uint64_t ns)
{
	tl_writer_mark(w, t, TL_MARK_EXIT, f, 0, ns, ns / 2, ns * 2);
}

static void finish(struct tl_writer *w)
{
	cr_assert_eq(tl_writer_finish(w), TL_OK, "%s", tl_error_text());
}

static void small_run(struct tl_writer *w)
{
	uint32_t a = func(w, "main", "a"), b = func(w, "libc", "b(int, char const*)");
	uint32_t unused, t = task(w, 100), u = task(w, 101);

	unused = func(w, "main", "unused");
	enter(w, t, a, 1000);
	enter(w, u, b, 100);
	enter(w, t, b, 2000);
	leave(w, t, b, 3000000);
	leave(w, u, b, 50);
	tl_writer_how(w, a, TL_HOW_BOUND, TL_SELF_UPPER);
	tl_writer_how(w, unused, TL_HOW_BOUND, TL_SELF_UPPER);
	leave(w, t, a, 4000000);
	tl_writer_task_end(w, t, "exit");
	tl_writer_note(w, "command", "argv=x");
	finish(w);
}

Test(writer, a_profile_says_what_was_marked)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), *out;
	struct profile p;

	small_run(open_at(path, TL_DIALECT_IDS, 0));
	p = profile_read(path);
	cr_assert_eq(p.enters, 3);
	cr_assert_eq(p.tasks, 2);
	cr_assert_eq(p.wall_ns, 2 * (1000 + 2000 + 3000000 + 4000000 + 150));
	cr_assert(profile_has(&p, "PART2\n#! trapline 1\n#! run marks=6 tasks=2 "));
	cr_assert(profile_has(&p, "\n#! command argv=x\n"));
	cr_assert(profile_has(&p, "\n#! func 2 module=/bin/a%20b addr=0x1136 file=a.c line=7 "
				  "how=bound self=upper\n& 2 main a\n"));
	cr_assert(profile_has(&p, "\n& 3 libc b(int,char_const*)\n"));
	cr_assert(!profile_has(&p, "unused"));
	cr_assert(
	    profile_has(&p, "\n#! task pid=100 tid=101 start=5 comm=a%20thread program=prog\n"));
	cr_assert(profile_has(&p, "#! end how=exit forced=0 unwound=0 lost=0\n"));
	cr_assert_eq(folder_count(dir, "spool"), 0, "the spool is gone");
	out = profile_dprofpp(path, "-S");
	cr_assert(!out || strstr(out, "main::a x 1"), "%s", out);
	cr_assert(!out || strstr(out, "  libc::b(int,char_const*) x 1"), "%s", out);
	free(out);
	out = profile_dprofpp(path, "-T");
	cr_assert(!out || !strcmp(out, "main::a\n   libc::b(int,char_const*)\n"
				       "libc::b(int,char_const*)\n"));
	free(out);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(writer, both_dialects_give_dprofpp_the_same)
{
	static const char *const options[] = {"", "-S", "-T", "-r", "-I", "-s -a", "-t"};
	char *dir = folder_new(), *ids = folder_path(dir, "ids"), *old = folder_path(dir, "old");

	small_run(open_at(ids, TL_DIALECT_IDS, 0));
	small_run(open_at(old, TL_DIALECT_1997, 0));
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		char *a = profile_dprofpp(ids, options[i]), *b = profile_dprofpp(old, options[i]);

		cr_assert(!a || !strcmp(a, b), "%s:\n%s\n%s", options[i], a, b);
		free(a);
		free(b);
	}
	free(ids);
	free(old);
	folder_remove(dir);
}

Test(writer, an_existing_output_is_kept_as_old)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), was[32] = "";
	FILE *f = fopen(path, "w");
	struct profile p;

	fputs("before", f);
	fclose(f);
	small_run(open_at(path, TL_DIALECT_IDS, 0));
	p = profile_read(path);
	profile_free(&p);
	free(path);
	path = folder_path(dir, "tmon.out.old");
	f = fopen(path, "r");
	cr_assert(f && fgets(was, sizeof was, f) && !strcmp(was, "before"));
	fclose(f);
	free(path);
	folder_remove(dir);
}

Test(writer, what_is_open_at_the_end_is_closed_and_flagged)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	uint32_t a = func(w, "main", "a"), b = func(w, "main", "b"), t = task(w, 1);
	struct profile p;

	tl_writer_mark(w, t, TL_MARK_ENTER, a, TL_MARK_SYNTHETIC, 1, 1, 1);
	enter(w, t, b, 10);
	tl_writer_mark(w, t, TL_MARK_PAUSE, 0, 0, 5, 5, 500);
	tl_writer_task_end(w, t, "killed");
	finish(w);
	p = profile_read(path);
	cr_assert_eq(p.forced, 2);
	cr_assert_eq(p.synthetic, 1);
	cr_assert_eq(p.wall_ns, 521, "the pause is in the time of what was open");
	cr_assert(profile_has(&p, "#! s\n+ 2\n"));
	cr_assert(profile_has(&p, "@ 5 5 500\n#! f\n- 3\n#! f\n- 2\n#! end how=killed forced=2 "));
	free(profile_dprofpp(path, ""));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(writer, an_exit_further_out_unwinds_what_is_inside)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	uint32_t a = func(w, "main", "a"), b = func(w, "main", "b"), t = task(w, 1);
	struct tl_writer_totals totals;
	struct profile p;

	enter(w, t, a, 1);
	enter(w, t, b, 1);
	enter(w, t, b, 1);
	leave(w, t, a, 7);
	leave(w, t, a, 0);
	enter(w, t, b, 0);
	leave(w, t, a, 0);
	leave(w, 77, a, 0);
	leave(w, t, 99, 0);
	leave(w, t, b, 0);
	tl_writer_totals(w, &totals);
	cr_assert_eq(totals.lost, 4);
	finish(w);
	p = profile_read(path);
	cr_assert_eq(p.enters, 4);
	cr_assert_eq(p.unwound, 2);
	cr_assert(profile_has(&p, " lost=3\n"));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(writer, names_are_tokens_that_dprofpp_prints)
{
	static const char *const names[][2] = {
	    {"operator new(unsigned long)", "operator_new(unsigned_long)"},
	    {"f(int, char const *)", "f(int,char_const*)"},
	    {"tab\there", "tab_here"},
	    {"bell\ahere", "bell?here"},
	    {"", "?"},
	    {"vector<int, alloc<int> >::push", "vector<int,alloc<int>>::push"},
	    {"f(int) const &", "f(int)_const&"},
	};
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), line[128];
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	uint32_t t = task(w, 1);
	struct profile p;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		uint32_t f = func(w, "", names[i][0]);

		enter(w, t, f, 1);
		leave(w, t, f, 1);
	}
	finish(w);
	p = profile_read(path);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(line, sizeof line, "& %zx main %s\n", i + 2, names[i][1]);
		cr_assert(profile_has(&p, line), "%s", line);
	}
	free(profile_dprofpp(path, ""));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(writer, notes_cannot_break_out_of_their_line)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	struct tl_strbuf b = {0};
	struct profile p;

	tl_writer_encode(&b, "a b=c%\nd\177\303\274");
	cr_assert_str_eq(tl_strbuf_text(&b), "a%20b%3dc%25%0ad%7f\303\274");
	tl_strbuf_fini(&b);
	tl_writer_note(w, "command", "x\nexit 1;");
	finish(w);
	p = profile_read(path);
	cr_assert(profile_has(&p, "#! command x?exit 1;\n"));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(writer, a_task_is_renamed_in_place_or_on_a_line_of_its_own)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	uint32_t f = func(w, "main", "a"), t = task(w, 1);
	struct profile p;

	tl_writer_task_name(w, t, "early", "e");
	enter(w, t, f, 1);
	tl_writer_task_name(w, t, "late", "l");
	leave(w, t, f, 1);
	finish(w);
	p = profile_read(path);
	cr_assert_eq(p.tasks, 1);
	cr_assert(profile_has(&p, "#! task pid=100 tid=1 start=5 comm=early program=e\n@"));
	cr_assert(profile_has(&p, "+ 2\n#! name comm=late program=l\n@"));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

static void many_marks(struct tl_writer *w, int n)
{
	uint32_t f[3], t[5];

	for (int i = 0; i < 3; i++)
		f[i] = func(w, "main", (const char *[]){"x", "y", "z"}[i]);
	for (int i = 0; i < 5; i++)
		t[i] = task(w, 100 + i);
	for (int i = 0; i < n; i++) {
		for (int d = 0; d < 3; d++)
			enter(w, t[i % 5], f[d], 1000 + i);
		for (int d = 2; d >= 0; d--)
			leave(w, t[i % 5], f[d], 1000 + i);
		if (i % 1000 == 0)
			tl_writer_flush(w);
	}
}

static void limited(enum tl_dialect dialect)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, dialect, 100000);
	struct stat st;

	many_marks(w, 100000);
	cr_assert(tl_writer_truncated(w));
	finish(w);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert(st.st_size <= 100000 && st.st_size > 50000, "%ld", (long)st.st_size);
	free(profile_dprofpp(path, "-S"));
	if (dialect == TL_DIALECT_IDS) {
		struct profile p = profile_read(path);

		cr_assert(profile_has(&p, "\n#! truncated reason=max-size\n"));
		cr_assert(profile_has(&p, "how=truncated"));
		profile_free(&p);
	}
	free(path);
	folder_remove(dir);
}

Test(writer, a_limit_of_size_ends_the_profile_validly)
{
	limited(TL_DIALECT_IDS);
	limited(TL_DIALECT_1997);
}

Test(writer, a_pipe_gets_the_profile_at_the_end)
{
	char *dir = folder_new(), *path = folder_path(dir, "fifo");
	char *copy = folder_path(dir, "copy"), command[512];
	struct tl_writer *w;
	struct profile p;

	setenv("TMPDIR", dir, 1);
	cr_assert_eq(mkfifo(path, 0600), 0);
	w = open_at(path, TL_DIALECT_IDS, 0);
	cr_assert_eq(folder_count(dir, "fifo.spool."), 1);
	snprintf(command, sizeof command, "cat '%s' >'%s'", path, copy);
	if (fork() == 0)
		_exit(system(command) != 0);
	many_marks(w, 20000);
	finish(w);
	wait(NULL);
	p = profile_read(copy);
	cr_assert_eq(p.enters, 60000);
	cr_assert_eq(folder_count(dir, "spool"), 0);
	profile_free(&p);
	free(path);
	free(copy);
	folder_remove(dir);
}

Test(writer, a_pipe_nobody_reads_is_an_error_and_not_death)
{
	char *dir = folder_new(), path[64];
	struct tl_writer *w;
	int fds[2];

	setenv("TMPDIR", dir, 1);
	cr_assert_eq(pipe(fds), 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fds[1]);
	w = open_at(path, TL_DIALECT_IDS, 0);
	close(fds[0]);
	many_marks(w, 10);
	cr_assert_eq(tl_writer_finish(w), -EPIPE);
	cr_assert(strstr(tl_error_text(), "trapline recover"), "%s", tl_error_text());
	cr_assert_eq(folder_count(dir, "spool"), 1, "and the recording is kept");
	folder_remove(dir);
}

Test(writer, nowhere_takes_a_profile)
{
	char *dir = folder_new();

	setenv("TMPDIR", dir, 1);
	small_run(open_at("/dev/null", TL_DIALECT_IDS, 0));
	cr_assert_eq(folder_count(dir, "spool"), 0);
	folder_remove(dir);
}

Test(writer, where_nothing_can_be_written_is_known_at_once)
{
	static const char *const paths[] = {"/proc/tmon.out", "/no/such/folder/tmon.out", "/tmp",
					    "/sys/kernel/tmon.out"};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct tl_writer_options o = {.output = paths[i]};
		struct tl_writer *w;

		cr_assert_lt(tl_writer_open(&o, &w), 0, "%s", paths[i]);
		cr_assert(strstr(tl_error_text(), "-o"), "says what to do: %s", tl_error_text());
	}
}

/* Fills a filesystem of 4 MB, where we may mount one: seen by this process alone. */
Test(writer, a_full_disk_leaves_a_valid_profile)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w;
	struct profile p;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, "size=4m"))
		cr_skip("no right to mount a tmpfs here");
	w = open_at(path, TL_DIALECT_IDS, 0);
	many_marks(w, 200000);
	cr_expect_eq(tl_writer_flush(w), -ENOSPC);
	cr_expect_lt(tl_writer_finish(w), 0);
	cr_expect(strstr(tl_error_text(), "free some space"), "%s", tl_error_text());
	p = profile_read(path);
	cr_expect_gt(p.enters, 3000);
	cr_expect(profile_has(&p, "#! truncated reason=space\n"));
	free(profile_dprofpp(path, "-S"));
	profile_free(&p);
	cr_assert_eq(umount2(dir, MNT_DETACH), 0);
	free(path);
	folder_remove(dir);
}

Test(writer, a_limit_on_file_size_leaves_a_valid_profile)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct rlimit l = {600000, 600000};
	struct tl_writer *w;
	struct profile p;

	signal(SIGXFSZ, SIG_IGN);
	w = open_at(path, TL_DIALECT_IDS, 0);
	setrlimit(RLIMIT_FSIZE, &l);
	many_marks(w, 100000);
	cr_assert_eq(tl_writer_flush(w), -EFBIG);
	cr_assert_lt(tl_writer_finish(w), 0);
	p = profile_read(path);
	cr_assert_gt(p.enters, 3000);
	free(profile_dprofpp(path, "-S"));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

static int descriptors(void)
{
	return folder_count("/proc/self/fd", "");
}

Test(writer, many_tasks_take_no_descriptors_and_leave_no_memory)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_writer *w = open_at(path, TL_DIALECT_IDS, 0);
	uint32_t f = func(w, "main", "f");
	int before = descriptors();
	struct rusage ru, later;
	struct profile p;

	for (int i = 0; i < 50000; i++) {
		uint32_t t = task(w, 1000 + i);

		enter(w, t, f, 1);
		leave(w, t, f, 1);
		tl_writer_task_end(w, t, "exit");
		if (i == 5000)
			getrusage(RUSAGE_SELF, &ru);
	}
	getrusage(RUSAGE_SELF, &later);
	cr_assert_eq(descriptors(), before);
#ifndef __SANITIZE_ADDRESS__ /* which holds freed memory back */
	cr_assert_lt(later.ru_maxrss - ru.ru_maxrss, 500, "kB for 45,000 dead tasks");
#endif
	finish(w);
	p = profile_read(path);
	cr_assert_eq(p.tasks, 50000);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}
