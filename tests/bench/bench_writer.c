/* bench_writer - how many marks a second the writer takes, alone and behind the ring.
 *
 * Usage: bench_writer [MARKS [FOLDER]]; not part of the checks. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "event/recorder.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void writer_alone(const char *output, enum tl_dialect dialect, long marks)
{
	struct tl_writer_options o = {.output = output, .dialect = dialect};
	struct tl_task_info task = {.pid = 1, .tid = 1, .comm = "bench", .program = "bench"};
	struct tl_func_info func = {.pkg = "main", .name = "empty"};
	struct tl_writer *w;
	double t0, t1, t2;

	if (tl_writer_open(&o, &w) < 0)
		exit((fprintf(stderr, "%s\n", tl_error_text()), 1));
	tl_writer_task(w, &task);
	for (int i = 0; i < 300; i++)
		tl_writer_func(w, &func);
	t0 = now();
	for (long i = 0; i < marks; i += 2) {
		uint32_t f = 1 + i / 2 % 300;

		tl_writer_mark(w, 1, TL_MARK_ENTER, f, 0, 1000 + i % 777, i % 3, 1100 + i % 991);
		tl_writer_mark(w, 1, TL_MARK_EXIT, f, 0, 300 + i % 55, 0, 321 + i % 99);
	}
	tl_writer_flush(w);
	t1 = now();
	if (tl_writer_finish(w) < 0)
		exit((fprintf(stderr, "%s\n", tl_error_text()), 1));
	t2 = now();
	printf("%s: writer alone %.1f million marks/s, assembling %.1f\n",
	       dialect == TL_DIALECT_IDS ? "ids" : "1997", marks / (t1 - t0) * 1e-6,
	       marks / (t2 - t1) * 1e-6);
}

static void recorder(const char *output, long marks)
{
	struct tl_recorder_options o = {.writer.output = output, .cpu_avoid = -1};
	struct tl_task_info task = {.pid = 1, .tid = 1, .comm = "bench", .program = "bench"};
	struct tl_func_info func = {.pkg = "main", .name = "empty"};
	struct tl_record rec = {.task = 1, .func = 1, .wall_ran_ns = 9000, .cpu_ran_ns = 8000};
	struct tl_costs costs = {.valid = true};
	struct tl_recorder *r;
	double t0, t1;

	for (int part = 0; part < TL_COST_PARTS; part++)
		for (int i = 0; i < 1000; i++) {
			tl_costs_add(&costs, i % 2, part, 1000, 1500);
			tl_costs_add(&costs, i % 2, part, 30000, 3500);
		}
	if (tl_recorder_start(&o, &costs, &r) < 0)
		exit((fprintf(stderr, "%s\n", tl_error_text()), 1));
	tl_recorder_task(r, &task);
	tl_recorder_func(r, &func);
	t0 = now();
	for (long i = 0; i < marks; i++) {
		rec.kind = i % 2 ? TL_MARK_EXIT : TL_MARK_ENTER;
		rec.cost = i % 2 ? TL_COST_EXIT : TL_COST_ENTRY;
		rec.user_total_ns += 5000;
		rec.sys_total_ns += 3000;
		tl_recorder_push(r, &rec);
	}
	t1 = now();
	if (tl_recorder_stop(r, NULL, NULL) < 0)
		exit((fprintf(stderr, "%s\n", tl_error_text()), 1));
	printf("recorder, corrected: %.1f million records/s\n", marks / (t1 - t0) * 1e-6);
}

int main(int argc, char **argv)
{
	long marks = argc > 1 ? atol(argv[1]) : 10000000;
	char output[4096];

	snprintf(output, sizeof output, "%s/bench_writer.tmon", argc > 2 ? argv[2] : "/tmp");
	writer_alone(output, TL_DIALECT_IDS, marks);
	writer_alone(output, TL_DIALECT_1997, marks / 4);
	recorder(output, marks);
	unlink(output);
	snprintf(output, sizeof output, "%s/bench_writer.tmon.old", argc > 2 ? argv[2] : "/tmp");
	unlink(output);
	return 0;
}
