#include "engine/run.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "engine/calibrate.h"
#include "engine/exact.h"
#include "event/recorder.h"

struct run {
	const struct tl_run_options *options;
	struct tl_run_result *result;
	int status;	   /* of the tracing thread */
	char error[1024];  /* its text: errors belong to threads */
	sigset_t mask;	   /* as we found it */
	struct tl_costs before, after;
	struct tl_recorder *recorder;
	struct tl_session session;
	struct tl_exact exact;
	int cpu;
	char *unmatched; /* why nothing matched at first, or NULL */
};

static uint32_t sink_func(void *ctx, const struct tl_func_info *info)
{
	return tl_recorder_func(ctx, info);
}

static uint32_t sink_task(void *ctx, const struct tl_task_info *info)
{
	return tl_recorder_task(ctx, info);
}

static void sink_task_end(void *ctx, uint32_t task, const char *how)
{
	tl_recorder_task_end(ctx, task, how);
}

static void sink_push(void *ctx, const struct tl_record *rec, uint64_t seen_ns)
{
	(void)seen_ns;
	tl_recorder_push(ctx, rec);
}

static const struct tl_sink recorder_sink = {sink_func, sink_task, sink_task_end, sink_push};

static void note_command(struct run *run)
{
	const struct tl_run_options *o = run->options;
	struct tl_strbuf b = {0};

	for (size_t i = 0; o->argv && o->argv[i]; i++) {
		tl_strbuf_printf(&b, "%sarg=", i ? " " : "");
		tl_writer_encode(&b, o->argv[i]);
	}
	for (size_t i = 0; i < o->n_pids; i++)
		tl_strbuf_printf(&b, "%spid=%d", i ? " " : "", (int)o->pids[i]);
	tl_recorder_note(run->recorder, "command", tl_strbuf_text(&b));
	if (o->baseline) {
		tl_strbuf_clear(&b);
		tl_strbuf_puts(&b, "func=");
		tl_writer_encode(&b, o->baseline);
		tl_recorder_note(run->recorder, "baseline", tl_strbuf_text(&b));
	}
	tl_strbuf_fini(&b);
}

/* What only the engine knows, for the head of the file. */
static void note_functions(struct run *run)
{
	struct tl_strbuf b = {0};
	size_t pos = 0;
	uint64_t key;
	void *v;

	while (tl_map_next(&run->exact.functions, &pos, &key, &v)) {
		struct tl_function *f = v;
		const char *file;
		unsigned line;

		if (!f->id)
			continue;
		if (f->disarmed || f->upper)
			tl_recorder_how(run->recorder, f->id,
					f->disarmed ? TL_HOW_BOUND : TL_HOW_EXACT,
					f->upper ? TL_SELF_UPPER : TL_SELF_MEASURED);
		if (tl_image_line(f->image, f->func, &file, &line))
			tl_recorder_line(run->recorder, f->id, file, line);
	}
	pos = 0;
	while (tl_map_next(&run->exact.refused, &pos, &key, &v)) {
		tl_strbuf_clear(&b);
		tl_strbuf_puts(&b, "name=");
		tl_writer_encode(&b, ((const struct tl_func *)(uintptr_t)key)->name);
		tl_strbuf_puts(&b, " why=");
		tl_writer_encode(&b, v);
		tl_recorder_note(run->recorder, "refused", tl_strbuf_text(&b));
	}
	tl_strbuf_fini(&b);
}

static struct tl_exact_options exact_options(const struct run *run)
{
	const struct tl_run_options *o = run->options;

	return (struct tl_exact_options){
		.select = o->select,
		.within = o->within,
		.start_on = o->start_on,
		.stop_on = o->stop_on,
		.program = o->program,
		.depth = o->depth,
		.valve = !o->exact,
		.delay_ns = o->delay_ns,
		.duration_ns = o->duration_ns,
		.launched = !o->n_pids,
		.stop_cost_ns = tl_calibrate_stop_ns(&run->before),
	};
}

/* Names that would have matched, while the target has not run yet. */
static int nothing_matched(struct run *run)
{
	TL_VEC(struct tl_image *) images = {0};
	size_t pos = 0;
	uint64_t key;
	char *text;
	void *v;
	int r;

	while (tl_map_next(&run->session.processes, &pos, &key, &v)) {
		struct tl_exact_space *es = ((struct tl_process *)v)->space->client;

		for (size_t i = 0; es && i < es->modules.n; i++)
			tl_vec_push(&images, es->modules.at[i]->image);
	}
	text = tl_select_explain(run->options->select, images.at, images.n);
	r = tl_fail(-ENOENT, "%s", text);
	free(text);
	tl_vec_fini(&images);
	return r;
}

static int launch(struct run *run)
{
	const struct tl_run_options *o = run->options;
	struct tl_launch l = {.argv = o->argv, .uid = -1, .sigmask = &run->mask};

	if (o->user.set) {
		l.uid = o->user.uid;
		l.gid = o->user.gid;
		l.user = o->user.name;
	}
	return tl_session_launch(&run->session, &l, &run->result->launch_error);
}

static int attach(struct run *run)
{
	int r = TL_OK;

	for (size_t i = 0; i < run->options->n_pids && r == TL_OK; i++)
		r = tl_session_attach(&run->session, run->options->pids[i]);
	return r;
}

