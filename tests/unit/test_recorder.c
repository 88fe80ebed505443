#include "event/recorder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "event/ring.h"
#include "profile.h"

static struct tl_costs flat(double ns)
{
	struct tl_costs c = {.valid = true};

	for (int part = 0; part < TL_COST_PARTS; part++)
		for (int cpu = 0; cpu < 2; cpu++)
			tl_costs_add(&c, cpu, part, 1000, ns);
	return c;
}

static struct tl_recorder *start(const char *path, bool raw, const struct tl_costs *costs)
{
	struct tl_recorder_options o = {.writer.output = path, .raw = raw, .cpu_avoid = -1};
	struct tl_recorder *r;

	cr_assert_eq(tl_recorder_start(&o, costs, &r), TL_OK, "%s", tl_error_text());
	return r;
}

static void push(struct tl_recorder *r, uint32_t task, enum tl_mark_kind kind, uint32_t func,
		 uint64_t ns)
{
	struct tl_record rec = {.task = task,
				.func = func,
				.kind = kind,
				.wall_ran_ns = ns,
				.cpu_ran_ns = ns,
				.cost = kind == TL_MARK_EXIT ? TL_COST_EXIT : TL_COST_ENTRY};

	tl_recorder_push(r, &rec);
}

static void calls(struct tl_recorder *r, uint32_t task, uint32_t func, int n, uint64_t inside_ns)
{
	for (int i = 0; i < n; i++) {
		push(r, task, TL_MARK_ENTER, func, 5000);
		push(r, task, TL_MARK_EXIT, func, inside_ns);
	}
}

static const struct tl_func_info a_func = {.pkg = "main", .name = "a", .module = "/m"};
static const struct tl_task_info a_task = {.pid = 1, .tid = 1, .comm = "c", .program = "p"};

Test(ring, keeps_the_order_of_records_and_messages)
{
	struct tl_ring *ring = tl_ring_new(8);
	const struct tl_ring_entry *e;
	int sent = 0, seen = 0;

	for (int round = 0; round < 100; round++) {
		size_t n;

		for (int i = 0; i < 5; i++, sent++) {
			if (sent % 3)
				tl_ring_push(ring, &(struct tl_record){.wall_ran_ns = sent});
			else
				tl_ring_send(ring, (void *)(uintptr_t)(sent + 1));
		}
		while ((n = tl_ring_peek(ring, &e))) {
			for (size_t i = 0; i < n; i++, seen++) {
				if (seen % 3)
					cr_assert(!e[i].message &&
						  e[i].rec.wall_ran_ns == (uint64_t)seen);
				else
					cr_assert_eq((uintptr_t)e[i].message, (uintptr_t)seen + 1);
			}
			tl_ring_release(ring, n);
		}
	}
	cr_assert_eq(seen, sent);
	tl_ring_free(ring);
}

Test(recorder, a_full_ring_loses_nothing)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_recorder *r = start(path, false, NULL);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	struct tl_recorder_totals totals;
	struct profile p;

	calls(r, t, f, 500000, 100);
	cr_assert_eq(tl_recorder_stop(r, NULL, &totals), TL_OK, "%s", tl_error_text());
	p = profile_read(path);
	cr_assert_eq(p.enters, 500000);
	cr_assert_eq(p.wall_ns, 500000ull * 5100);
	cr_assert_eq(totals.marks, 1000000);
	cr_assert_eq(totals.wall_ns, p.wall_ns);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, takes_out_what_stops_cost_and_says_how_much)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_costs costs = flat(1500), after = flat(1600);
	struct tl_recorder *r = start(path, false, &costs);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	struct tl_recorder_totals totals;
	struct profile p;
	char *out;

	calls(r, t, f, 1000, 4000);
	cr_assert_eq(tl_recorder_stop(r, &after, &totals), TL_OK, "%s", tl_error_text());
	p = profile_read(path);
	cr_assert_eq(p.wall_ns, 1000 * (2000 + 1000) + 1500);
	cr_assert_eq(totals.overhead_wall_ns, 1000 * 6000 - 1500);
	cr_assert_eq(totals.clamps, 0);
	cr_assert(profile_has(&p, "#! overhead when=before part=into_entry clock=wall "
				  "mean=1500.0 spread=0.0 n=1\n"));
	cr_assert(profile_has(&p, "#! overhead when=after part=out_of_exit clock=cpu "
				  "mean=1600.0 spread=0.0 n=1\n"));
	cr_assert(profile_has(&p, "raw_wall=9000000 "));
	cr_assert(profile_has(&p, "$over_utime=0; $over_stime=0; $over_rtime=0;\n"));
	out = profile_dprofpp(path, "-S -r");
	cr_assert(!out || !strcmp(out, "main::a x 1000  \t0.001000000s\n"), "%s", out);
	free(out);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, an_empty_function_a_million_times_takes_no_time)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_costs costs = flat(1500);
	struct tl_recorder *r = start(path, false, &costs);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	struct tl_recorder_totals totals;
	struct profile p;
	char *out;

	for (int i = 0; i < 1000000; i++) {
		push(r, t, TL_MARK_ENTER, f, 5000);
		push(r, t, TL_MARK_EXIT, f, i % 2 ? 3400 : 2600);
	}
	cr_assert_eq(tl_recorder_stop(r, NULL, &totals), TL_OK, "%s", tl_error_text());
	p = profile_read(path);
	cr_assert_eq(p.enters, 1000000);
	cr_assert_eq(totals.clamps, 0);
	out = profile_dprofpp(path, "-S -r");
	cr_assert(!out || !strcmp(out, "main::a x 1000000  \t0.000000000s\n"), "%s", out);
	free(out);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, raw_leaves_it_to_dprofpp)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_costs costs = flat(1500);
	struct tl_recorder *r = start(path, true, &costs);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	struct profile p;
	char *out;

	calls(r, t, f, 1000, 4000);
	cr_assert_eq(tl_recorder_stop(r, NULL, NULL), TL_OK, "%s", tl_error_text());
	p = profile_read(path);
	cr_assert_eq(p.wall_ns, 9000000);
	cr_assert(profile_has(&p, "$over_utime=0; $over_stime=6000; $over_rtime=6000;\n"
				  "$over_tests=1;\n"));
	cr_assert(profile_has(&p, " raw=1\n"));
	out = profile_dprofpp(path, "-S -r");
	cr_assert(!out || !strcmp(out, "main::a x 1000  \t0.001000000s\n"), "%s", out);
	free(out);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, messages_keep_their_place_among_records)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out"), name[32];
	struct tl_recorder *r = start(path, false, NULL);
	struct tl_recorder_totals totals;
	struct profile p;

	for (int i = 0; i < 2000; i++) {
		struct tl_func_info info = {.pkg = "main", .name = name};
		uint32_t t, f;

		snprintf(name, sizeof name, "f%d", i);
		t = tl_recorder_task(r, &a_task);
		f = tl_recorder_func(r, &info);
		memset(name, 'x', sizeof name - 1);
		calls(r, t, f, i % 7, 10);
		push(r, t, TL_MARK_ENTER, f, 1);
		if (i % 2)
			tl_recorder_task_end(r, t, "exec");
		tl_recorder_how(r, f, TL_HOW_ESTIMATE, TL_SELF_MEASURED);
		tl_recorder_line(r, f, "file.c", i);
		tl_recorder_note(r, "k", "v=1");
	}
	cr_assert_eq(tl_recorder_stop(r, NULL, &totals), TL_OK, "%s", tl_error_text());
	cr_assert_eq(totals.tasks, 2000);
	cr_assert_eq(totals.lost, 0);
	p = profile_read(path);
	cr_assert_eq(p.tasks, 2000);
	cr_assert_eq(p.forced, 2000);
	for (int i = 0; i < 2000; i++)
		cr_assert_eq(p.calls[i + 2], (uint64_t)i % 7 + 1);
	cr_assert(profile_has(&p, "#! func 7d1 module= addr=0x0 file=file.c line=1999 "
				  "how=estimate self=measured\n& 7d1 main f1999\n"));
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, what_was_recorded_is_on_its_way_within_a_second_or_two)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_recorder *r = start(path, false, NULL);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	char command[256];

	calls(r, t, f, 10, 10);
	snprintf(command, sizeof command, "grep -q -a '^[+] 2' '%s'/tmon.out.spool.*/marks", dir);
	for (int i = 0; i < 30 && system(command); i++)
		usleep(100000);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(tl_recorder_stop(r, NULL, NULL), TL_OK);
	free(path);
	folder_remove(dir);
}

Test(recorder, a_cancelled_one_leaves_nothing)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_recorder *r = start(path, false, NULL);

	calls(r, tl_recorder_task(r, &a_task), tl_recorder_func(r, &a_func), 10, 10);
	tl_recorder_cancel(r);
	cr_assert_eq(folder_count(dir, "tmon"), 0);
	free(path);
	folder_remove(dir);
}

Test(recorder, a_write_error_is_told_while_running)
{
	char *dir = folder_new(), *path = folder_path(dir, "tmon.out");
	struct tl_recorder *r = start(path, false, NULL);
	uint32_t t = tl_recorder_task(r, &a_task), f = tl_recorder_func(r, &a_func);
	struct rlimit l = {300000, 300000};
	struct profile p;

	setrlimit(RLIMIT_FSIZE, &l);
	calls(r, t, f, 100000, 10);
	for (int i = 0; i < 30 && tl_recorder_error(r) == TL_OK; i++)
		usleep(100000);
	cr_assert_eq(tl_recorder_error(r), -EFBIG);
	cr_assert_lt(tl_recorder_stop(r, NULL, NULL), 0);
	p = profile_read(path);
	cr_assert_gt(p.enters, 1000);
	profile_free(&p);
	free(path);
	folder_remove(dir);
}

Test(recorder, an_output_that_cannot_be_is_known_before_the_target_starts)
{
	struct tl_recorder_options o = {.writer.output = "/no/such/folder/tmon.out"};
	struct tl_recorder *r;

	cr_assert_lt(tl_recorder_start(&o, NULL, &r), 0);
	cr_assert(strstr(tl_error_text(), "/no/such/folder"), "%s", tl_error_text());
}