static int begin(struct run *run)
{
	const struct tl_run_options *o = run->options;
	int r = o->n_pids ? attach(run) : launch(run);

	if (r != TL_OK)
		return r;
	if (run->exact.probed || tl_select_libraries(o->select) || o->program)
		return TL_OK;
	/* Libraries may be loaded and programs be run that have what was asked for; if not, what
	 * is known now is the answer at the end. */
	r = nothing_matched(run);
	if (!o->follow)
		return r;
	run->unmatched = tl_strdup(tl_error_text());
	if (o->n_pids)
		tl_warn("nothing is counted yet: %s", run->unmatched);
	return TL_OK;
}

static void end_target(struct run *run)
{
	struct tl_session *s = &run->session;

	if (s->leader && !s->leader_ended && s->options.kill_with_us) {
		kill(s->leader, SIGKILL);
		s->end = TL_END_NOT;
		tl_session_run(s);
	} else if (s->tasks.n) {
		tl_session_leave(s);
	}
}

static int trace(struct run *run)
{
	const struct tl_run_options *o = run->options;
	struct tl_session_options so = {
		/* With -d the target stays behind, which the kernel's kill would not allow. */
		.kill_with_us = !o->n_pids && !o->duration_ns,
		.follow = o->follow,
		.cpu = run->cpu,
	};
	struct tl_exact_options eo = exact_options(run);
	struct tl_session *s = &run->session;
	struct tl_exact *e = &run->exact;
	int r;

	if ((r = tl_exact_init(e, &eo, &recorder_sink, run->recorder)) != TL_OK)
		return r;
	r = tl_session_init(s, &so, &tl_exact_ops, e);
	e->session = s;
	if (r == TL_OK)
		r = begin(run);
	if (r != TL_OK) {
		end_target(run);
		return r;
	}
	note_command(run);
	r = tl_session_run(s);
	if (e->measuring)
		tl_measure_end(e, "end");
	if (s->tasks.n && tl_session_leave(s) < 0 && r == TL_OK)
		r = -EIO;
	if (r == TL_OK && !e->probed && !o->program)
		r = run->unmatched ? tl_fail(-ENOENT, "%s", run->unmatched) : nothing_matched(run);
	note_functions(run);
	return r;
}

static int choose_cpu(const struct tl_run_options *o)
{
	return o->pin == TL_PIN_NEVER ? -1 : sched_getcpu();
}

static int begin_recording(struct run *run)
{
	const struct tl_run_options *o = run->options;
	struct tl_recorder_options ro = {
		.writer = {.output = o->output, .dialect = o->dialect, .max_size = o->max_size},
		.raw = o->raw,
		.cpu_avoid = run->cpu,
	};
	int r = tl_calibrate(run->cpu, false, &run->before);

	return r == TL_OK ? tl_recorder_start(&ro, &run->before, &run->recorder) : r;
}

/* All of ptrace happens on a thread of its own: its end lets go of sleepers silently. */
static void *tracing_thread(void *arg)
{
	struct run *run = arg;

	run->status = begin_recording(run);
	if (run->status == TL_OK)
		run->status = trace(run);
	if (run->status < 0)
		snprintf(run->error, sizeof run->error, "%s", tl_error_text());
	return NULL;
}

/* On the caller's thread, with the target gone or left alone. */
static void end_recording(struct run *run)
{
	bool again;
	int r;

	if (run->status < 0 && (!run->session.stops || !run->exact.probed)) {
		tl_recorder_cancel(run->recorder);
	} else {
		again = tl_calibrate(run->cpu, true, &run->after) == TL_OK;
		r = tl_recorder_stop(run->recorder, again ? &run->after : NULL, NULL);
		if (r < 0) {
			snprintf(run->error, sizeof run->error, "%s", tl_error_text());
			run->status = r;
		}
		run->result->path = run->options->output;
		run->result->complete = run->status == TL_OK;
	}
	tl_session_fini(&run->session);
	tl_exact_fini(&run->exact);
	free(run->unmatched);
}

static const int our_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
enum { N_OURS = sizeof our_signals / sizeof *our_signals };

/* A launched leader that was let go is waited for: its status is ours. */
static void wait_for_leader(struct run *run)
{
	struct tl_session *s = &run->session;

	if (!s->leader || s->leader_ended || run->result->launch_error)
		return;
	while (waitpid(s->leader, &s->leader_status, 0) < 0)
		if (errno != EINTR)
			return;
	s->leader_ended = true;
}

int tl_run(const struct tl_run_options *o, struct tl_run_result *result)
{
	struct run run = {.options = o, .result = result, .cpu = choose_cpu(o)};
	struct sigaction was[N_OURS];
	sigset_t ours;
	pthread_t thread;
	int r;

	*result = (struct tl_run_result){.attached = o->n_pids > 0};
	sigemptyset(&ours);
	for (int i = 0; i < N_OURS; i++) {
		sigaction(our_signals[i], NULL, &was[i]);
		sigaddset(&ours, our_signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &ours, &run.mask);
	r = -pthread_create(&thread, NULL, tracing_thread, &run);
	if (r < 0)
		return tl_fail(r, "no thread could be started: %s", strerror(-r));
	pthread_join(thread, NULL);
	if (run.recorder)
		end_recording(&run);
	for (int i = 0; i < N_OURS; i++)
		sigaction(our_signals[i], &was[i], NULL);
	pthread_sigmask(SIG_SETMASK, &run.mask, NULL);
	if (run.status >= 0)
		wait_for_leader(&run);
	if (run.session.leader_ended && !result->launch_error) {
		if (WIFSIGNALED(run.session.leader_status))
			result->killed_by_signal = WTERMSIG(run.session.leader_status);
		else
			result->exit_code = WEXITSTATUS(run.session.leader_status);
	}
	return run.status < 0 ? tl_fail(run.status, "%s", run.error) : TL_OK;
}
